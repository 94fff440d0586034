/* SPDX-License-Identifier: MIT */
/* The text of one event's format; its fields are then looked for in a record of zeros and of ones. */
#include <stdlib.h>
#include <string.h>
#include <tandem/schema.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit(const struct tdm_event_class *event_class, const uint8_t *record, uint32_t size)
{
	volatile uint8_t sink = 0;

	for (uint32_t i = 0; i < event_class->field_count; i++) {
		for (int big_endian = 0; big_endian < 2; big_endian++) {
			struct tdm_span span;

			if (tdm_field_span(
				    &event_class->fields[i], record, size, big_endian, &span) &&
				span.size_bytes) {
				sink = span.bytes[0];
				sink = span.bytes[span.size_bytes - 1];
			}
			if (!event_class->fields[i].element_bytes ||
				!event_class->fields[i].unique_name[0]) {
				abort();
			}
		}
	}
	(void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t record_sizes[] = { 0, 1, 8, 61, 4096 };
	struct tdm_schema *schema = tdm_schema_create(false, size % 2 ? 4 : 8);
	struct tdm_error err;

	if (!schema) {
		return 0;
	}
	(void)tdm_schema_add(schema, "fuzz", (const char *)data, size, &err);
	(void)tdm_schema_add(schema, "again", (const char *)data, size, &err);
	for (size_t i = 0; i < tdm_schema_count(schema); i++) {
		for (size_t k = 0; k < sizeof(record_sizes) / sizeof(record_sizes[0]); k++) {
			uint8_t *record = malloc(record_sizes[k] + 1);

			if (!record) {
				continue;
			}
			memset(record, 0, record_sizes[k]);
			visit(tdm_schema_at(schema, i), record, record_sizes[k]);
			memset(record, 0xff, record_sizes[k]);
			visit(tdm_schema_at(schema, i), record, record_sizes[k]);
			free(record);
		}
	}
	tdm_schema_destroy(schema);
	return 0;
}
