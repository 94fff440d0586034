/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/buffer.h>

enum {
	DEFAULT_CAP = 1 << 30,
	FIRST_ROOM = 256
};

static enum tdm_status reserve(struct tdm_buffer *buffer, size_t count, bool exact)
{
	const size_t cap = buffer->cap ? buffer->cap : DEFAULT_CAP;

	if (count <= buffer->room - buffer->size) {
		return TDM_OK;
	}
	if (buffer->size > cap || count > cap - buffer->size) {
		return TDM_ERR_NOMEM;
	}

	const size_t wanted = buffer->size + count;
	size_t room = exact ? wanted : buffer->room ? buffer->room : FIRST_ROOM;

	while (room < wanted) {
		room *= 2;
	}
	if (room > cap) {
		room = cap;
	}

	uint8_t *bytes = realloc(buffer->bytes, room);

	if (!bytes) {
		return TDM_ERR_NOMEM;
	}
	buffer->bytes = bytes;
	buffer->room = room;
	return TDM_OK;
}

enum tdm_status tdm_buffer_reserve(struct tdm_buffer *buffer, size_t count)
{
	return reserve(buffer, count, false);
}

enum tdm_status tdm_buffer_reserve_exact(struct tdm_buffer *buffer, size_t count)
{
	return reserve(buffer, count, true);
}

enum tdm_status tdm_buffer_append(struct tdm_buffer *buffer, const void *bytes, size_t count)
{
	if (tdm_buffer_reserve(buffer, count) != TDM_OK) {
		return TDM_ERR_NOMEM;
	}
	if (count) {
		memcpy(buffer->bytes + buffer->size, bytes, count);
	}
	buffer->size += count;
	return TDM_OK;
}

enum tdm_status tdm_buffer_printf(struct tdm_buffer *buffer, const char *format, ...)
{
	va_list args;

	va_start(args, format);

	va_list again;

	va_copy(again, args);

	const int length = vsnprintf(NULL, 0, format, args);

	va_end(args);

	enum tdm_status status = TDM_ERR_NOMEM;

	/* One byte more than the text: vsnprintf() also writes a NUL, which is not counted. */
	if (length >= 0 && tdm_buffer_reserve(buffer, (size_t)length + 1) == TDM_OK) {
		vsnprintf((char *)buffer->bytes + buffer->size, (size_t)length + 1, format, again);
		buffer->size += (size_t)length;
		status = TDM_OK;
	}
	va_end(again);
	return status;
}

void tdm_buffer_release(struct tdm_buffer *buffer)
{
	free(buffer->bytes);
	buffer->bytes = NULL;
	buffer->size = 0;
	buffer->room = 0;
}
