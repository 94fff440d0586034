/* SPDX-License-Identifier: MIT */
/*
 * visit_trace.h - a whole input of bytes: opened, every stream read, every field of every record found.
 */
#ifndef TANDEM_TESTS_VISIT_TRACE_H
#define TANDEM_TESTS_VISIT_TRACE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tandem/trace.h>
#include <unistd.h>

enum {
	/* A compressed file may hold far more records than it has bytes. */
	MAX_BATCHES = 20000
};

static void visit_record(const struct tdm_trace *trace, const struct tdm_slot *slot)
{
	const struct tdm_event_class *event_class =
		tdm_schema_find(tdm_trace_get_schema(trace), slot->event_id);
	volatile uint8_t sink = 0;

	for (uint32_t i = 0; event_class && i < event_class->field_count; i++) {
		struct tdm_span span;

		if (tdm_field_span(&event_class->fields[i], slot->payload, slot->payload_bytes,
			    tdm_trace_get_info(trace)->big_endian, &span) &&
			span.size_bytes) {
			sink = span.bytes[span.size_bytes - 1];
		}
	}
	if (slot->sample) {
		for (uint32_t i = 0; i < slot->sample->callchain_count; i++) {
			sink = (uint8_t)slot->sample->callchain[i];
		}
		(void)tdm_trace_comm_at(trace, slot->sample->tid, slot->raw_time, NULL);
	}
	(void)sink;
}

static void visit_stream(struct tdm_trace *trace, size_t index)
{
	struct tdm_error err;
	struct tdm_reader *reader = tdm_reader_create(trace, index, &err);
	struct tdm_batch batch;

	for (int i = 0; reader && i < MAX_BATCHES; i++) {
		if (tdm_reader_next_batch(reader, &batch, &err) != TDM_OK) {
			break;
		}
		for (size_t slot = 0; slot < batch.count; slot++) {
			visit_record(trace, &batch.slots[slot]);
		}
	}
	tdm_reader_destroy(reader);
}

static int visit_bytes(const uint8_t *data, size_t size)
{
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct tdm_trace *trace;
	struct tdm_error err;
	char path[32];

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size)) {
		abort();
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (tdm_trace_open(path, NULL, NULL, &trace, &err) == TDM_OK) {
		const size_t count = tdm_trace_get_info(trace)->stream_count;

		for (size_t i = 0; i < count && i < 64; i++) {
			visit_stream(trace, i);
		}
		(void)tdm_trace_symbol(trace, UINT64_C(0xffffffff81000000), NULL);
		(void)tdm_trace_printk_format(trace, 0);
		(void)tdm_trace_saved_comm(trace, 1);
		tdm_trace_close(trace);
	}
	close(fd);
	return 0;
}

#endif
