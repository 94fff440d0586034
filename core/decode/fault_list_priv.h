/* SPDX-License-Identifier: MIT */
/*
 * fault_list_priv.h - what could not be read of one input, the same fault folded.
 */
#ifndef TANDEM_FAULT_LIST_PRIV_H
#define TANDEM_FAULT_LIST_PRIV_H

#include <stdarg.h>
#include <stdbool.h>
#include <tandem/trace.h>

struct fault_list; /* thread-safe */

struct fault_list *fault_list_create(void);
void fault_list_destroy(struct fault_list *list);

/**
 * Adds or folds.
 *
 * @param where  Put in front of the text: "where: text".
 * @param text   Receives the text, owned by the list, where this is the first of its kind; else NULL.
 */
void fault_list_add(struct fault_list *list, const char *where, uint64_t scope, uint64_t count,
	const char *format, va_list args, const char **text) __attribute__((format(printf, 5, 0)));

size_t fault_list_count(const struct fault_list *list);
struct tdm_fault fault_list_at(const struct fault_list *list, size_t index);

#endif
