/* SPDX-License-Identifier: MIT */
/* Metadata up to its first NUL; what follows is walked as packet headers, contexts and events of every class. */
#include <ctf_walk.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk_over(const struct tsdl_type *type, const uint8_t *bytes, size_t size)
{
	struct ctf_walk *const walk = type ? calloc(1, sizeof(*walk)) : NULL;

	if (walk) {
		walk->bytes = bytes;
		walk->end_bits = (uint64_t)size * 8;
		while (ctf_walk_over(walk, type) && walk->at_bits < walk->end_bits &&
			walk->at_bits > 0) {
			walk->value_count = 0;
		}
		if (walk->at_bits > walk->end_bits && !walk->fault) {
			abort();
		}
	}
	free(walk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const wanted[] = { "id", "cpu_id", NULL };
	const uint8_t *const nul = size ? memchr(data, 0, size) : NULL;
	const size_t text_size = nul ? (size_t)(nul - data) : size;
	const uint8_t *const rest = nul ? nul + 1 : data + size;
	const size_t rest_size = size - (size_t)(rest - data);
	struct tsdl_metadata metadata;
	struct tdm_error err;

	if (tsdl_parse("fuzz", data, text_size, wanted, &metadata, &err) == TDM_OK) {
		walk_over(metadata.packet_header, rest, rest_size);
		for (size_t i = 0; i < metadata.stream_count; i++) {
			walk_over(metadata.streams[i].packet_context, rest, rest_size);
			walk_over(metadata.streams[i].event_header, rest, rest_size);
		}
		for (size_t i = 0; i < metadata.event_count; i++) {
			walk_over(metadata.events[i].context, rest, rest_size);
			walk_over(metadata.events[i].fields, rest, rest_size);
		}
	}
	tsdl_release(&metadata);
	return 0;
}
