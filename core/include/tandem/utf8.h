/* SPDX-License-Identifier: MIT */
/*
 * utf8.h - text of a traced kernel as UTF-8: what is no valid UTF-8 is shown as \xNN.
 */
#ifndef TANDEM_UTF8_H
#define TANDEM_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/buffer.h>

/** Length of the text in a char array: up to its first NUL, or all of it. */
size_t tdm_text_length(const uint8_t *bytes, size_t size_bytes);

/** Whether the bytes are valid UTF-8 as they are (no overlong forms, no surrogates, at most U+10FFFF). */
bool tdm_utf8_is_valid(const uint8_t *bytes, size_t size_bytes);

/**
 * Appends text as UTF-8, each byte that belongs to no valid sequence as \xNN (lower-case hexadecimal).
 * @retval TDM_ERR_NOMEM  The buffer is full.
 */
enum tdm_status tdm_utf8_append_shown(
	struct tdm_buffer *out, const uint8_t *bytes, size_t size_bytes);

/**
 * Appends text of which every byte may be printed on a terminal and stays in its line: control characters, those of
 * U+0080 to U+009f too, as \xNN; so are bytes that are no valid UTF-8.
 * @retval TDM_ERR_NOMEM  The buffer is full.
 */
enum tdm_status tdm_utf8_append_visible(
	struct tdm_buffer *out, const uint8_t *bytes, size_t size_bytes);

/** The same in place, for messages: what then has no room is cut off, at the beginning of what is shown for a character. */
void tdm_utf8_make_visible(char *text, size_t room_bytes);

#endif
