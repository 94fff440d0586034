/* SPDX-License-Identifier: MIT */
/*
 * trace_dump - prints what the decoder gives, stream by stream, for tests that compare it with other readers.
 *
 * usage: trace-dump [--raw] [--hz N] [--fields] [--stats] FILE
 *   records  R BUFFER CPU TIME TID SYSTEM:EVENT [NAME=VALUE]...   ("-" for the top buffer)
 *            VALUE: a number (@ symbol there), "text" with \\xNN escapes, <bytes of an array or wide number in hexadecimal>, ! not there
 *   losses   L BUFFER CPU TIME COUNT
 *   streams  S BUFFER CPU RECORDS LOST-EVENTS UNKNOWN-LOSSES UNREADABLE-PAGES FIRST LAST   (--stats: only these)
 *   faults   F TIMES TEXT
 * exit status 3 where there was a fault, 1 where the file cannot be opened.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <tandem/trace.h>

static void print_text(const struct tdm_span *span)
{
	putchar('"');
	for (uint32_t i = 0; i < span->size_bytes && span->bytes[i]; i++) {
		const uint8_t c = span->bytes[i];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
			printf("\\x%02x", c);
		} else {
			putchar(c);
		}
	}
	putchar('"');
}

static void print_bytes(const struct tdm_span *span)
{
	putchar('<');
	for (uint32_t i = 0; i < span->size_bytes; i++) {
		printf("%02x", span->bytes[i]);
	}
	putchar('>');
}

static void print_fields(struct tdm_trace *trace, const struct tdm_record *record, bool big_endian)
{
	const struct tdm_event_class *event_class = record->event_class;

	for (uint32_t i = 0; event_class && i < event_class->field_count; i++) {
		const struct tdm_field *field = &event_class->fields[i];
		struct tdm_span span;

		printf(" %s=", field->unique_name);
		if (!tdm_field_span(
			    field, record->payload, record->payload_bytes, big_endian, &span)) {
			putchar('!');
		} else if (field->kind == TDM_FIELD_TEXT) {
			print_text(&span);
		} else if (field->is_array || field->kind == TDM_FIELD_WIDE) {
			print_bytes(&span);
		} else if (field->kind == TDM_FIELD_SIGNED) {
			printf("%" PRId64,
				tdm_load_int(span.bytes, field->element_bytes, big_endian));
		} else {
			const uint64_t value =
				tdm_load_uint(span.bytes, field->element_bytes, big_endian);
			const char *symbol =
				value >> 63 ? tdm_trace_symbol(trace, value, NULL) : NULL;

			printf("%" PRIu64 "%s%s", value, symbol ? "@" : "", symbol ? symbol : "");
		}
	}
}

int main(int argc, char **argv)
{
	struct tdm_stamp_options options = { 0 };
	bool with_fields = false, only_stats = false;
	const char *path = NULL;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--raw") == 0) {
			options.raw = true;
		} else if (strcmp(argv[i], "--hz") == 0 && i + 1 < argc) {
			options.clock_hz = strtoull(argv[++i], NULL, 10);
		} else if (strcmp(argv[i], "--fields") == 0) {
			with_fields = true;
		} else if (strcmp(argv[i], "--stats") == 0) {
			only_stats = true;
		} else {
			path = argv[i];
		}
	}

	struct tdm_trace *trace;
	struct tdm_error err;

	if (!path || tdm_trace_open(path, &options, NULL, &trace, &err) != TDM_OK) {
		fprintf(stderr, "trace-dump: %s\n", path ? err.text : "usage");
		return 1;
	}

	const struct tdm_trace_info *info = tdm_trace_get_info(trace);

	for (size_t i = 0; i < info->stream_count; i++) {
		const struct tdm_stream_info *stream = &info->streams[i];
		const char *name = info->buffers[stream->buffer_index].name;
		struct tdm_reader *reader = tdm_reader_create(trace, i, &err);
		struct tdm_record record;
		enum tdm_status status;
		uint64_t first = 0, last = 0;
		bool any = false;

		name = *name ? name : "-";
		if (!reader) {
			fprintf(stderr, "trace-dump: %s\n", err.text);
			return 1;
		}
		while ((status = tdm_reader_next(reader, &record, &err)) == TDM_OK) {
			if (record.kind == TDM_ITEM_LOST) {
				if (!only_stats) {
					printf("L %s %u %" PRIu64 " %" PRIu64 "\n", name,
						stream->cpu, record.time_ns, record.lost_count);
				}
				continue;
			}
			first = any ? first : record.time_ns;
			last = record.time_ns;
			any = true;
			if (only_stats) {
				continue;
			}
			printf("R %s %u %" PRIu64 " %d %s:%s", name, stream->cpu, record.time_ns,
				record.tid, record.event_class ? record.event_class->system : "?",
				record.event_class ? record.event_class->name : "?");
			if (with_fields) {
				print_fields(trace, &record, info->big_endian);
			}
			putchar('\n');
		}
		if (status != TDM_END) {
			fprintf(stderr, "trace-dump: %s\n", err.text);
		}

		const struct tdm_reader_counts counts = tdm_reader_get_counts(reader);

		printf("S %s %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		       " %" PRIu64 "\n",
			name, stream->cpu, counts.records, counts.lost_events, counts.lost_unknown,
			counts.unreadable_pages, first, last);
		tdm_reader_destroy(reader);
	}

	const size_t fault_count = tdm_trace_fault_count(trace);

	for (size_t i = 0; i < fault_count; i++) {
		const struct tdm_fault fault = tdm_trace_fault_at(trace, i);

		printf("F %" PRIu64 " %s\n", fault.count, fault.text);
	}
	tdm_trace_close(trace);
	return fault_count ? 3 : 0;
}
