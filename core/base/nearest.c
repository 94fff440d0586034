/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tandem/nearest.h>

/* A quarter of its letters may be wrong, rounded up: one in "kvn", three in "sched_waked". */
#define LETTERS_PER_FAULT 4

void tdm_nearest_begin(struct tdm_nearest *nearest, const char *word, size_t bytes)
{
	memset(nearest, 0, sizeof(*nearest));
	nearest->distance = SIZE_MAX;
	if (bytes < 2 || bytes >= TDM_NEAREST_BYTES) {
		return;
	}
	memcpy(nearest->word, word, bytes);
	if (strpbrk(nearest->word, "*?[")) {
		nearest->word[0] = '\0';
	}
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Damerau and Levenshtein's, each letter swapped once at most. Both are shorter than TDM_NEAREST_BYTES. */
static size_t distance_of(const char *a, const char *b)
{
	size_t rows[3][TDM_NEAREST_BYTES + 1];
	const size_t a_bytes = strlen(a);
	const size_t b_bytes = strlen(b);

	for (size_t j = 0; j <= b_bytes; j++) {
		rows[0][j] = j;
	}
	for (size_t i = 1; i <= a_bytes; i++) {
		size_t *const row = rows[i % 3];
		const size_t *const above = rows[(i + 2) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_bytes; j++) {
			row[j] = least(least(row[j - 1], above[j]) + 1,
				above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
				row[j] = least(row[j], rows[(i + 1) % 3][j - 2] + 1);
			}
		}
	}
	return rows[a_bytes % 3][b_bytes];
}

void tdm_nearest_try(struct tdm_nearest *nearest, const char *known)
{
	const size_t word_bytes = strlen(nearest->word);
	const size_t bytes = known ? strlen(known) : 0;
	const size_t most = (word_bytes + LETTERS_PER_FAULT - 1) / LETTERS_PER_FAULT;

	if (!word_bytes || !bytes || bytes >= TDM_NEAREST_BYTES || bytes > word_bytes + most ||
		word_bytes > bytes + most) {
		return;
	}

	const size_t distance = distance_of(nearest->word, known);

	if (distance <= most && distance < nearest->distance) {
		nearest->distance = distance;
		memcpy(nearest->found, known, bytes + 1);
	}
}

static const char *put_text(struct tdm_nearest *nearest, const char *before)
{
	nearest->text[0] = '\0';
	if (nearest->found[0] && nearest->distance > 0) {
		snprintf(nearest->text, sizeof(nearest->text), "; did you mean \"%s%s\"?", before,
			nearest->found);
	}
	return nearest->text;
}

const char *tdm_nearest_text(struct tdm_nearest *nearest)
{
	return put_text(nearest, "");
}

const char *tdm_nearest_option_text(
	struct tdm_nearest *nearest, const char *argument, const struct option *options)
{
	const bool is_long = argument && strncmp(argument, "--", 2) == 0;
	const char *const name = is_long ? argument + 2 : "";
	const size_t name_bytes = strcspn(name, "=");
	bool begins_one = false;

	tdm_nearest_begin(nearest, name, name_bytes);
	for (; options->name; options++) {
		begins_one = begins_one || strncmp(options->name, name, name_bytes) == 0;
		tdm_nearest_try(nearest, options->name);
	}
	if (begins_one) {
		nearest->found[0] = '\0';
	}
	return put_text(nearest, "--");
}
