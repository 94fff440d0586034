/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <tandem/cursor.h>
#include <tandem/wire.h>

enum {
	MESSAGE_VERSION = 1
};

static const uint8_t message_magic[4] = { 'T', 'N', 'D', 'X' };

static void put_u16(uint8_t *to, uint16_t value)
{
	to[0] = (uint8_t)value;
	to[1] = (uint8_t)(value >> 8);
}

static void put_u32(uint8_t *to, uint32_t value)
{
	put_u16(to, (uint16_t)value);
	put_u16(to + 2, (uint16_t)(value >> 16));
}

static void put_u64(uint8_t *to, uint64_t value)
{
	put_u32(to, (uint32_t)value);
	put_u32(to + 4, (uint32_t)(value >> 32));
}

void tdm_text_clean(char *to, size_t room, const uint8_t *from, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < size && used + 1 < room; i++) {
		to[used++] = from[i] >= 0x20 && from[i] < 0x7f ? (char)from[i] : '?';
	}
	to[used] = '\0';
}

void tdm_hello_put(uint8_t to[TDM_HELLO_BYTES], const struct tdm_hello *hello)
{
	memset(to, 0, TDM_HELLO_BYTES);
	memcpy(to, hello->nonce, TDM_NONCE_BYTES);
	put_u32(to + 32, hello->capabilities);
	put_u32(to + 36, hello->flags);
	memcpy(to + 40, hello->program, strnlen(hello->program, sizeof(hello->program) - 1));
}

enum tdm_status tdm_hello_get(
	const uint8_t *body, size_t size, struct tdm_hello *hello, struct tdm_error *err)
{
	struct tdm_cursor in = tdm_cursor_over(body, size, 0, false);

	memset(hello, 0, sizeof(*hello));

	struct tdm_cursor nonce = tdm_cursor_take(&in, TDM_NONCE_BYTES);

	hello->capabilities = tdm_cursor_u32(&in);
	hello->flags = tdm_cursor_u32(&in);

	struct tdm_cursor program = tdm_cursor_take(&in, sizeof(hello->program));

	if (in.failed) {
		return tdm_fail(err, TDM_ERR_PEER, "HELLO has %zu bytes, at least %d are wanted",
			size, TDM_HELLO_BYTES);
	}
	memcpy(hello->nonce, nonce.bytes, TDM_NONCE_BYTES);
	tdm_text_clean(hello->program, sizeof(hello->program), program.bytes,
		strnlen((const char *)program.bytes, program.size));
	return TDM_OK;
}

enum tdm_status tdm_open_put(struct tdm_buffer *to, enum tdm_purpose purpose, uint32_t session)
{
	uint8_t fixed[TDM_OPEN_FIXED_BYTES] = { (uint8_t)purpose };

	put_u32(fixed + 4, session);
	return tdm_buffer_append(to, fixed, sizeof(fixed));
}

enum tdm_status tdm_open_get(
	const uint8_t *body, size_t size, struct tdm_open *open, struct tdm_error *err)
{
	struct tdm_cursor in = tdm_cursor_over(body, size, 0, false);
	const uint8_t purpose = tdm_cursor_u8(&in);

	tdm_cursor_skip(&in, 3);
	open->session = tdm_cursor_u32(&in);
	if (in.failed) {
		return tdm_fail(err, TDM_ERR_PEER, "OPEN has %zu bytes, at least %d are wanted",
			size, TDM_OPEN_FIXED_BYTES);
	}
	if (purpose < TDM_PURPOSE_EXCHANGE || purpose > TDM_PURPOSE_CORRECTIONS) {
		return tdm_fail(
			err, TDM_ERR_UNSUPPORTED, "OPEN for purpose %u: not known here", purpose);
	}
	open->purpose = (enum tdm_purpose)purpose;
	open->text = (const char *)in.bytes + in.pos;
	open->text_bytes = tdm_cursor_left(&in);
	return TDM_OK;
}

enum tdm_status tdm_opened_put(struct tdm_buffer *to, uint32_t session, uint32_t epoch)
{
	uint8_t fixed[TDM_OPEN_FIXED_BYTES];

	put_u32(fixed, session);
	put_u32(fixed + 4, epoch);
	return tdm_buffer_append(to, fixed, sizeof(fixed));
}

enum tdm_status tdm_opened_get(
	const uint8_t *body, size_t size, struct tdm_opened *opened, struct tdm_error *err)
{
	struct tdm_cursor in = tdm_cursor_over(body, size, 0, false);

	opened->session = tdm_cursor_u32(&in);
	opened->epoch = tdm_cursor_u32(&in);
	if (in.failed) {
		return tdm_fail(err, TDM_ERR_PEER, "OPENED has %zu bytes, at least %d are wanted",
			size, TDM_OPEN_FIXED_BYTES);
	}
	opened->text = (const char *)in.bytes + in.pos;
	opened->text_bytes = tdm_cursor_left(&in);
	return TDM_OK;
}

enum tdm_status tdm_record_add(struct tdm_buffer *to, const char *key, const char *value)
{
	size_t length = 0;

	while (length < TDM_VALUE_MAX && (unsigned char)value[length] >= 0x20) {
		length++;
	}
	return tdm_buffer_printf(to, "%s %.*s\n", key, (int)length, value);
}

