/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <tandem/utf8.h>

size_t tdm_text_length(const uint8_t *bytes, size_t size_bytes)
{
	const uint8_t *const nul = size_bytes ? memchr(bytes, 0, size_bytes) : NULL;

	return nul ? (size_t)(nul - bytes) : size_bytes;
}

/* Bytes of the valid sequence at the start, 0 where there is none. Source: Unicode 15, table 3-7. */
static size_t sequence_bytes(const uint8_t *at, size_t left)
{
	const uint8_t first = at[0];
	uint8_t least = 0x80;
	uint8_t most = 0xbf;
	size_t length;

	if (first < 0x80) {
		return 1;
	}
	if (first >= 0xc2 && first <= 0xdf) {
		length = 2;
	} else if (first >= 0xe0 && first <= 0xef) {
		length = 3;
		least = first == 0xe0 ? 0xa0 : 0x80;
		most = first == 0xed ? 0x9f : 0xbf;
	} else if (first >= 0xf0 && first <= 0xf4) {
		length = 4;
		least = first == 0xf0 ? 0x90 : 0x80;
		most = first == 0xf4 ? 0x8f : 0xbf;
	} else {
		return 0;
	}
	if (left < length || at[1] < least || at[1] > most) {
		return 0;
	}
	for (size_t i = 2; i < length; i++) {
		if (at[i] < 0x80 || at[i] > 0xbf) {
			return 0;
		}
	}
	return length;
}

bool tdm_utf8_is_valid(const uint8_t *bytes, size_t size_bytes)
{
	size_t pos = 0;

	while (pos < size_bytes) {
		/* Kernel text is ASCII nearly always: eight bytes at once. */
		while (size_bytes - pos >= 8) {
			uint64_t eight;

			memcpy(&eight, bytes + pos, sizeof(eight));
			if (eight & UINT64_C(0x8080808080808080)) {
				break;
			}
			pos += 8;
		}
		if (pos == size_bytes) {
			break;
		}

		const size_t length = sequence_bytes(bytes + pos, size_bytes - pos);

		if (length == 0) {
			return false;
		}
		pos += length;
	}
	return true;
}

/* A byte as \xNN. */
static void put_number(char shown[4], uint8_t byte)
{
	static const char digits[] = "0123456789abcdef";

	memcpy(shown, (const char[]){ '\\', 'x', digits[byte >> 4], digits[byte & 15] }, 4);
}

static enum tdm_status append_number(struct tdm_buffer *out, uint8_t byte)
{
	char shown[4];

	put_number(shown, byte);
	return tdm_buffer_append(out, shown, sizeof(shown));
}

enum tdm_status tdm_utf8_append_shown(
	struct tdm_buffer *out, const uint8_t *bytes, size_t size_bytes)
{
	size_t pos = 0;

	while (pos < size_bytes) {
		const size_t length = sequence_bytes(bytes + pos, size_bytes - pos);
		const enum tdm_status status = length ? tdm_buffer_append(out, bytes + pos, length)
						      : append_number(out, bytes[pos]);

		if (status != TDM_OK) {
			return status;
		}
		pos += length ? length : 1;
	}
	return TDM_OK;
}

static bool is_control(const uint8_t *at, size_t length)
{
	return (length == 1 && (*at < 0x20 || *at == 0x7f)) ||
	       (length == 2 && at[0] == 0xc2 && at[1] < 0xa0);
}

/* What is shown for the bytes at the start; taken receives how many these are. @return Its length in @p shown. */
static size_t show(const uint8_t *at, size_t left, char shown[16], size_t *taken)
{
	const size_t length = sequence_bytes(at, left);

	*taken = length ? length : 1;
	if (length && !is_control(at, length)) {
		memcpy(shown, at, length);
		return length;
	}
	for (size_t i = 0; i < *taken; i++) {
		put_number(shown + 4 * i, at[i]);
	}
	return 4 * *taken;
}

enum tdm_status tdm_utf8_append_visible(
	struct tdm_buffer *out, const uint8_t *bytes, size_t size_bytes)
{
	size_t taken = 0;

	for (size_t pos = 0; pos < size_bytes; pos += taken) {
		char shown[16];
		const size_t length = show(bytes + pos, size_bytes - pos, shown, &taken);
		const enum tdm_status status = tdm_buffer_append(out, shown, length);

		if (status != TDM_OK) {
			return status;
		}
	}
	return TDM_OK;
}

void tdm_utf8_make_visible(char *text, size_t room_bytes)
{
	const size_t size_bytes = strlen(text);
	size_t first = 0;

	while (first < size_bytes && text[first] >= ' ' && text[first] < 0x7f) {
		first++;
	}
	if (first == size_bytes) {
		return;
	}

	char whole[1024];
	const size_t room = room_bytes < sizeof(whole) ? room_bytes : sizeof(whole);
	size_t used = 0;
	size_t taken = 0;

	for (size_t pos = 0; pos < size_bytes; pos += taken) {
		char shown[16];
		const size_t length =
			show((const uint8_t *)text + pos, size_bytes - pos, shown, &taken);

		if (used + length >= room) {
			break;
		}
		memcpy(whole + used, shown, length);
		used += length;
	}
	memcpy(text, whole, used);
	text[used] = '\0';
}
