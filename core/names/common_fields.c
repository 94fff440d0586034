/* SPDX-License-Identifier: MIT */
/*
 * common_fields.c - the fields that all events of a kernel have: members of the context of every event.
 */
#include <string.h>
#include <tandem/names.h>

/* Members that the context has beside them: the thread, and what a sample of perf tells. */
static const char *const reserved[] = { "tid", "procname", "pid", "guest", "callchain",
	"_callchain_length" };

struct taken {
	const struct tdm_common_field *fields;
	size_t count;
};

static bool is_taken(const void *user, const char *name)
{
	const struct taken *const taken = user;

	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		if (strcmp(reserved[i], name) == 0) {
			return true;
		}
	}
	for (size_t i = 0; i < taken->count; i++) {
		if (strcmp(taken->fields[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_integer(const struct tdm_field *field)
{
	return field->place == TDM_PLACE_FIXED && !field->is_array && field->size_bytes > 0 &&
	       field->size_bytes <= 8 &&
	       (field->kind == TDM_FIELD_SIGNED || field->kind == TDM_FIELD_UNSIGNED ||
		       field->kind == TDM_FIELD_BOOL || field->kind == TDM_FIELD_POINTER);
}

size_t tdm_common_fields(
	const struct tdm_schema *schema, struct tdm_common_field fields[TDM_COMMON_FIELDS_MAX])
{
	const struct tdm_event_class *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < tdm_schema_count(schema) && !first; i++) {
		const struct tdm_event_class *const event_class = tdm_schema_at(schema, i);

		first = event_class->fault || !event_class->common_count ? NULL : event_class;
	}
	for (uint32_t i = 0; first && i < first->common_count && count < TDM_COMMON_FIELDS_MAX;
		i++) {
		const struct tdm_field *const field = &first->fields[i];
		const struct taken taken = { fields, count };

		/* The pid is the thread. */
		if (strcmp(field->name, "common_pid") != 0 && is_integer(field)) {
			tdm_member_name(
				"", field->unique_name, "", is_taken, &taken, fields[count].name);
			fields[count++].field = field;
		}
	}
	return count;
}

const struct tdm_field *tdm_common_field_of(
	const struct tdm_event_class *event_class, const struct tdm_common_field *common)
{
	for (uint32_t i = 0; i < event_class->common_count; i++) {
		const struct tdm_field *const field = &event_class->fields[i];

		if (strcmp(field->unique_name, common->field->unique_name) == 0) {
			return is_integer(field) && field->size_bytes == common->field->size_bytes
				       ? field
				       : NULL;
		}
	}
	return NULL;
}
