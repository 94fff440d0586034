/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tandem/address.h>

static enum tdm_status wanted(struct tdm_error *err, const char *text)
{
	return tdm_fail(err, TDM_ERR_FORMAT,
		"address \"%.300s\": wanted tcp:HOST[:PORT], tcp:[IPV6][:PORT], vsock:CID[:PORT] or unix:PATH",
		text);
}

static bool parse_number(const char *text, uint64_t max, uint32_t *value)
{
	uint64_t sum = 0;

	if (!*text) {
		return false;
	}
	for (; *text; text++) {
		if (*text < '0' || *text > '9') {
			return false;
		}
		sum = sum * 10 + (uint64_t)(*text - '0');
		if (sum > max) {
			return false;
		}
	}
	*value = (uint32_t)sum;
	return true;
}

/* "HOST", "HOST:PORT", "[IPV6]", "[IPV6]:PORT". */
static bool parse_tcp(const char *rest, struct tdm_address *address)
{
	const char *host = rest;
	const char *end;
	const char *port = NULL;

	if (*rest == '[') {
		host = rest + 1;
		end = strchr(host, ']');
		if (!end || (end[1] && end[1] != ':')) {
			return false;
		}
		if (end[1]) {
			port = end + 2;
		}
	} else {
		end = strchr(rest, ':');
		if (end) {
			port = end + 1;
		} else {
			end = rest + strlen(rest);
		}
	}

	const size_t length = (size_t)(end - host);

	if (length == 0 || length > TDM_HOST_MAX) {
		return false;
	}
	memcpy(address->host, host, length);
	address->host[length] = '\0';
	address->has_port = port != NULL;
	return !port || parse_number(port, 65535, &address->port);
}

/* "CID", "CID:PORT", "any:PORT". */
static bool parse_vsock(const char *rest, struct tdm_address *address)
{
	char cid[16];
	const char *colon = strchr(rest, ':');
	const size_t length = colon ? (size_t)(colon - rest) : strlen(rest);

	if (length == 0 || length >= sizeof(cid)) {
		return false;
	}
	memcpy(cid, rest, length);
	cid[length] = '\0';
	if (strcmp(cid, "any") == 0) {
		address->cid = TDM_CID_ANY;
	} else if (!parse_number(cid, UINT32_MAX - 1, &address->cid)) {
		return false;
	}
	/* The greatest number stands for "any port" in the kernel's interface. */
	address->has_port = colon != NULL;
	return !colon || parse_number(colon + 1, UINT32_MAX - 1, &address->port);
}

bool tdm_address_is_one(const char *text)
{
	return strncmp(text, "tcp:", 4) == 0 || strncmp(text, "unix:", 5) == 0 ||
	       strncmp(text, "vsock:", 6) == 0;
}

enum tdm_status tdm_address_parse(const char *text, enum tdm_address_use use,
	struct tdm_address *address, struct tdm_error *err)
{
	bool good = false;

	memset(address, 0, sizeof(*address));
	address->port = TDM_DEFAULT_PORT;
	if (strncmp(text, "tcp:", 4) == 0) {
		address->kind = TDM_ADDRESS_TCP;
		good = parse_tcp(text + 4, address);
	} else if (strncmp(text, "vsock:", 6) == 0) {
		address->kind = TDM_ADDRESS_VSOCK;
		good = parse_vsock(text + 6, address);
	} else if (strncmp(text, "unix:", 5) == 0) {
		address->kind = TDM_ADDRESS_UNIX;
		address->port = 0;

		const size_t length = strlen(text + 5);

		if (length > TDM_PATH_MAX) {
			return tdm_fail(err, TDM_ERR_FORMAT,
				"address \"%.300s\": a socket's path has at most %d bytes, this one has %zu",
				text, TDM_PATH_MAX, length);
		}
		good = length > 0;
		memcpy(address->path, text + 5, length + 1);
	}
	if (!good) {
		return wanted(err, text);
	}
	if (use == TDM_ADDRESS_CONNECT) {
		if (address->kind == TDM_ADDRESS_VSOCK && address->cid == TDM_CID_ANY) {
			return tdm_fail(err, TDM_ERR_FORMAT,
				"address \"%s\": \"any\" is for listening; to connect a number is wanted",
				text);
		}
		if (address->kind != TDM_ADDRESS_UNIX && address->port == 0) {
			return tdm_fail(err, TDM_ERR_FORMAT,
				"address \"%s\": port 0 is for listening; to connect 1 to 65535 is wanted",
				text);
		}
	}
	return TDM_OK;
}

void tdm_address_print(const struct tdm_address *address, char *text, size_t room)
{
	switch (address->kind) {
	case TDM_ADDRESS_TCP:
		snprintf(text, room, strchr(address->host, ':') ? "tcp:[%s]:%u" : "tcp:%s:%u",
			address->host, address->port);
		break;
	case TDM_ADDRESS_VSOCK:
		if (address->cid == TDM_CID_ANY) {
			snprintf(text, room, "vsock:any:%u", address->port);
		} else {
			snprintf(text, room, "vsock:%u:%u", address->cid, address->port);
		}
		break;
	case TDM_ADDRESS_UNIX:
		snprintf(text, room, "unix:%s", address->path);
		break;
	}
}
