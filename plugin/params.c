/* SPDX-License-Identifier: MIT */
#include "params.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_int(const bt_value *value)
{
	return bt_value_is_signed_integer(value) || bt_value_is_unsigned_integer(value);
}

/* An unsigned value beyond int64_t is held at its most: no parameter means anything there. */
static int64_t int_of(const bt_value *value)
{
	if (bt_value_is_signed_integer(value)) {
		return bt_value_integer_signed_get(value);
	}

	const uint64_t number = bt_value_integer_unsigned_get(value);

	return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static bool is_text_array(const bt_value *value)
{
	if (!bt_value_is_array(value)) {
		return false;
	}
	for (uint64_t i = 0; i < bt_value_array_get_length(value); i++) {
		if (!bt_value_is_string(bt_value_array_borrow_element_by_index_const(value, i))) {
			return false;
		}
	}
	return true;
}

static bt_value_map_foreach_entry_const_func_status entry_is_text(
	const char *key, const bt_value *value, void *user)
{
	(void)key;
	if (!bt_value_is_string(value)) {
		*(bool *)user = false;
	}
	return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK;
}

static bool is_text_map(const bt_value *value)
{
	bool all_texts = true;

	return bt_value_is_map(value) &&
	       bt_value_map_foreach_entry_const(value, entry_is_text, &all_texts) ==
		       BT_VALUE_MAP_FOREACH_ENTRY_CONST_STATUS_OK &&
	       all_texts;
}

static bool kind_fits(unsigned int kinds, const bt_value *value)
{
	return ((kinds & PARAM_BOOL) && bt_value_is_bool(value)) ||
	       ((kinds & PARAM_INT) && is_int(value)) ||
	       ((kinds & PARAM_TEXT) && bt_value_is_string(value)) ||
	       ((kinds & PARAM_TEXTS) && is_text_array(value)) ||
	       ((kinds & PARAM_TEXT_MAP) && is_text_map(value));
}

static const char *kind_words(unsigned int kinds, char *words, size_t room)
{
	static const struct {
		unsigned int kind;
		const char *words;
	} names[] = {
		{ PARAM_BOOL, "yes or no" },
		{ PARAM_INT, "an integer" },
		{ PARAM_TEXT, "a text" },
		{ PARAM_TEXTS, "an array of texts" },
		{ PARAM_TEXT_MAP, "a map of names to texts" },
	};

	size_t used = 0;

	words[0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((kinds & names[i].kind) && used < room) {
			used += (size_t)snprintf(words + used, room - used, "%s%s",
				used ? " or " : "", names[i].words);
		}
	}
	return words;
}

static enum tdm_status check_choice(
	const struct param_rule *rule, const char *text, struct tdm_error *err)
{
	char list[200] = "";
	size_t used = 0;

	for (const char *const *choice = rule->choices; *choice; choice++) {
		if (strcmp(*choice, text) == 0) {
			return TDM_OK;
		}
		if (used < sizeof(list)) {
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s\"%s\"",
				used ? ", " : "", *choice);
		}
	}
	return tdm_fail(err, TDM_ERR_RANGE, "parameter \"%s\": \"%s\" is none of %s", rule->name,
		text, list);
}

static enum tdm_status check_value(
	const struct param_rule *rule, const bt_value *value, struct tdm_error *err)
{
	if (!kind_fits(rule->kinds, value)) {
		char words[120];

		return tdm_fail(err, TDM_ERR_RANGE, "parameter \"%s\" must be %s", rule->name,
			kind_words(rule->kinds, words, sizeof(words)));
	}
	if (is_int(value) && (rule->least || rule->most) &&
		(int_of(value) < rule->least || int_of(value) > rule->most)) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"parameter \"%s\": %" PRId64 " is not between %" PRId64 " and %" PRId64,
			rule->name, int_of(value), rule->least, rule->most);
	}
	if (bt_value_is_string(value) && rule->choices) {
		return check_choice(rule, bt_value_string_get(value), err);
	}
	return TDM_OK;
}

struct check {
	const struct param_rule *rules;
	size_t rule_count;
	struct tdm_error *err;
	enum tdm_status status;
};

