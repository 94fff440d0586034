/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tandem/socket.h>

/* /proc/net/tcp shows addresses as 32-bit words in the machine's own order, bytes as they stand in memory. */
static void print_hex(const uint8_t *bytes, size_t count, char *text)
{
	for (size_t i = 0; i < count; i += 4) {
		uint32_t word;

		memcpy(&word, bytes + i, sizeof(word));
		text += sprintf(text, "%08" PRIX32, word);
	}
}

bool tdm_socket_loopback_uid(const struct tdm_peer *peer, uint32_t *uid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const bool is_v4 = memcmp(peer->address, mapped, sizeof(mapped)) == 0;
	char host[33], wanted[48], line[512];
	bool found = false;

	if (peer->kind != TDM_ADDRESS_TCP || !peer->is_loopback) {
		return false;
	}
	print_hex(peer->address + (is_v4 ? 12 : 0), is_v4 ? 4 : 16, host);
	snprintf(wanted, sizeof(wanted), "%s:%04" PRIX32, host, peer->port);

	FILE *file = fopen(is_v4 ? "/proc/net/tcp" : "/proc/net/tcp6", "re");

	while (file && !found && fgets(line, sizeof(line), file)) {
		char local[48];

		/* sl local remote state queues timer retransmits uid */
		found = sscanf(line, " %*d: %47s %*s %*x %*s %*s %*x %" SCNu32, local, uid) == 2 &&
			strcmp(local, wanted) == 0;
	}
	if (file) {
		fclose(file);
	}
	return found;
}
