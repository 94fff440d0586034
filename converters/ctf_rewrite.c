/* SPDX-License-Identifier: MIT */
/*
 * The text goes through word by word; comments and strings are seen as such, so nothing in them is taken for more.
 */
#include "ctf_rewrite.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char signature[] = "/* CTF 1.8";

/* One word, string, comment, run of blanks, or any other single byte. */
struct word {
	const char *at;
	size_t length;
};

static bool is_word_byte(char byte)
{
	/* With the point: "packet.context" is one word here. */
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '_' || byte == '.';
}

static struct word next_word(const char *at, const char *end)
{
	const char *to = at + 1;

	if (*at == '"') {
		while (to < end && *to != '"') {
			to += *to == '\\' && to + 1 < end ? 2 : 1;
		}
		to += to < end;
	} else if (*at == '/' && to < end && *to == '*') {
		for (to++; to < end && !(to[-1] == '*' && *to == '/' && to > at + 2); to++) {
		}
		to += to < end;
	} else if (*at == '/' && to < end && *to == '/') {
		while (to < end && *to != '\n') {
			to++;
		}
	} else if (is_word_byte(*at)) {
		while (to < end && is_word_byte(*to)) {
			to++;
		}
	}
	return (struct word){ at, (size_t)(to - at) };
}

