/* SPDX-License-Identifier: MIT */
/*
 * params.h - the parameters of a component, checked by one table, then read by name.
 */
#ifndef PLUGIN_PARAMS_H
#define PLUGIN_PARAMS_H

#include "compat.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>

/* Kinds of value that a parameter may have; or them where it may have several. */
enum param_kind {
	PARAM_BOOL = 1 << 0,
	PARAM_INT =
		1
		<< 1, /* signed or unsigned: babeltrace2 reads "7" as signed and "+7" as unsigned */
	PARAM_TEXT = 1 << 2,
	PARAM_TEXTS = 1 << 3,    /* an array of texts */
	PARAM_TEXT_MAP = 1 << 4, /* a map of names to texts */
};

/* One row of a component class's table. */
struct param_rule {
	const char *name;
	unsigned int kinds; /* of enum param_kind */
	bool required;
	int64_t least, most;        /* PARAM_INT; both 0: any */
	const char *const *choices; /* PARAM_TEXT: the allowed ones, NULL-terminated; NULL: any */
};

/**
 * Checks parameters against a table: unknown names, missing ones, kinds, ranges and choices.
 *
 * @param params  A map value. Borrowed.
 * @retval TDM_ERR_RANGE  @p err names the parameter, what it is and what it may be.
 */
enum tdm_status param_check(const bt_value *params, const struct param_rule *rules,
	size_t rule_count, struct tdm_error *err);

/* Readers of checked parameters; the fallback where the parameter is absent or of another kind. Texts are borrowed. */

bool param_has(const bt_value *params, const char *name);
bool param_bool(const bt_value *params, const char *name, bool fallback);
int64_t param_int(const bt_value *params, const char *name, int64_t fallback);
const char *param_text(const bt_value *params, const char *name, const char *fallback);

/** Number of texts under a PARAM_TEXT or PARAM_TEXTS parameter (one text counts as an array of one), and each of them. */
size_t param_text_count(const bt_value *params, const char *name);
const char *param_text_at(const bt_value *params, const char *name, size_t index);

/** A constant given by hand instead of a file: "offset:NS". False where the text is none. */
bool param_offset(const char *text, int64_t *offset_ns);

/** Calls @p each for every entry of a PARAM_TEXT_MAP parameter until it returns false. */
void param_each_text(const bt_value *params, const char *name,
	bool (*each)(void *user, const char *key, const char *text), void *user);

#endif
