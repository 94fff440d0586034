/* SPDX-License-Identifier: MIT */
/*
 * print_text.c - libtraceevent behind a bounded interface.
 */
#include "print_guard_priv.h"
#include "print_trial_priv.h"
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tandem/buffer.h>
#include <tandem/cursor.h>
#include <tandem/print_text.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

/* No format of a kernel names so many values; a hostile one could chain without end. */
#define MAX_NAMES 4096
#define MAX_DEPTH 64

/* What the library made of one event class. */
struct printed {
	const struct tdm_event_class *event_class;
	struct tep_event
		*event; /* NULL: the library does not understand the format, or must not see it */
	struct print_guard guard;

	struct field_names {
		struct field_names *next;
		const char *field; /* owned by the library */
		struct tdm_value_name *names;
		size_t count;
	} * fields;
};

struct tdm_print_text {
	struct tdm_trace *trace;
	struct tep_handle *tep;
	struct tep_plugin_list *plugins;
	struct trace_seq text;
	bool has_symbols; /* kallsyms, printk formats and command lines were given to the library */
	struct printed *printed; /* open addressing by event id, a power of two */
	size_t printed_room, printed_count;
	/* The record that is printed, and zeros behind it: what the library reads beyond a record is nobody's memory. */
	uint8_t *record;
	size_t record_room, record_bytes;
	struct print_trial trial;
};

/*
 * The library's plugins expect its functions in the global scope, but whoever loads a babeltrace2 plugin keeps what it
 * links to local.
 */
static void make_library_global(void)
{
	Dl_info info;

	if (dladdr((const void *)(uintptr_t)tep_alloc, &info) && info.dli_fname) {
		void *const again = dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);

		if (again) {
			dlclose(again);
		}
	}
}

struct tdm_print_text *tdm_print_text_create(struct tdm_trace *trace)
{
	const struct tdm_schema *const schema = tdm_trace_get_schema(trace);
	const struct tdm_trace_info *const info = tdm_trace_get_info(trace);
	struct tdm_print_text *const print = calloc(1, sizeof(*print));

