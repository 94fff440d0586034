/* SPDX-License-Identifier: MIT */
/*
 * What a recorded trace has and what it lacks, from the trace itself: events and the tracer's own
 * discarded counts by babeltrace2, and the provider's counts in the process_end events.
 */
#include "syscalls_graph.h"
#include "syscalls_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	KIND_OTHER = 1,
	KIND_ENTRY,
	KIND_EXIT,
	KIND_START,
	KIND_END,
	KIND_NOTE
};

#define KINDS_MAX 4096 /* event classes of one trace; ours are about 210 */

/* One image (between two execs) that has reported: the last report counts. */
struct image {
	int64_t vpid;
	uint64_t id;
	uint64_t calls, sent, no_exit, missed, not_chosen, notes;
	bool has_start, has_end;
	char name[64];
};

struct work {
	struct syscalls_report *report;
	const bt_event_class *last_class;
	enum kind last_kind;

	struct {
		const bt_event_class *event_class;
		enum kind kind;
	} kinds[KINDS_MAX];

	size_t kind_count;
	struct image *images;
	size_t image_count, image_room, process_room;
	size_t last_process;
	bool no_memory;
};

static enum kind kind_of_name(const char *name)
{
	if (strncmp(name, "tandem:syscall_entry_", 21) == 0) {
		return KIND_ENTRY;
	}
	if (strncmp(name, "tandem:syscall_exit_", 20) == 0) {
		return KIND_EXIT;
	}
	if (strcmp(name, "tandem:process_start") == 0) {
		return KIND_START;
	}
	if (strcmp(name, "tandem:process_end") == 0) {
		return KIND_END;
	}
	return strncmp(name, "tandem:", 7) == 0 ? KIND_NOTE : KIND_OTHER;
}

static enum kind kind_of(struct work *work, const bt_event_class *event_class)
{
	if (event_class == work->last_class) {
		return work->last_kind;
	}

	enum kind kind = 0;

	for (size_t i = 0; i < work->kind_count && !kind; i++) {
		if (work->kinds[i].event_class == event_class) {
			kind = work->kinds[i].kind;
		}
	}
	if (!kind) {
		const char *name = bt_event_class_get_name(event_class);

		kind = kind_of_name(name ? name : "");
		if (work->kind_count < KINDS_MAX) {
			work->kinds[work->kind_count].event_class = event_class;
			work->kinds[work->kind_count++].kind = kind;
		}
	}
	work->last_class = event_class;
	work->last_kind = kind;
	return kind;
}

static struct syscalls_process *process_of(struct work *work, int64_t vpid)
{
	struct syscalls_report *report = work->report;

	if (work->last_process < report->process_count &&
		report->processes[work->last_process].vpid == vpid) {
		return &report->processes[work->last_process];
	}
	for (size_t i = 0; i < report->process_count; i++) {
		if (report->processes[i].vpid == vpid) {
			work->last_process = i;
			return &report->processes[i];
		}
	}
	if (report->process_count == work->process_room) {
		const size_t room = work->process_room ? work->process_room * 2 : 64;
		struct syscalls_process *grown = realloc(report->processes, room * sizeof(*grown));

		if (!grown) {
			work->no_memory = true;
			return NULL;
		}
		report->processes = grown;
		work->process_room = room;
	}
	work->last_process = report->process_count;
	report->processes[report->process_count] = (struct syscalls_process){ .vpid = vpid };
	return &report->processes[report->process_count++];
}

static int64_t vpid_of(const bt_event *event)
{
	const bt_field *context = bt_event_borrow_common_context_field_const(event);
	const bt_field *vpid;

	if (!context) {
		return 0; /* a session of the user's own without contexts: one sum */
	}
	vpid = bt_field_structure_borrow_member_field_by_name_const(context, "vpid");
	return vpid ? bt_field_integer_signed_get_value(vpid) : 0;
}

static uint64_t number(const bt_field *payload, const char *name)
{
	const bt_field *field = bt_field_structure_borrow_member_field_by_name_const(payload, name);

	return field ? bt_field_integer_unsigned_get_value(field) : 0;
}

/* The image of a process, made where it is not known; NULL without memory. */
static struct image *image_of(struct work *work, int64_t vpid, uint64_t id)
{
	for (size_t i = work->image_count; i-- > 0;) {
		/* A trace without the process's number has 0 for all; the log has it. */
		if (work->images[i].id == id &&
			(work->images[i].vpid == vpid || work->images[i].vpid == 0)) {
			return &work->images[i];
		}
	}
	if (work->image_count == work->image_room) {
		const size_t room = work->image_room ? work->image_room * 2 : 64;
		struct image *grown = realloc(work->images, room * sizeof(*grown));

		if (!grown) {
			work->no_memory = true;
			return NULL;
		}
		work->images = grown;
		work->image_room = room;
	}
	work->images[work->image_count] = (struct image){ .vpid = vpid, .id = id };
	return &work->images[work->image_count++];
}

static void note_start(struct work *work, const bt_event *event, int64_t vpid)
{
	const bt_field *payload = bt_event_borrow_payload_field_const(event);
	const bt_field *name =
		bt_field_structure_borrow_member_field_by_name_const(payload, "name");
	struct image *image = image_of(work, vpid, number(payload, "image"));

	if (image && name) {
		image->has_start = true;
		snprintf(image->name, sizeof(image->name), "%s", bt_field_string_get_value(name));
	}
}

