/* SPDX-License-Identifier: MIT */
#include "tsdl_lexer.h"
#include <string.h>

static bool is_word_start(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static void skip_blanks(struct tsdl_lexer *lexer)
{
	while (lexer->at < lexer->end) {
		const char byte = *lexer->at;

		if (byte == '\n') {
			lexer->line++;
			lexer->at++;
		} else if (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\0') {
			lexer->at++;
		} else if (byte == '/' && lexer->at + 1 < lexer->end && lexer->at[1] == '/') {
			while (lexer->at < lexer->end && *lexer->at != '\n') {
				lexer->at++;
			}
		} else if (byte == '/' && lexer->at + 1 < lexer->end && lexer->at[1] == '*') {
			lexer->at += 2;
			while (lexer->at < lexer->end &&
				!(*lexer->at == '*' && lexer->at + 1 < lexer->end &&
					lexer->at[1] == '/')) {
				lexer->line += *lexer->at == '\n';
				lexer->at++;
			}
			lexer->at += lexer->at < lexer->end ? 2 : 0;
		} else {
			return;
		}
	}
}

static int digit_value(char byte)
{
	if (is_digit(byte)) {
		return byte - '0';
	}
	if (byte >= 'a' && byte <= 'f') {
		return byte - 'a' + 10;
	}
	return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : 16;
}

static void read_number(struct tsdl_lexer *lexer)
{
	int base = 10;

	lexer->token.kind = TSDL_TOKEN_NUMBER;
	if (*lexer->at == '0' && lexer->at + 1 < lexer->end) {
		if (lexer->at[1] == 'x' || lexer->at[1] == 'X') {
			base = 16;
			lexer->at += 2;
		} else if (lexer->at[1] == 'b' || lexer->at[1] == 'B') {
			base = 2;
			lexer->at += 2;
		} else if (is_digit(lexer->at[1])) {
			base = 8;
		}
	}
	while (lexer->at < lexer->end && digit_value(*lexer->at) < base) {
		if (__builtin_mul_overflow(
			    lexer->token.number, (uint64_t)base, &lexer->token.number)) {
			lexer->token.kind = TSDL_TOKEN_BAD;
		}
		lexer->token.number += (uint64_t)digit_value(*lexer->at++);
	}
	while (lexer->at < lexer->end && strchr("uUlL", *lexer->at)) {
		lexer->at++;
	}
}

/* One escaped character; the backslash is passed. */
static char read_escape(struct tsdl_lexer *lexer)
{
	const char byte = *lexer->at++;
	int value = 0;

	switch (byte) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	case 'x':
		for (int i = 0; i < 2 && lexer->at < lexer->end && digit_value(*lexer->at) < 16;
			i++) {
			value = value * 16 + digit_value(*lexer->at++);
		}
		return (char)value;
	default:
		break;
	}
	if (digit_value(byte) < 8) {
		value = digit_value(byte);
		for (int i = 0; i < 2 && lexer->at < lexer->end && digit_value(*lexer->at) < 8;
			i++) {
			value = value * 8 + digit_value(*lexer->at++);
		}
		return (char)value;
	}
	return byte;
}

static void read_text(struct tsdl_lexer *lexer)
{
	const char *close = lexer->at + 1;
	char *out;

	while (close < lexer->end && *close != '"') {
		close += *close == '\\' ? 2 : 1;
	}
	if (close >= lexer->end) {
		lexer->token.kind = TSDL_TOKEN_BAD;
		lexer->at = lexer->end;
		return;
	}
	lexer->at++;
	out = tdm_arena_alloc(lexer->arena, (size_t)(close - lexer->at) + 1);
	lexer->token.kind = out ? TSDL_TOKEN_TEXT : TSDL_TOKEN_BAD;
	lexer->token.text = out;
	while (out && lexer->at < close) {
		lexer->line += *lexer->at == '\n';
		if (*lexer->at == '\\') {
			lexer->at++;
			*out++ = read_escape(lexer);
		} else {
			*out++ = *lexer->at++;
		}
	}
	lexer->at = close + 1;
}

static bool is_next(const struct tsdl_lexer *lexer, const char *text)
{
	const size_t length = strlen(text);

	return (size_t)(lexer->end - lexer->at) >= length && memcmp(lexer->at, text, length) == 0;
}

void tsdl_next(struct tsdl_lexer *lexer)
{
	skip_blanks(lexer);
	lexer->token = (struct tsdl_token){ .line = lexer->line };
	if (lexer->at >= lexer->end) {
		return;
	}
	if (is_word_start(*lexer->at)) {
		const char *const start = lexer->at;

		while (lexer->at < lexer->end &&
			(is_word_start(*lexer->at) || is_digit(*lexer->at))) {
			lexer->at++;
		}
		lexer->token.text =
			tdm_arena_text(lexer->arena, start, (size_t)(lexer->at - start));
		lexer->token.kind = lexer->token.text ? TSDL_TOKEN_WORD : TSDL_TOKEN_BAD;
	} else if (is_digit(*lexer->at)) {
		read_number(lexer);
	} else if (*lexer->at == '"') {
		read_text(lexer);
	} else {
		lexer->token.kind =
			strchr("{}[]();:=<>,.-+*", *lexer->at) ? TSDL_TOKEN_MARK : TSDL_TOKEN_BAD;
		lexer->token.mark = *lexer->at;
		if (is_next(lexer, ":=")) {
			lexer->token.mark = '=';
			lexer->token.is_assign = true;
			lexer->at++;
		} else if (is_next(lexer, "...")) {
			lexer->token.is_range = true;
			lexer->at += 2;
		}
		lexer->at++;
	}
}
