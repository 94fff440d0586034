/* SPDX-License-Identifier: MIT */
/*
 * member_name.c - what the members of shown structures are called, wherever they are shown.
 */
#include <stdio.h>
#include <string.h>
#include <tandem/names.h>

/* So much of a wanted name is kept: with what stands around it and a number it fits, and "_NAME_length" is never NAME. */
#define WANTED_BYTES_MAX 210

void tdm_member_name(const char *prefix, const char *wanted, const char *suffix,
	bool (*is_taken)(const void *user, const char *name), const void *user,
	char name[TDM_MEMBER_NAME_BYTES])
{
	snprintf(name, TDM_MEMBER_NAME_BYTES - 8, "%s%.*s%s", prefix, WANTED_BYTES_MAX,
		*wanted ? wanted : "field", suffix);
	for (char *at = name; *at; at++) {
		const bool letter =
			(*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_';
		const bool digit = *at >= '0' && *at <= '9';

		if (!letter && !(digit && at > name)) {
			*at = '_';
		}
	}

	const size_t length = strlen(name);

	for (unsigned int number = 2; is_taken(user, name) && number < 100000; number++) {
		snprintf(name + length, 8, "_%u", number);
	}
}
