/* SPDX-License-Identifier: MIT */
/*
 * record_dump - prints every record that the decoder gives of an input, for tests: one line each, blanks between.
 *
 *   I KEY VALUE                                       what the input says of itself
 *   R CPU RAW-TIME TIME-NS SYSTEM:EVENT PID TID GUEST COMM CHAIN PAYLOAD     chain and payload in hex, "-" = none
 *   L CPU RAW-TIME TIME-NS COUNT                      lost events
 *   F COUNT TEXT                                      what could not be read
 *
 * usage: record_dump [--next] [--rewind] [--counts] FILE
 *   --next    asks for one record at a time instead of many
 *   --rewind  reads every stream half, then again from the start
 *   --counts  counts of records by CPU and event instead of the records
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/trace.h>

static bool one_by_one, twice, counts_only;

static void print_hex(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		printf("%02x", bytes[i]);
	}
	if (!count) {
		putchar('-');
	}
}

static void print_comm(const char *comm)
{
	for (const char *at = comm ? comm : "-"; *at; at++) {
		if (*at > ' ' && *at < 127) {
			putchar(*at);
		} else {
			printf("\\x%02x", (unsigned char)*at);
		}
	}
}

static void print_record(
	const struct tdm_trace *trace, uint32_t cpu, const struct tdm_record *record)
{
	const struct tdm_event_class *event_class = record->event_class;

	if (record->kind == TDM_ITEM_LOST) {
		printf("L %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cpu, record->raw_time,
			record->time_ns, record->lost_count);
		return;
	}
	printf("R %" PRIu32 " %" PRIu64 " %" PRIu64 " %s:%s %" PRId32 " %" PRId32 " %d ", cpu,
		record->raw_time, record->time_ns, event_class ? event_class->system : "?",
		event_class ? event_class->name : "?", record->pid, record->tid, record->in_guest);
	print_comm(tdm_trace_comm_at(trace, record->tid, record->raw_time, NULL));
	putchar(' ');
	for (uint32_t i = 0; i < record->callchain_count; i++) {
		printf("%s%" PRIx64, i ? "," : "", record->callchain[i]);
	}
	printf("%s ", record->callchain_count ? "" : "-");
	print_hex(record->payload, record->payload_bytes);
	putchar('\n');
}

static void record_of_slot(
	const struct tdm_trace *trace, const struct tdm_slot *slot, struct tdm_record *record)
{
	*record = (struct tdm_record){ .raw_time = slot->raw_time,
		.time_ns = slot->time_ns,
		.event_class = tdm_schema_find(tdm_trace_get_schema(trace), slot->event_id),
		.payload = slot->payload,
		.payload_bytes = slot->payload_bytes,
		.event_id = slot->event_id,
		.pid = -1,
		.tid = -1 };
	if (slot->sample) {
		record->pid = slot->sample->pid;
		record->tid = slot->sample->tid;
		record->in_guest = slot->sample->in_guest;
		record->callchain = slot->sample->callchain;
		record->callchain_count = slot->sample->callchain_count;
	}
}

static void print_batch(const struct tdm_trace *trace, uint32_t cpu, const struct tdm_batch *batch,
	uint64_t *by_event)
{
	struct tdm_record record = { .kind = TDM_ITEM_LOST,
		.raw_time = batch->lost_raw_time,
		.time_ns = batch->lost_time_ns,
		.lost_count = batch->lost_count };

	if (batch->lost && !by_event) {
		print_record(trace, cpu, &record);
	}
	for (size_t i = 0; i < batch->count; i++) {
		if (by_event) {
			by_event[batch->slots[i].event_id & 0xffff]++;
			continue;
		}
		record_of_slot(trace, &batch->slots[i], &record);
		print_record(trace, cpu, &record);
	}
}

static enum tdm_status dump_stream(struct tdm_trace *trace, size_t index, struct tdm_error *err)
{
	const uint32_t cpu = tdm_trace_get_info(trace)->streams[index].cpu;
	struct tdm_reader *reader = tdm_reader_create(trace, index, err);
	uint64_t *by_event = counts_only ? calloc(65536, sizeof(*by_event)) : NULL;
	enum tdm_status status = TDM_OK;

	if (!reader) {
		free(by_event);
		return err->status;
	}
	if (twice) {
		struct tdm_record record;

		for (unsigned int i = 0; i < 10 && status == TDM_OK; i++) {
			status = tdm_reader_next(reader, &record, err);
		}
		status = tdm_reader_rewind(reader, err);
	}
	while (status == TDM_OK) {
		if (one_by_one) {
			struct tdm_record record;

			status = tdm_reader_next(reader, &record, err);
			if (status == TDM_OK) {
				print_record(trace, cpu, &record);
			}
		} else {
			struct tdm_batch batch;

			status = tdm_reader_next_batch(reader, &batch, err);
			if (status == TDM_OK) {
				print_batch(trace, cpu, &batch, by_event);
			}
		}
	}
	for (uint32_t id = 0; by_event && id < 65536; id++) {
		const struct tdm_event_class *event_class =
			tdm_schema_find(tdm_trace_get_schema(trace), id);

		if (by_event[id]) {
			printf("count %" PRIu32 " %s:%s %" PRIu64 "\n", cpu,
				event_class ? event_class->system : "?",
				event_class ? event_class->name : "?", by_event[id]);
		}
	}
	free(by_event);
	tdm_reader_destroy(reader);
	return status == TDM_END ? TDM_OK : status;
}

static void dump_info(const struct tdm_trace_info *info)
{
	printf("I clock %s\nI hostname %s\nI release %s\nI cpus %" PRIu32 "\nI compression %s\n",
		info->clock, info->hostname ? info->hostname : "-",
		info->kernel_release ? info->kernel_release : "-", info->cpu_count,
		info->compression);
	printf("I big_endian %d\nI unix %d\nI date_offset_ns %" PRId64 "\nI streams %zu\n",
		info->big_endian, info->is_unix_time, info->date_offset_ns, info->stream_count);
}

int main(int argc, char **argv)
{
	struct tdm_trace *trace = NULL;
	struct tdm_error err = { 0 };
	const char *path = NULL;
	int exit_code = 0;

	for (int i = 1; i < argc; i++) {
		one_by_one |= strcmp(argv[i], "--next") == 0;
		twice |= strcmp(argv[i], "--rewind") == 0;
		counts_only |= strcmp(argv[i], "--counts") == 0;
		path = argv[i];
	}
	if (!path || tdm_trace_open(path, NULL, NULL, &trace, &err) != TDM_OK) {
		fprintf(stderr, "record_dump: %s\n", path ? err.text : "no file");
		return 1;
	}
	if (!counts_only) {
		dump_info(tdm_trace_get_info(trace));
	}
	for (size_t i = 0; i < tdm_trace_get_info(trace)->stream_count; i++) {
		if (dump_stream(trace, i, &err) != TDM_OK) {
			fprintf(stderr, "record_dump: %s\n", err.text);
			exit_code = 1;
		}
	}
	for (size_t i = 0; i < tdm_trace_fault_count(trace); i++) {
		const struct tdm_fault fault = tdm_trace_fault_at(trace, i);

		printf("F %" PRIu64 " %s\n", fault.count, fault.text);
	}
	tdm_trace_close(trace);
	return exit_code;
}