static bool word_is(struct word word, const char *text)
{
	return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

static bool is_blank(struct word word)
{
	const char byte = *word.at;

	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == '/';
}

enum block {
	BLOCK_NONE,
	BLOCK_CLOCK,
	BLOCK_ENV,
	BLOCK_EVENT,
	BLOCK_STREAM
};

struct rewriter {
	const struct tdm_ctf_changes *changes;
	struct tdm_buffer *out;
	bool no_memory;
	enum block block;
	unsigned int depth;
	struct word key;   /* the word before "=", inside the block */
	bool awaits_value; /* "=" was seen */
	bool skips_value; /* a new value was put: the rest of the old one ("-" and a number are two words) goes */
	bool in_packet_context;
	bool has_offset, has_seconds, has_absolute, has_clock;
	bool skips_clock;       /* inside a clock that is left out */
	struct word clock_name; /* of the first clock, without quotes */
	uint64_t
		env_there; /* a bit for each entry that is to be added and was there: it got the new value */
};

static void put(struct rewriter *re, const char *bytes, size_t count)
{
	re->no_memory |= tdm_buffer_append(re->out, bytes, count) != TDM_OK;
}

static void put_text(struct rewriter *re, const char *text)
{
	put(re, text, strlen(text));
}

static enum block block_of(struct word word)
{
	return word_is(word, "clock")    ? BLOCK_CLOCK
	       : word_is(word, "env")    ? BLOCK_ENV
	       : word_is(word, "event")  ? BLOCK_EVENT
	       : word_is(word, "stream") ? BLOCK_STREAM
					 : BLOCK_NONE;
}

/* A new value for what the key names, put instead of the old one. False: the old one stays. */
static bool put_value(struct rewriter *re, struct word old)
{
	const struct tdm_ctf_changes *changes = re->changes;
	const struct tdm_ctf_offset offset = tdm_ctf_split_offset(changes->clock_offset_ns, 0);
	char number[32];

	if (re->block == BLOCK_CLOCK && word_is(re->key, "uuid") && changes->clock_uuid) {
		put_text(re, "\"");
		put_text(re, changes->clock_uuid);
		put_text(re, "\"");
		return true;
	}
	if (re->block == BLOCK_CLOCK && changes->sets_offset && word_is(re->key, "offset")) {
		snprintf(number, sizeof(number), "%" PRId64, offset.rest_ns);
		put_text(re, number);
		re->has_offset = true;
		return true;
	}
	if (re->block == BLOCK_CLOCK && changes->sets_offset && word_is(re->key, "offset_s")) {
		snprintf(number, sizeof(number), "%" PRId64, offset.seconds);
		put_text(re, number);
		re->has_seconds = true;
		return true;
	}
	if (re->block == BLOCK_CLOCK && changes->makes_absolute && word_is(re->key, "absolute")) {
		put_text(re, "TRUE");
		re->has_absolute = true;
		return true;
	}
	if (re->block == BLOCK_EVENT && changes->as_kernel && word_is(re->key, "name") &&
		old.length > 16 && memcmp(old.at, "\"tandem:syscall_", 16) == 0) {
		put_text(re, "\"");
		put(re, old.at + 8, old.length - 8);
		return true;
	}
	for (size_t i = 0; re->block == BLOCK_ENV && i < changes->env_count && i < 64; i++) {
		const struct tdm_ctf_env *env = &changes->env[i];

		if (word_is(re->key, env->name)) {
			re->env_there |= UINT64_C(1) << i;
			re->no_memory |= tdm_ctf_metadata_env_value(re->out, env) != TDM_OK;
			return true;
		}
	}
	if (re->block != BLOCK_ENV || !changes->as_kernel) {
		return false;
	}
	if (word_is(re->key, "domain")) {
		put_text(re, "\"kernel\"");
	} else if (word_is(re->key, "tracer_name")) {
		put_text(re, "\"lttng-modules\"");
	} else if (word_is(re->key, "tracer_major")) {
		put_text(re, "2");
	} else if (word_is(re->key, "tracer_minor")) {
		put_text(re, "13");
	} else {
		return false;
	}
	return true;
}

/* "clock.NAME.value": the words that tell which clock an integer is of. */
static bool is_clock_reference(struct word word)
{
	return word.length > 12 && memcmp(word.at, "clock.", 6) == 0 &&
	       memcmp(word.at + word.length - 6, ".value", 6) == 0;
}

static bool put_renamed(struct rewriter *re, struct word word)
{
	if (re->changes->one_clock && re->clock_name.length && is_clock_reference(word)) {
		put_text(re, "clock.");
		put(re, re->clock_name.at, re->clock_name.length);
		put_text(re, ".value");
		return true;
	}
	if (re->changes->as_kernel && re->depth > 0 && re->block != BLOCK_EVENT) {
		if (word_is(word, "_vtid") || word_is(word, "vtid")) {
			put_text(re, "_tid");
			return true;
		}
		if (word_is(word, "_vpid") || word_is(word, "vpid")) {
			put_text(re, "_pid");
			return true;
		}
	}
	if (re->changes->plain_cpu_id && re->in_packet_context && word_is(word, "_cpu_id")) {
		put_text(re, "cpu_id");
		return true;
	}
	return false;
}

static void put_env(struct rewriter *re)
{
	for (size_t i = 0; i < re->changes->env_count; i++) {
		if (i < 64 && re->env_there >> i & 1) {
			continue;
		}
		re->no_memory |= tdm_ctf_metadata_env(re->out, &re->changes->env[i]) != TDM_OK;
	}
}

/* The end of a block: what it lacked is put in before its brace. */
static void close_block(struct rewriter *re)
{
	if (re->block == BLOCK_CLOCK) {
		const struct tdm_ctf_offset offset =
			tdm_ctf_split_offset(re->changes->clock_offset_ns, 0);
		char line[64];

		re->has_clock = true;
		if (re->changes->sets_offset && !re->has_offset) {
			snprintf(line, sizeof(line), "\toffset = %" PRId64 ";\n", offset.rest_ns);
			put_text(re, line);
		}
		if (re->changes->sets_offset && !re->has_seconds && offset.seconds) {
			snprintf(line, sizeof(line), "\toffset_s = %" PRId64 ";\n", offset.seconds);
			put_text(re, line);
		}
		if (re->changes->makes_absolute && !re->has_absolute) {
			put_text(re, "\tabsolute = TRUE;\n");
		}
	} else if (re->block == BLOCK_ENV) {
		put_env(re);
	}
}

/* A clock after the first. @return True: the word is left out. */
static bool skip_clock(struct rewriter *re, struct word word)
{
	if (!re->skips_clock && re->changes->one_clock && re->depth == 0 && re->has_clock &&
		word_is(word, "clock")) {
		re->skips_clock = true;
		return true;
	}
	if (!re->skips_clock) {
		return false;
	}
	re->depth += *word.at == '{';
	re->depth -= *word.at == '}' && re->depth;
	re->skips_clock = re->depth || *word.at != ';';
	return true;
}

static void note_clock_name(struct rewriter *re, struct word word)
{
	if (re->block == BLOCK_CLOCK && !re->clock_name.length && word_is(re->key, "name")) {
		const bool is_quoted = *word.at == '"' && word.length > 2;

		re->clock_name = (struct word){ word.at + is_quoted, word.length - 2u * is_quoted };
	}
}

static void take_word(struct rewriter *re, struct word word, enum block *named)
{
	const char byte = *word.at;

	if (skip_clock(re, word)) {
		return;
	}

	if (byte == '{') {
		if (re->depth++ == 0) {
			re->block = *named;
			re->has_offset = false;
			re->has_seconds = false;
			re->has_absolute = false;
			re->in_packet_context = false;
		}
	} else if (byte == '}') {
		re->skips_value = false;
		if (re->depth == 1) {
			close_block(re);
		}
		re->depth -= re->depth > 0;
		if (re->depth == 0) {
			re->block = BLOCK_NONE;
		}
	} else if (byte == ';') {
		re->awaits_value = false;
		re->skips_value = false;
	}
	if (re->skips_value) {
		return;
	}
	if (re->depth == 0) {
		*named = is_word_byte(byte) ? block_of(word) : BLOCK_NONE;
		put(re, word.at, word.length);
		return;
	}
	if (re->depth == 1 && byte == '=') {
		re->awaits_value = true;
	} else if (re->depth == 1 && re->awaits_value && byte != ';') {
		re->awaits_value = false;
		note_clock_name(re, word);
		if (put_value(re, word)) {
			re->skips_value = true;
			return;
		}
	} else if (re->depth == 1 && is_word_byte(byte)) {
		re->key = word;
		if (re->block == BLOCK_STREAM && memchr(word.at, '.', word.length)) {
			re->in_packet_context = word_is(word, "packet.context");
		}
	}
	if (!put_renamed(re, word)) {
		put(re, word.at, word.length);
	}
}

enum tdm_status tdm_ctf_rewrite(const char *path, const struct tdm_buffer *text,
	const struct tdm_ctf_changes *changes, struct tdm_buffer *out, struct tdm_error *err)
{
	const char *at = (const char *)text->bytes;
	const char *const end = at + text->size;
	struct rewriter re = { .changes = changes, .out = out };
	enum block named = BLOCK_NONE;

	if (text->size < sizeof(signature) - 1 ||
		memcmp(at, signature, sizeof(signature) - 1) != 0) {
		put_text(&re, "/* CTF 1.8 */\n");
	}
	while (at < end && !re.no_memory) {
		const struct word word = next_word(at, end);

		if (is_blank(word)) {
			put(&re, word.at, word.length);
		} else {
			take_word(&re, word, &named);
		}
		at += word.length;
	}
	if (re.no_memory) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", path);
	}
	if (!re.has_clock && (changes->sets_offset || changes->clock_uuid)) {
		return tdm_fail(
			err, TDM_ERR_FORMAT, "%s: has no clock whose offset could be set", path);
	}
	return TDM_OK;
}