	if (!print) {
		return NULL;
	}
	tep_set_loglevel(TEP_LOG_NONE);
	print->trace = trace;
	print->tep = tep_alloc();
	print->printed_room = 256;
	print->printed = calloc(print->printed_room, sizeof(*print->printed));
	if (!print->tep || !print->printed) {
		tdm_print_text_destroy(print);
		return NULL;
	}
	trace_seq_init(&print->text);
	tep_set_file_bigendian(
		print->tep, tdm_schema_big_endian(schema) ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_local_bigendian(print->tep,
		__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(print->tep, (int)tdm_schema_long_bytes(schema));
	if (info->cpu_count <= INT32_MAX) {
		tep_set_cpus(print->tep, (int)info->cpu_count);
	}
	make_library_global();
	print->plugins = tep_load_plugins(print->tep);
	return print;
}

void tdm_print_text_destroy(struct tdm_print_text *print)
{
	if (!print) {
		return;
	}
	for (size_t i = 0; print->printed && i < print->printed_room; i++) {
		struct field_names *next;

		for (struct field_names *field = print->printed[i].fields; field; field = next) {
			next = field->next;
			free(field->names);
			free(field);
		}
	}
	free(print->printed);
	if (print->plugins) {
		tep_unload_plugins(print->plugins, print->tep);
	}
	if (print->text.buffer) {
		trace_seq_destroy(&print->text);
	}
	print_trial_end(&print->trial);
	if (print->record) {
		munmap(print->record, print->record_room);
	}
	tep_free(print->tep);
	free(print);
}

static void give_text(struct tdm_print_text *print, enum tdm_trace_text which,
	int (*take)(struct tep_handle *tep, const char *text))
{
	struct tdm_buffer text = { 0 };

	/* Addresses stay numbers where a table is missing or damaged. */
	if (tdm_trace_read_text(print->trace, which, &text, NULL) == TDM_OK && text.size > 0 &&
		(which != TDM_TEXT_PRINTK_FORMATS ||
			print_guard_printk((const char *)text.bytes, text.size)) &&
		tdm_buffer_append(&text, "", 1) == TDM_OK) {
		(void)take(print->tep, (const char *)text.bytes);
	}
	tdm_buffer_release(&text);
}

static void give_symbols(struct tdm_print_text *print)
{
	print->has_symbols = true;
	give_text(print, TDM_TEXT_KALLSYMS, tep_parse_kallsyms);
	give_text(print, TDM_TEXT_PRINTK_FORMATS, tep_parse_printk_formats);
	give_text(print, TDM_TEXT_SAVED_CMDLINES, tep_parse_saved_cmdlines);
}

static size_t slot_of(const struct printed *printed, size_t room, uint32_t id)
{
	size_t at = (id * 2654435761u) & (room - 1);

	while (printed[at].event_class && printed[at].event_class->id != id) {
		at = (at + 1) & (room - 1);
	}
	return at;
}

static bool grow(struct tdm_print_text *print)
{
	const size_t room = 2 * print->printed_room;
	struct printed *const printed = calloc(room, sizeof(*printed));

	if (!printed) {
		return false;
	}
	for (size_t i = 0; i < print->printed_room; i++) {
		if (print->printed[i].event_class) {
			printed[slot_of(printed, room, print->printed[i].event_class->id)] =
				print->printed[i];
		}
	}
	free(print->printed);
	print->printed = printed;
	print->printed_room = room;
	return true;
}

static const char *field_of(const struct tep_print_arg *arg)
{
	for (unsigned int depth = 0; arg && depth < MAX_DEPTH; depth++) {
		if (arg->type == TEP_PRINT_FIELD) {
			return arg->field.name;
		}
		if (arg->type != TEP_PRINT_TYPE) {
			return NULL;
		}
		arg = arg->typecast.item;
	}
	return NULL;
}

static void add_names(struct printed *printed, const struct tep_print_arg *value,
	const struct tep_print_flag_sym *list)
{
	const char *const name = field_of(value);
	size_t count = 0;

	for (const struct tep_print_flag_sym *item = list; item && count < MAX_NAMES;
		item = item->next) {
		count++;
	}
	if (!name || count == 0) {
		return;
	}

	struct field_names *const field = calloc(1, sizeof(*field));
	struct tdm_value_name *const names = calloc(count, sizeof(*names));

	if (!field || !names) {
		free(field);
		free(names);
		return;
	}
	for (; field->count < count; list = list->next) {
		char *end = NULL;

		errno = 0;
		names[field->count].value = list->value ? strtoull(list->value, &end, 0) : 0;
		names[field->count].name = list->str ? list->str : "";
		if (!end || end == list->value || errno) {
			count--;
			continue;
		}
		field->count++;
	}
	field->field = name;
	field->names = names;
	field->next = printed->fields;
	printed->fields = field;
}

/* Value names stand anywhere among the arguments of the format, also inside conditions. */
static void find_names(struct printed *printed, const struct tep_print_arg *arg, unsigned int depth)
{
	if (depth > MAX_DEPTH) {
		return;
	}
	for (; arg; arg = arg->next) {
		switch (arg->type) {
		case TEP_PRINT_SYMBOL:
			add_names(printed, arg->symbol.field, arg->symbol.symbols);
			break;
		case TEP_PRINT_FLAGS:
			add_names(printed, arg->flags.field, arg->flags.flags);
			break;
		case TEP_PRINT_TYPE:
			find_names(printed, arg->typecast.item, depth + 1);
			break;
		case TEP_PRINT_OP:
			find_names(printed, arg->op.left, depth + 1);
			find_names(printed, arg->op.right, depth + 1);
			break;
		default:
			break;
		}
	}
}

/* @return The copy of a record that has room behind it; NULL without memory. */
static uint8_t *with_room(
	struct tdm_print_text *print, const uint8_t *payload, uint32_t payload_bytes)
{
	const size_t room = (size_t)payload_bytes + PRINT_GUARD_ROOM_BYTES;

	if (print->record && print->record_room < room) {
		munmap(print->record, print->record_room);
		print->record = NULL;
	}
	if (!print->record) {
		void *const record = mmap(NULL, room, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (record == MAP_FAILED) {
			return NULL;
		}
		print->record = record;
		print->record_room = room;
		print->record_bytes = 0;
	}
	memcpy(print->record, payload, payload_bytes);
	if (print->record_bytes > payload_bytes) {
		memset(print->record + payload_bytes, 0, print->record_bytes - payload_bytes);
	}
	print->record_bytes = payload_bytes;
	return print->record;
}

static void print_record(struct tdm_print_text *print, uint8_t *record, uint32_t record_bytes,
	uint32_t cpu, uint64_t time_ns)
{
	struct tep_record given = {
		.ts = time_ns,
		.record_size = (int)record_bytes,
		.size = (int)record_bytes,
		.data = record,
		.cpu = (int)cpu,
		.ref_count = 1,
	};

	tep_print_event(print->tep, &print->text, &given, "%s", TEP_PRINT_INFO);
}

/* @return False: the library does not understand the format, or its texts must not be asked for. */
static bool parse_format(struct tdm_print_text *print, struct printed *printed)
{
	const struct tdm_event_class *const event_class = printed->event_class;
	/* The library wants a NUL behind the text. */
	char *const text = malloc(event_class->text_bytes + 1);

	if (text) {
		memcpy(text, event_class->text, event_class->text_bytes);
		text[event_class->text_bytes] = '\0';
		if (tep_parse_event(print->tep, text, event_class->text_bytes,
			    event_class->system) == TEP_ERRNO__SUCCESS) {
			printed->event = tep_find_event(print->tep, (int)event_class->id);
		}
	}
	free(text);
	if (printed->event && ((printed->event->flags & TEP_EVENT_FL_FAILED) ||
				      !print_guard_args(&printed->guard, event_class,
					      printed->event->print_fmt.args))) {
		printed->event = NULL;
	}
	return printed->event != NULL;
}

/* In the child: the format, and a record of zeros. */
static bool try_format(void *user, const void *what)
{
	static const uint8_t zeros[1 << 16];
	struct tdm_print_text *const print = user;
	struct printed printed = { .event_class = what };
	const uint32_t bytes = printed.event_class->fixed_bytes;

	if (!parse_format(print, &printed)) {
		return false;
	}

	uint8_t *const record = bytes <= sizeof(zeros) ? with_room(print, zeros, bytes) : NULL;

	if (record && print_guard_allows(&printed.guard, record, bytes, false)) {
		trace_seq_reset(&print->text);
		print_record(print, record, bytes, 0, 0);
	}
	return true;
}

/* What the library makes of a class; parsed at the first question. NULL without memory. */
static struct printed *printed_of(
	struct tdm_print_text *print, const struct tdm_event_class *event_class)
{
	size_t at = slot_of(print->printed, print->printed_room, event_class->id);

	if (print->printed[at].event_class) {
		return &print->printed[at];
	}
	if (2 * print->printed_count >= print->printed_room) {
		if (!grow(print)) {
			return NULL;
		}
		at = slot_of(print->printed, print->printed_room, event_class->id);
	}

	struct printed *const printed = &print->printed[at];

	printed->event_class = event_class;
	print->printed_count++;

	if (event_class->text && print_guard_text(event_class->text, event_class->text_bytes) &&
		print_trial_passes(&print->trial, try_format, print, event_class,
			tdm_schema_count(tdm_trace_get_schema(print->trace)))) {
		(void)parse_format(print, printed);
	}
	if (printed->event) {
		find_names(printed, printed->event->print_fmt.args, 0);
	}
	return printed;
}

static bool is_ftrace(const struct tdm_event_class *event_class, const char *name)
{
	return strcmp(event_class->system, "ftrace") == 0 && strcmp(event_class->name, name) == 0;
}

/* trace-cmd shows stacks itself, a line for each entry; the library's format would stop at eight. */
static bool print_stack(struct tdm_print_text *print, const struct tdm_event_class *event_class,
	const uint8_t *payload, uint32_t payload_bytes)
{
	const struct tdm_field *const callers = tdm_event_class_field(event_class, "caller");
	const bool big_endian = tdm_schema_big_endian(tdm_trace_get_schema(print->trace));
	struct tdm_span span;

	if (!is_ftrace(event_class, "kernel_stack") || !callers || !callers->is_array ||
		callers->element_bytes == 0 || callers->element_bytes > 8 ||
		!tdm_field_span(callers, payload, payload_bytes, big_endian, &span)) {
		return false;
	}
	trace_seq_puts(&print->text, "<stack trace >\n");
	for (uint32_t at = 0; at + callers->element_bytes <= span.size_bytes;
		at += callers->element_bytes) {
		const uint64_t address =
			tdm_load_uint(span.bytes + at, callers->element_bytes, big_endian);
		const char *const name = tep_find_function(print->tep, address);

		/* The kernel ends a short stack by all ones. */
		if (address == UINT64_MAX ||
			(callers->element_bytes == 4 && address == UINT32_MAX)) {
			break;
		}
		if (name) {
			trace_seq_printf(&print->text, "=> %s (%" PRIx64 ")\n", name, address);
		} else {
			trace_seq_printf(&print->text, "=> %" PRIx64 "\n", address);
		}
	}
	return true;
}

/* A fixed integer field of a record by name; 0 where there is none. */
static uint64_t value_of(const struct tdm_print_text *print,
	const struct tdm_event_class *event_class, const char *name, const uint8_t *payload,
	uint32_t payload_bytes)
{
	const struct tdm_field *const field = tdm_event_class_field(event_class, name);
	const bool big_endian = tdm_schema_big_endian(tdm_trace_get_schema(print->trace));
	struct tdm_span span;

	if (!field || field->is_array || field->element_bytes == 0 || field->element_bytes > 8 ||
		field->kind == TDM_FIELD_TEXT ||
		!tdm_field_span(field, payload, payload_bytes, big_endian, &span) ||
		span.size_bytes != field->element_bytes) {
		return 0;
	}
	return tdm_load_uint(span.bytes, span.size_bytes, big_endian);
}

/* 13 columns, with a mark for what took long. */
static void print_duration(struct trace_seq *text, uint64_t duration_ns)
{
	const char *const mark = duration_ns > 1000000000 ? "$ "
				 : duration_ns > 1000000  ? "# "
				 : duration_ns > 100000   ? "! "
				 : duration_ns > 10000    ? "+ "
							  : "  ";
	char number[40];
	const int length = snprintf(number, sizeof(number), "%" PRIu64 ".%03" PRIu64,
		duration_ns / 1000, duration_ns % 1000);

	trace_seq_printf(text, "%s%s us %*s", mark, number, length < 7 ? 7 - length : 0, "");
}

/*
 * Function graphs as trace-cmd draws them. It folds the exit of a leaf into its entry, for which it looks ahead; here each
 * event has its own text.
 */
static bool print_graph(struct tdm_print_text *print, const struct tdm_event_class *event_class,
	const uint8_t *payload, uint32_t payload_bytes)
{
	const bool entry = is_ftrace(event_class, "funcgraph_entry");

	if (!entry && !is_ftrace(event_class, "funcgraph_exit")) {
		return false;
	}

	const uint64_t depth = value_of(print, event_class, "depth", payload, payload_bytes);
	const int indent = depth < 500 ? 2 * (int)depth : 1000;

	if (entry) {
		const uint64_t address =
			value_of(print, event_class, "func", payload, payload_bytes);
		const char *const name = tep_find_function(print->tep, address);

		trace_seq_printf(&print->text, "%13s|  %*s", "", indent, "");
		if (name) {
			trace_seq_printf(&print->text, "%s() {", name);
		} else {
			trace_seq_printf(&print->text, "%" PRIx64 "() {", address);
		}
		return true;
	}
	print_duration(&print->text,
		value_of(print, event_class, "rettime", payload, payload_bytes) -
			value_of(print, event_class, "calltime", payload, payload_bytes));
	trace_seq_printf(&print->text, "|  %*s}", indent, "");
	return true;
}

const char *tdm_print_text_of(struct tdm_print_text *print,
	const struct tdm_event_class *event_class, const uint8_t *payload, uint32_t payload_bytes,
	uint32_t cpu, uint64_t time_ns, size_t *size_bytes)
{
	struct printed *const printed = printed_of(print, event_class);

	if (!printed || !printed->event ||
		!print_guard_allows(&printed->guard, payload, payload_bytes,
			tdm_schema_big_endian(tdm_trace_get_schema(print->trace)))) {
		return NULL;
	}
	if (!print->has_symbols) {
		give_symbols(print);
	}
	trace_seq_reset(&print->text);
	if (!print_stack(print, event_class, payload, payload_bytes) &&
		!print_graph(print, event_class, payload, payload_bytes)) {
		uint8_t *const copy = with_room(print, payload, payload_bytes);

		if (!copy) {
			return NULL;
		}

		print_record(print, copy, payload_bytes, cpu, time_ns);
	}
	trace_seq_terminate(&print->text);
	*size_bytes = strlen(print->text.buffer);
	return print->text.buffer;
}

size_t tdm_print_text_value_names(struct tdm_print_text *print,
	const struct tdm_event_class *event_class, const char *field_name,
	const struct tdm_value_name **names)
{
	const struct printed *const printed = printed_of(print, event_class);

	for (const struct field_names *field = printed ? printed->fields : NULL; field;
		field = field->next) {
		if (strcmp(field->field, field_name) == 0) {
			*names = field->names;
			return field->count;
		}
	}
	return 0;
}