static void note_end(struct work *work, const bt_event *event, int64_t vpid)
{
	const bt_field *payload = bt_event_borrow_payload_field_const(event);
	struct image *image = image_of(work, vpid, number(payload, "image"));

	if (image) {
		image->has_end = true;
		image->calls = number(payload, "calls");
		image->notes = number(payload, "notes");
		image->sent = number(payload, "entries") + number(payload, "exits") + image->notes;
		image->no_exit = number(payload, "no_exit");
		image->missed = number(payload, "missed");
		image->not_chosen = number(payload, "not_chosen");
	}
}

/* The same from the provider's log, whose lines nobody discards; its last word on an image is the latest. */
static void read_log(struct work *work, const char *path)
{
	FILE *in = path ? fopen(path, "re") : NULL;
	char line[1200];

	while (in && fgets(line, sizeof(line), in)) {
		uint64_t n[9];
		char name[64] = "";
		struct image *image;

		if (sscanf(line, "@start %" SCNu64 " %" SCNu64 " %63[^\n]", &n[0], &n[1], name) >=
			2) {
			image = image_of(work, (int64_t)n[0], n[1]);
			if (image) {
				image->has_start = true;
				snprintf(image->name, sizeof(image->name), "%s", name);
			}
		} else if (sscanf(line,
				   "@end %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
				   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
				   &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7],
				   &n[8]) == 9) {
			image = image_of(work, (int64_t)n[0], n[1]);
			if (image) {
				image->has_end = true;
				image->calls = n[2];
				image->sent = n[3] + n[4] + n[8];
				image->no_exit = n[5];
				image->missed = n[6];
				image->not_chosen = n[7];
				image->notes = n[8];
			}
		}
	}
	if (in) {
		fclose(in);
	}
}

static void note_event(struct work *work, const bt_message *message)
{
	const bt_event *event = bt_message_event_borrow_event_const(message);
	const enum kind kind = kind_of(work, bt_event_borrow_class_const(event));

	if (kind == KIND_OTHER) {
		return;
	}

	const int64_t vpid = vpid_of(event);
	struct syscalls_process *process = process_of(work, vpid);

	if (!process) {
		return;
	}
	process->events++;
	switch (kind) {
	case KIND_ENTRY:
		process->entries++;
		work->report->entries++;
		return;
	case KIND_EXIT:
		process->exits++;
		work->report->exits++;
		return;
	case KIND_START:
		note_start(work, event, vpid);
		break;
	case KIND_END:
		note_end(work, event, vpid);
		break;
	default:
		break;
	}
	work->report->notes++;
}

static bt_graph_simple_sink_component_consume_func_status consume(
	bt_message_iterator *iterator, void *user)
{
	struct work *work = user;
	bt_message_array_const messages;
	uint64_t count;
	const bt_message_iterator_next_status status =
		bt_message_iterator_next(iterator, &messages, &count);

	if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END) {
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END;
	}
	if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_AGAIN) {
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_AGAIN;
	}
	if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_ERROR;
	}
	for (uint64_t i = 0; i < count; i++) {
		const bt_message *message = messages[i];
		uint64_t lost;

		switch (bt_message_get_type(message)) {
		case BT_MESSAGE_TYPE_EVENT:
			note_event(work, message);
			break;
		case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
			if (bt_message_discarded_events_get_count(message, &lost) ==
				BT_PROPERTY_AVAILABILITY_AVAILABLE) {
				work->report->discarded_events += lost;
			} else {
				work->report->discarded_unknown = true;
			}
			break;
		case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
			if (bt_message_discarded_packets_get_count(message, &lost) ==
				BT_PROPERTY_AVAILABILITY_AVAILABLE) {
				work->report->discarded_packets += lost;
			} else {
				work->report->discarded_unknown = true;
			}
			break;
		default:
			break;
		}
		bt_message_put_ref(message);
	}
	return work->no_memory ? BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_MEMORY_ERROR
			       : BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK;
}

/* Adds the counts of the images to their processes. */
static void add_images(struct work *work)
{
	for (size_t i = 0; i < work->image_count; i++) {
		const struct image *image = &work->images[i];
		struct syscalls_process *process = process_of(work, image->vpid);

		if (process) {
			process->images++;
			process->reports += image->has_end;
			process->calls += image->calls;
			process->sent += image->sent;
			process->no_exit += image->no_exit;
			process->missed += image->missed;
			process->not_chosen += image->not_chosen;
			process->notes += image->notes;
			if (image->name[0]) {
				snprintf(process->name, sizeof(process->name), "%s", image->name);
			}
		}
	}
}

enum tdm_status syscalls_report_read(const char *dir, const char *log_path,
	struct syscalls_report *report, struct tdm_error *err)
{
	struct work *work = calloc(1, sizeof(*work));
	bt_graph *graph = bt_graph_create(0);
	enum tdm_status status = TDM_ERR_NOMEM;
	size_t traces = 0;

	memset(report, 0, sizeof(*report));
	if (!work || !graph) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for the report");
		goto out;
	}
	work->report = report;
	status = syscalls_graph_build(graph, dir, consume, work, &traces, err);
	report->trace_count = traces;
	if (status != TDM_OK || traces == 0) {
		goto out; /* no program registered with LTTng: an empty report */
	}

	bt_graph_run_status run;

	do {
		run = bt_graph_run(graph);
	} while (run == BT_GRAPH_RUN_STATUS_AGAIN);
	if (run != BT_GRAPH_RUN_STATUS_OK) {
		status = syscalls_graph_fail(dir, err);
		goto out;
	}
	read_log(work, log_path);
	add_images(work);
out:
	if (work) {
		free(work->images);
	}
	free(work);
	bt_graph_put_ref(graph);
	return status;
}

void syscalls_report_release(struct syscalls_report *report)
{
	free(report->processes);
	report->processes = NULL;
}
