/* SPDX-License-Identifier: MIT */
#include "symbol_table_priv.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
	uint64_t address;
	uint32_t name; /* offset in text */
	uint32_t order;
};

struct symbol_table {
	char *text; /* names, each ended by a NUL */
	struct symbol *symbols;
	size_t count;
};

static int compare(const void *a, const void *b)
{
	const struct symbol *left = a, *right = b;

	if (left->address != right->address) {
		return left->address < right->address ? -1 : 1;
	}
	return left->order < right->order ? -1 : 1;
}

/* One line, NUL-terminated, "text" being where offsets count from. False: no symbol in it. */
typedef bool line_parser(char *line, char *text, struct symbol *symbol);

/* Of several names of one address the first of the text counts. */
static void keep_first_names(struct symbol_table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (!kept || table->symbols[kept - 1].address != table->symbols[i].address) {
			table->symbols[kept++] = table->symbols[i];
		}
	}
	table->count = kept;
}

static struct symbol_table *from_text(struct tdm_buffer *buffer, line_parser *parse)
{
	struct symbol_table *table = calloc(1, sizeof(*table));

	if (!table || buffer->size > UINT32_MAX - 1 || tdm_buffer_append(buffer, "", 1) != TDM_OK) {
		goto fail;
	}

	char *text = (char *)buffer->bytes;
	const char *end = text + buffer->size - 1;
	size_t lines = 1;

	for (const char *at = text; (at = memchr(at, '\n', (size_t)(end - at))); at++) {
		lines++;
	}
	table->symbols = calloc(lines, sizeof(*table->symbols));
	if (!table->symbols) {
		goto fail;
	}
	table->text = text;
	for (char *line = text; line < end;) {
		char *stop = memchr(line, '\n', (size_t)(end - line));

		if (!stop) {
			stop = text + buffer->size - 1;
		}
		*stop = '\0';

		struct symbol *symbol = &table->symbols[table->count];

		if (parse(line, text, symbol)) {
			symbol->order = (uint32_t)table->count++;
		}
		line = stop + 1;
	}
	qsort(table->symbols, table->count, sizeof(*table->symbols), compare);
	keep_first_names(table);
	*buffer = (struct tdm_buffer){ 0 };
	return table;
fail:
	free(table);
	return NULL;
}

static bool parse_kallsyms_line(char *line, char *text, struct symbol *symbol)
{
	char *at;

	symbol->address = strtoull(line, &at, 16);
	if (at == line || at[0] != ' ' || !at[1] || at[2] != ' ') {
		return false;
	}
	at += 3;

	const size_t length = strcspn(at, "\t \r");

	/* Without the right to see them the kernel shows all addresses as 0: better no names than wrong ones. */
	if (!length || !symbol->address) {
		return false;
	}
	at[length] = '\0';
	symbol->name = (uint32_t)(at - text);
	return true;
}

/* Resolves C escapes in place; the text only gets shorter. */
static void unescape(char *text)
{
	static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
	char *out = text;

	for (const char *in = text; *in;) {
		if (*in != '\\' || !in[1]) {
			*out++ = *in++;
			continue;
		}
		in++;

		const char *letter = strchr(letters, *in);

		if (*in >= '0' && *in <= '7') {
			unsigned int value = 0;

			for (int i = 0; i < 3 && *in >= '0' && *in <= '7'; i++) {
				value = value * 8 + (unsigned int)(*in++ - '0');
			}
			*out++ = (char)(value ? value : ' ');
		} else {
			*out++ = letter ? values[letter - letters] : *in;
			in++;
		}
	}
	*out = '\0';
}

static bool parse_printk_line(char *line, char *text, struct symbol *symbol)
{
	char *at;

	symbol->address = strtoull(line, &at, 16);
	if (at == line) {
		return false;
	}

	char *first = strchr(at, '"');
	char *last = strrchr(at, '"');

	if (!first || first == last) {
		return false;
	}
	*last = '\0';
	unescape(first + 1);
	symbol->name = (uint32_t)(first + 1 - text);
	return true;
}

struct symbol_table *symbol_table_from_kallsyms(struct tdm_buffer *text)
{
	return from_text(text, parse_kallsyms_line);
}

struct symbol_table *symbol_table_from_printk(struct tdm_buffer *text)
{
	return from_text(text, parse_printk_line);
}

void symbol_table_destroy(struct symbol_table *table)
{
	if (!table) {
		return;
	}
	free(table->text);
	free(table->symbols);
	free(table);
}

const char *symbol_table_floor(
	const struct symbol_table *table, uint64_t address, uint64_t *distance)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (table->symbols[middle].address <= address) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (!low) {
		return NULL;
	}
	if (distance) {
		*distance = address - table->symbols[low - 1].address;
	}
	return table->text + table->symbols[low - 1].name;
}

const char *symbol_table_exact(const struct symbol_table *table, uint64_t address)
{
	uint64_t distance = 0;
	const char *name = symbol_table_floor(table, address, &distance);

	return distance ? NULL : name;
}
