/* SPDX-License-Identifier: MIT */
/*
 * buffer.h - bytes that grow up to a stated cap.
 */
#ifndef TANDEM_BUFFER_H
#define TANDEM_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>

struct tdm_buffer {
	uint8_t *bytes; /* owned; NULL while nothing was added */
	size_t size;    /* bytes in use */
	size_t room;    /* bytes allocated */
	size_t cap;     /* growth stops here; 0 = 1 GiB */
};

/** Makes room for @p count more bytes. @retval TDM_ERR_NOMEM The cap or memory is exhausted; nothing changed. */
enum tdm_status tdm_buffer_reserve(struct tdm_buffer *buffer, size_t count);

/** The same without room to grow, for a size that is known. */
enum tdm_status tdm_buffer_reserve_exact(struct tdm_buffer *buffer, size_t count);

/** Appends bytes. @retval TDM_ERR_NOMEM As above. */
enum tdm_status tdm_buffer_append(struct tdm_buffer *buffer, const void *bytes, size_t count);

/** Appends formatted text without its NUL. @retval TDM_ERR_NOMEM As above. */
enum tdm_status tdm_buffer_printf(struct tdm_buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Frees the bytes; the buffer is empty and usable again. */
void tdm_buffer_release(struct tdm_buffer *buffer);

#endif
