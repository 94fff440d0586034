/* SPDX-License-Identifier: MIT */
/*
 * tsdl_text.c - the text of metadata out of its packets, and the trace's uuid out of the text.
 */
#include "tsdl.h"
#include <inttypes.h>
#include <string.h>
#include <tandem/cursor.h>

enum {
	PACKET_HEAD_BYTES = 37,
	PACKET_MAGIC = 0x75d11d57
};

bool tsdl_is_packetized(const uint8_t *bytes, size_t size)
{
	return size >= 4 && (tdm_load_u32(bytes, false) == PACKET_MAGIC ||
				    tdm_load_u32(bytes, true) == PACKET_MAGIC);
}

enum tdm_status tsdl_text(const char *path, const uint8_t *bytes, size_t size,
	struct tdm_buffer *text, struct tdm_error *err)
{
	size_t at = 0;

	if (!tsdl_is_packetized(bytes, size)) {
		return tdm_buffer_append(text, bytes, strnlen((const char *)bytes, size)) == TDM_OK
			       ? TDM_OK
			       : tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", path);
	}

	const bool big_endian = tdm_load_u32(bytes, true) == PACKET_MAGIC;

	while (size - at >= PACKET_HEAD_BYTES) {
		const uint32_t content = tdm_load_u32(bytes + at + 24, big_endian) / 8;
		const uint32_t packet = tdm_load_u32(bytes + at + 28, big_endian) / 8;

		if (tdm_load_u32(bytes + at, big_endian) != PACKET_MAGIC ||
			content < PACKET_HEAD_BYTES || packet < content || packet > size - at) {
			return tdm_fail(err, TDM_ERR_FORMAT,
				"%s: metadata packet at 0x%zx: %" PRIu32 " bytes of %" PRIu32
				", wanted at least %d and no more than the %zu that are left",
				path, at, content, packet, PACKET_HEAD_BYTES, size - at);
		}
		if (tdm_buffer_append(text, bytes + at + PACKET_HEAD_BYTES,
			    content - PACKET_HEAD_BYTES) != TDM_OK) {
			return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", path);
		}
		at += packet;
	}
	return TDM_OK;
}

bool tsdl_get_uuid(const struct tsdl_metadata *metadata, uint8_t uuid[16])
{
	size_t digits = 0;

	memset(uuid, 0, 16);
	for (const char *at = metadata->uuid; at && *at && digits < 32; at++) {
		const char byte = *at;
		const int value = byte >= '0' && byte <= '9'   ? byte - '0'
				  : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
				  : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
							       : -1;

		if (value >= 0) {
			uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | value);
			digits++;
		}
	}
	return digits == 32;
}
