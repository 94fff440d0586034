/* SPDX-License-Identifier: MIT */
/*
 * ir_class.h - babeltrace2's classes for the records of one machine, and the plan by which each record is copied.
 *
 * A plan is made once an event class, at its first record: fields by index, places by offset. Nothing is looked up by
 * name while records flow.
 */
#ifndef IR_CLASS_H
#define IR_CLASS_H

#include "compat.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/machines.h>
#include <tandem/names.h>
#include <tandem/print_text.h>

/* How one member of a structure gets its value. */
enum ir_op {
	IR_U8,
	IR_U16,
	IR_U32,
	IR_U64,
	IR_S8,
	IR_S16,
	IR_S32,
	IR_S64,
	IR_UINT, /* any width and byte order */
	IR_SINT,
	IR_TEXT,      /* char array at a fixed place */
	IR_TEXT_SPAN, /* text that a locator or the record's end bounds */
	IR_ARRAY,     /* integers at a fixed place, a fixed number of them */
	IR_ARRAY_SPAN, /* integers that a locator or the record's end bounds; its length is the member before it */
	IR_PRIO,   /* a priority as LTTng counts it */
	IR_RWBS,   /* block flags as LTTng's integer */
	IR_PRINTK, /* address of a format text: shown as the text */
	IR_ZERO,   /* a common field that this event class lacks */
};

struct ir_member {
	enum ir_op op;
	uint32_t index; /* of the member in its structure; of the array for IR_ARRAY_SPAN */
	uint32_t offset_bytes;
	uint32_t size_bytes;    /* of an integer, or of the whole fixed array or text */
	uint32_t element_bytes; /* of arrays */
	uint32_t element_count;
	bool is_signed;
	const struct tdm_field *field;
};

/* How the records of one shown class become events. */
struct ir_record_plan {
	const struct tdm_shown_class *shown;
	bt_event_class *event_class; /* NULL: could not be made, its records are refused */
	uint32_t least_bytes;        /* a shorter record is not delivered */
	uint16_t pid_offset;         /* UINT16_MAX: unknown */
	bool has_print;              /* a text in the specific context */
	bool teaches;                /* names of tasks */
	uint32_t member_count;       /* of the payload */
	uint32_t context_count;      /* of the common context's common_* members */
	struct ir_member *members;
	struct ir_member *context;
};

/* How the records of one event id find their plan. */
struct ir_record_choice {
	bool known; /* looked at before */
	struct tdm_names_choice names;
	struct ir_record_plan *only; /* NULL: chosen by a number in the record, or not made yet */
};

#define IR_CONTEXT_TID      0
#define IR_CONTEXT_PROCNAME 1
#define IR_CONTEXT_COMMON   2

/* The streams of one machine that share a clock: a stream class and its event classes. */
struct ir_stream_class {
	bt_stream_class *stream_class;
	bt_clock_class *clock_class;
	const char *clock_name;
	struct ir_record_plan **plans; /* by index of the shown class; made at the first record */
	uint32_t plan_count;
	struct ir_record_choice *choices; /* by event id */
	uint32_t choice_count;
};

/* Records that cannot be delivered, by event id. */
struct ir_refused {
	uint32_t event_id;
	const char *name; /* NULL: an id without a format */
	const char *why;
	uint64_t count;
};

struct ir_options {
	bool lttng_names;
	bool symbols;
	bool print;
	uint64_t clock_hz;
	uint64_t bias_ns; /* that clock values have too much; whole seconds */
};

/* One machine as babeltrace2 sees it. */
struct ir_trace {
	const struct tdm_machine *machine;
	const struct tdm_trace_info *info;
	const struct tdm_schema *schema;
	struct tdm_names *names;
	struct tdm_print_text *print; /* NULL: neither symbols nor print */
	struct ir_options options;
	uint64_t mip_version;
	bool big_endian;
	bool has_samples; /* records come with what a sample of perf tells */
	bt_self_component *component;
	bt_trace_class *trace_class;
	bt_trace *trace;
	struct ir_stream_class *classes;
	size_t class_count;
	size_t *class_of_buffer;
	struct tdm_common_field
		commons[TDM_COMMON_FIELDS_MAX]; /* in the context after tid and procname */
	uint32_t common_count;
	struct ir_refused *refused;
	size_t refused_count;
	uint64_t refused_more; /* records of ids that refused has no room for */
	uint64_t bad_places;   /* fields whose locator points out of their record: shown empty */
	struct tdm_buffer scratch; /* text that must be changed to be shown */
};

/**
 * Makes trace class, trace, clock classes and stream classes of a machine.
 * @retval TDM_ERR_NOMEM  babeltrace2 has its own cause appended.
 */
enum tdm_status ir_trace_create(struct ir_trace **trace, const struct tdm_machine *machine,
	const struct ir_options *options, bt_self_component *component, struct tdm_error *err);
void ir_trace_destroy(struct ir_trace *trace);

/** The stream class for streams of a buffer. */
struct ir_stream_class *ir_trace_class_of(struct ir_trace *trace, size_t buffer_index);

/** As ir_record_plan_of(), the long way: makes what is not there yet. */
const struct ir_record_plan *ir_record_plan_find(struct ir_trace *trace,
	struct ir_stream_class *stream_class, uint32_t event_id, const uint8_t *payload,
	uint32_t payload_bytes);

/** The plan for a record; NULL where it cannot be delivered (it is counted then). */
static inline const struct ir_record_plan *ir_record_plan_of(struct ir_trace *trace,
	struct ir_stream_class *stream_class, uint32_t event_id, const uint8_t *payload,
	uint32_t payload_bytes)
{
	const struct ir_record_plan *const plan =
		event_id < stream_class->choice_count ? stream_class->choices[event_id].only : NULL;

	return plan ? plan
		    : ir_record_plan_find(trace, stream_class, event_id, payload, payload_bytes);
}

/** Class of an array whose length is a member of the same structure: of the payload, else of the common context. */
bt_field_class *ir_dynamic_array_class(const struct ir_trace *trace, bt_field_class *element,
	bt_field_class *length, const char *length_name, bool in_payload);

/**
 * An enumeration of the names that the format gives to values of an integer field, under the symbols option.
 * @return NULL where there are none: the field is a plain integer.
 */
bt_field_class *ir_enumeration_class(const struct ir_trace *trace,
	const struct tdm_shown_class *shown, const struct tdm_field *field);

/** Counts a record that is not delivered. @p why lives as long as the trace. */
void ir_trace_refuse(struct ir_trace *trace, uint32_t event_id, const char *name, const char *why);

/**
 * Gives an event its fields. The record must have at least plan->least_bytes.
 * @param procname  Name of the task, procname_bytes long; any bytes.
 */
void ir_event_fill(struct ir_trace *trace, const struct ir_record_plan *plan, bt_event *event,
	const struct tdm_slot *slot, int32_t tid, const char *procname, size_t procname_bytes);

/** Gives an event of a plan with has_print its text; empty where libtraceevent cannot print it. */
void ir_event_print(struct ir_trace *trace, const struct ir_record_plan *plan, bt_event *event,
	const struct tdm_slot *slot, uint32_t cpu);

#endif
