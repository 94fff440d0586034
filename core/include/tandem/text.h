/* SPDX-License-Identifier: MIT */
/*
 * text.h - bounded reading of line-oriented text: whole file, lines, fields, integers.
 */
#ifndef TANDEM_TEXT_H
#define TANDEM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/buffer.h>
#include <tandem/status.h>

enum {
	TDM_LINE_BYTES = 256, /* the longest line of our text formats, without its newline */
	TDM_LINE_FIELDS = 32, /* the most fields that are told apart in one */
};

/**
 * Reads a file whole; pipes too.
 *
 * @param cap_bytes  A larger file is refused.
 * @param out        Receives the bytes behind what it holds; released by the caller, also after a fault.
 * @retval TDM_ERR_IO, TDM_ERR_NOMEM, TDM_ERR_RANGE  @p err names the file.
 */
enum tdm_status tdm_text_read_file(
	const char *path, size_t cap_bytes, struct tdm_buffer *out, struct tdm_error *err);

/**
 * Creates @p path with these bytes, or leaves what was there: written beside it and renamed when complete.
 *
 * @retval TDM_ERR_IO  @p err names the file; nothing was left behind.
 */
enum tdm_status tdm_text_write_file(
	const char *path, const void *bytes, size_t count, struct tdm_error *err);

/* A walk over the lines of a text. */
struct tdm_text {
	const char *name;              /* for messages; borrowed */
	const char *next;              /* first byte that was not read yet */
	size_t left;                   /* bytes from there on */
	uint64_t line_number;          /* of the line read last, from 1 */
	bool whole;                    /* that line ended in a newline */
	size_t line_bytes;             /* its length */
	char line[TDM_LINE_BYTES + 1]; /* its text, NUL-terminated; may be changed */
};

/** A walk that starts at the first line. */
struct tdm_text tdm_text_over(const char *name, const char *text, size_t text_bytes);

/**
 * Reads the next line.
 *
 * @retval TDM_END         No more.
 * @retval TDM_ERR_FORMAT  Longer than TDM_LINE_BYTES, or it holds a NUL; @p err has name and line.
 */
enum tdm_status tdm_text_next(struct tdm_text *text, struct tdm_error *err);

/** Passes over the line that tdm_text_next() refused, so that a reader may go on behind it. Always TDM_OK. */
enum tdm_status tdm_text_skip(struct tdm_text *text);

/**
 * Splits a line in place at its blanks. Two blanks in a row make an empty field.
 *
 * @param fields  Receives pointers into @p line.
 * @return Number of fields, at most TDM_LINE_FIELDS; 0 for an empty line.
 */
size_t tdm_text_split(char *line, char *fields[TDM_LINE_FIELDS]);

/** Decimal digits only. False, and nothing written, for anything else or above @p max. */
bool tdm_text_u64(const char *text, uint64_t max, uint64_t *value);

/** The same with an optional '-'; magnitudes to @p max. */
bool tdm_text_i64(const char *text, int64_t max, int64_t *value);

#endif