bool tdm_record_find(const char *text, size_t text_bytes, const char *key, unsigned int nth,
	char value[TDM_VALUE_MAX + 1])
{
	const size_t key_bytes = strlen(key);
	const char *const end = text + text_bytes;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		const size_t length = (size_t)(stop - text);

		if (length > key_bytes && memcmp(text, key, key_bytes) == 0 &&
			text[key_bytes] == ' ' && nth-- == 0) {
			const size_t value_bytes = length - key_bytes - 1;

			if (value_bytes > TDM_VALUE_MAX) {
				return false;
			}
			tdm_text_clean(value, TDM_VALUE_MAX + 1,
				(const uint8_t *)text + key_bytes + 1, value_bytes);
			return true;
		}
		text = newline ? newline + 1 : end;
	}
	return false;
}

bool tdm_record_find_number(
	const char *text, size_t text_bytes, const char *key, unsigned int nth, uint64_t *value)
{
	char digits[TDM_VALUE_MAX + 1];
	uint64_t sum = 0;

	if (!tdm_record_find(text, text_bytes, key, nth, digits) || !digits[0]) {
		return false;
	}
	for (const char *at = digits; *at; at++) {
		if (*at < '0' || *at > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
			__builtin_add_overflow(sum, (uint64_t)(*at - '0'), &sum)) {
			return false;
		}
	}
	*value = sum;
	return true;
}

void tdm_burst_put(uint8_t to[TDM_BURST_BYTES], const struct tdm_burst_frame *burst)
{
	put_u32(to, burst->count);
	put_u32(to + 4, burst->flags);
}

enum tdm_status tdm_burst_get(
	const uint8_t *body, size_t size, struct tdm_burst_frame *burst, struct tdm_error *err)
{
	struct tdm_cursor in = tdm_cursor_over(body, size, 0, false);

	burst->count = tdm_cursor_u32(&in);
	burst->flags = tdm_cursor_u32(&in);
	return in.failed ? tdm_fail(err, TDM_ERR_PEER, "BURST has %zu bytes, %d are wanted", size,
				   TDM_BURST_BYTES)
			 : TDM_OK;
}

void tdm_message_put(uint8_t to[TDM_MESSAGE_BYTES], const struct tdm_message *message)
{
	memcpy(to, message_magic, sizeof(message_magic));
	to[4] = MESSAGE_VERSION;
	to[5] = message->type;
	put_u16(to + 6, message->flags);
	put_u32(to + 8, message->session);
	put_u32(to + 12, message->epoch);
	put_u64(to + 16, message->sequence);
	put_u64(to + 24, message->h1);
	put_u64(to + 32, message->g2);
	put_u64(to + 40, message->g3);
	put_u64(to + 48, message->g2_raw);
	put_u64(to + 56, message->g3_raw);
	put_u64(to + 64, message->received_ns);
	put_u64(to + 72, message->sent_ns);
	put_u32(to + 80, message->sent_sequence);
	put_u16(to + 84, message->cpu);
	put_u16(to + 86, message->clocks);
	put_u32(to + 88, (uint32_t)message->frequency);
	put_u32(to + 92, tdm_crc32c(to, 92));
}

enum tdm_status tdm_message_get(
	const uint8_t *bytes, size_t size, struct tdm_message *message, struct tdm_error *err)
{
	struct tdm_cursor in = tdm_cursor_over(bytes, size, 0, false);

	if (size != TDM_MESSAGE_BYTES) {
		return tdm_fail(err, TDM_ERR_PEER, "exchange message has %zu bytes, %d are wanted",
			size, TDM_MESSAGE_BYTES);
	}
	tdm_cursor_expect(&in, message_magic, sizeof(message_magic));

	const uint8_t version = tdm_cursor_u8(&in);

	message->type = tdm_cursor_u8(&in);
	message->flags = tdm_cursor_u16(&in);
	message->session = tdm_cursor_u32(&in);
	message->epoch = tdm_cursor_u32(&in);
	message->sequence = tdm_cursor_u64(&in);
	message->h1 = tdm_cursor_u64(&in);
	message->g2 = tdm_cursor_u64(&in);
	message->g3 = tdm_cursor_u64(&in);
	message->g2_raw = tdm_cursor_u64(&in);
	message->g3_raw = tdm_cursor_u64(&in);
	message->received_ns = tdm_cursor_u64(&in);
	message->sent_ns = tdm_cursor_u64(&in);
	message->sent_sequence = tdm_cursor_u32(&in);
	message->cpu = tdm_cursor_u16(&in);
	message->clocks = tdm_cursor_u16(&in);
	message->frequency = (int32_t)tdm_cursor_u32(&in);

	const uint32_t checksum = tdm_cursor_u32(&in);

	if (in.failed || version != MESSAGE_VERSION || message->type < TDM_MESSAGE_PROBE ||
		message->type > TDM_MESSAGE_FOLLOW_UP) {
		return tdm_fail(err, TDM_ERR_PEER,
			"exchange message: version %u, type %u; wanted version %d, types 1 to 3",
			version, message->type, MESSAGE_VERSION);
	}
	if (checksum != tdm_crc32c(bytes, 92)) {
		return tdm_fail(err, TDM_ERR_PEER, "exchange message %llu: wrong checksum",
			(unsigned long long)message->sequence);
	}

	const uint64_t largest = message->sequence | message->h1 | message->g2 | message->g3 |
				 message->g2_raw | message->g3_raw | message->received_ns |
				 message->sent_ns;

	if (largest >= TDM_READING_MAX) {
		return tdm_fail(err, TDM_ERR_PEER, "exchange message %llu: a reading passes 2^62",
			(unsigned long long)message->sequence);
	}
	return TDM_OK;
}
