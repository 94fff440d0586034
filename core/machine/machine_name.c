/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <tandem/machines.h>

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

bool tdm_machine_name_is_valid(const char *name)
{
	if (!is_plain(name[0])) {
		return false;
	}

	size_t length = 1;

	for (; name[length]; length++) {
		if (length == TDM_MACHINE_NAME_MAX ||
			!(is_plain(name[length]) || name[length] == '.' || name[length] == '-')) {
			return false;
		}
	}
	return true;
}

void tdm_machine_name_clean(const char *name, char clean[TDM_MACHINE_NAME_MAX + 1])
{
	size_t length = 0;

	for (; name[length] && length < TDM_MACHINE_NAME_MAX; length++) {
		const char c = name[length];
		const bool allowed = is_plain(c) || (length > 0 && (c == '.' || c == '-'));

		clean[length] = c;
		if (!allowed) {
			clean[length] = '_';
		}
	}
	clean[length] = '\0';
	if (length == 0) {
		strcpy(clean, "guest");
	}
	if (strcmp(clean, TDM_HOST_NAME) == 0) {
		strcpy(clean, TDM_HOST_NAME "_");
	}
}
