/* SPDX-License-Identifier: MIT */
#include "fault_list_priv.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* A hostile file must not fill the memory with complaints; the last one stands for all that follow. */
	MAX_FAULTS = 512,
	MAX_TEXT = 768
};

static const char overflow_text[] = "further faults of other kinds, no longer told apart";

struct entry {
	const char *format; /* with scope: what makes two faults the same */
	uint64_t scope;
	char *text;
	uint64_t count;
};

struct fault_list {
	pthread_mutex_t lock;
	size_t count;
	struct entry *entries[MAX_FAULTS];
};

struct fault_list *fault_list_create(void)
{
	struct fault_list *list = calloc(1, sizeof(*list));

	if (list) {
		pthread_mutex_init(&list->lock, NULL);
	}
	return list;
}

void fault_list_destroy(struct fault_list *list)
{
	if (!list) {
		return;
	}
	for (size_t i = 0; i < list->count; i++) {
		free(list->entries[i]->text);
		free(list->entries[i]);
	}
	pthread_mutex_destroy(&list->lock);
	free(list);
}

static struct entry *find(const struct fault_list *list, uint64_t scope, const char *format)
{
	/* The newest first: faults come in runs. */
	for (size_t i = list->count; i-- > 0;) {
		if (list->entries[i]->format == format && list->entries[i]->scope == scope) {
			return list->entries[i];
		}
	}
	return NULL;
}

/* A new entry; NULL without memory. The text is copied. */
static struct entry *add_entry(
	struct fault_list *list, uint64_t scope, const char *format, const char *text)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry || !(entry->text = strdup(text))) {
		free(entry);
		return NULL;
	}
	entry->format = format;
	entry->scope = scope;
	list->entries[list->count++] = entry;
	return entry;
}

void fault_list_add(struct fault_list *list, const char *where, uint64_t scope, uint64_t count,
	const char *format, va_list args, const char **text)
{
	char buffer[MAX_TEXT];

	*text = NULL;
	pthread_mutex_lock(&list->lock);

	struct entry *entry = find(list, scope, format);

	if (!entry && list->count < MAX_FAULTS - 1) {
		const int used = snprintf(buffer, sizeof(buffer), "%s: ", where);

		if (used > 0 && (size_t)used < sizeof(buffer)) {
			vsnprintf(buffer + used, sizeof(buffer) - (size_t)used, format, args);
		}
		entry = add_entry(list, scope, format, buffer);
		*text = entry ? entry->text : NULL;
	} else if (!entry) {
		entry = find(list, 0, overflow_text);
		if (!entry) {
			snprintf(buffer, sizeof(buffer), "%s: %s", where, overflow_text);
			entry = add_entry(list, 0, overflow_text, buffer);
			*text = entry ? entry->text : NULL;
		}
	}
	if (entry) {
		entry->count += count;
	}
	pthread_mutex_unlock(&list->lock);
}

size_t fault_list_count(const struct fault_list *list)
{
	struct fault_list *lockable = (struct fault_list *)(uintptr_t)list;

	pthread_mutex_lock(&lockable->lock);

	const size_t count = list->count;

	pthread_mutex_unlock(&lockable->lock);
	return count;
}

struct tdm_fault fault_list_at(const struct fault_list *list, size_t index)
{
	struct fault_list *lockable = (struct fault_list *)(uintptr_t)list;
	struct tdm_fault fault = { .text = "", .count = 0 };

	pthread_mutex_lock(&lockable->lock);
	if (index < list->count) {
		fault.text = list->entries[index]->text;
		fault.count = list->entries[index]->count;
	}
	pthread_mutex_unlock(&lockable->lock);
	return fault;
}