static bt_value_map_foreach_entry_const_func_status check_entry(
	const char *name, const bt_value *value, void *user)
{
	struct check *const check = user;

	for (size_t i = 0; i < check->rule_count; i++) {
		if (strcmp(check->rules[i].name, name) == 0) {
			check->status = check_value(&check->rules[i], value, check->err);
			return check->status == TDM_OK
				       ? BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK
				       : BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT;
		}
	}

	char list[300] = "";
	size_t used = 0;

	for (size_t i = 0; i < check->rule_count && used < sizeof(list); i++) {
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
			check->rules[i].name);
	}
	check->status = tdm_fail(check->err, TDM_ERR_RANGE,
		"unknown parameter \"%s\"; the parameters are %s", name, list);
	return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT;
}

enum tdm_status param_check(const bt_value *params, const struct param_rule *rules,
	size_t rule_count, struct tdm_error *err)
{
	struct check check = { rules, rule_count, err, TDM_OK };

	if (!params || !bt_value_is_map(params)) {
		return tdm_fail(err, TDM_ERR_RANGE, "the parameters are no map");
	}
	if (bt_value_map_foreach_entry_const(params, check_entry, &check) < 0) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the parameters");
	}
	if (check.status != TDM_OK) {
		return check.status;
	}
	for (size_t i = 0; i < rule_count; i++) {
		if (rules[i].required && !bt_value_map_has_entry(params, rules[i].name)) {
			return tdm_fail(
				err, TDM_ERR_RANGE, "parameter \"%s\" is missing", rules[i].name);
		}
	}
	return TDM_OK;
}

static const bt_value *entry(const bt_value *params, const char *name)
{
	return bt_value_map_borrow_entry_value_const(params, name);
}

bool param_has(const bt_value *params, const char *name)
{
	return entry(params, name) != NULL;
}

bool param_bool(const bt_value *params, const char *name, bool fallback)
{
	const bt_value *const value = entry(params, name);

	return value && bt_value_is_bool(value) ? bt_value_bool_get(value) : fallback;
}

int64_t param_int(const bt_value *params, const char *name, int64_t fallback)
{
	const bt_value *const value = entry(params, name);

	return value && is_int(value) ? int_of(value) : fallback;
}

const char *param_text(const bt_value *params, const char *name, const char *fallback)
{
	const bt_value *const value = entry(params, name);

	return value && bt_value_is_string(value) ? bt_value_string_get(value) : fallback;
}

size_t param_text_count(const bt_value *params, const char *name)
{
	const bt_value *const value = entry(params, name);

	if (!value) {
		return 0;
	}
	if (bt_value_is_string(value)) {
		return 1;
	}
	return bt_value_is_array(value) ? (size_t)bt_value_array_get_length(value) : 0;
}

const char *param_text_at(const bt_value *params, const char *name, size_t index)
{
	const bt_value *const value = entry(params, name);

	if (bt_value_is_array(value)) {
		return bt_value_string_get(
			bt_value_array_borrow_element_by_index_const(value, index));
	}
	return bt_value_string_get(value);
}

struct each_text {
	bool (*each)(void *user, const char *key, const char *text);
	void *user;
};

static bt_value_map_foreach_entry_const_func_status each_entry(
	const char *key, const bt_value *value, void *user)
{
	struct each_text *const walk = user;

	return walk->each(walk->user, key, bt_value_string_get(value))
		       ? BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK
		       : BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT;
}

bool param_offset(const char *text, int64_t *offset_ns)
{
	char *end = NULL;

	if (strncmp(text, "offset:", 7) != 0 || !text[7]) {
		return false;
	}
	errno = 0;
	*offset_ns = strtoll(text + 7, &end, 10);
	return !*end && errno == 0;
}

void param_each_text(const bt_value *params, const char *name,
	bool (*each)(void *user, const char *key, const char *text), void *user)
{
	const bt_value *const value = entry(params, name);

	if (value && bt_value_is_map(value)) {
		struct each_text walk = { each, user };

		bt_value_map_foreach_entry_const(value, each_entry, &walk);
	}
}
