/* SPDX-License-Identifier: MIT */
/*
 * tsdl_lexer.h - metadata text as tokens.
 */
#ifndef TANDEM_TSDL_LEXER_H
#define TANDEM_TSDL_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/arena.h>

enum tsdl_token_kind {
	TSDL_TOKEN_END,
	TSDL_TOKEN_WORD,   /* identifier or keyword; text */
	TSDL_TOKEN_NUMBER, /* number; without sign */
	TSDL_TOKEN_TEXT,   /* quoted; text without quotes and escapes */
	TSDL_TOKEN_MARK, /* one character, or ":=" as '=' with is_assign, or "..." as '.' with is_range */
	TSDL_TOKEN_BAD, /* no token: a stray byte, or no memory */
};

struct tsdl_token {
	enum tsdl_token_kind kind;
	char mark;
	bool is_assign, is_range;
	const char *text;
	uint64_t number;
	uint32_t line;
};

struct tsdl_lexer {
	const char *at, *end; /* borrowed */
	uint32_t line;
	struct tdm_arena *arena; /* texts go there */
	struct tsdl_token token; /* the current one */
};

/** Moves to the next token. */
void tsdl_next(struct tsdl_lexer *lexer);

#endif
