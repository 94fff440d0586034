/* SPDX-License-Identifier: MIT */
#include "ctf_metadata.h"
#include "copy_plan.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/utf8.h>

void tdm_ctf_uuid_text(const uint8_t uuid[16], char text[37])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10) {
			*text++ = '-';
		}
		*text++ = digits[uuid[i] >> 4];
		*text++ = digits[uuid[i] & 15];
	}
	*text = '\0';
}

/* A quoted TSDL string: what is no UTF-8 as \xNN in the text itself, quotes, backslashes and control bytes escaped. */
static enum tdm_status put_quoted(struct tdm_buffer *out, const char *text)
{
	struct tdm_buffer shown = { 0 };
	enum tdm_status status =
		tdm_utf8_append_shown(&shown, (const uint8_t *)text, strnlen(text, 4096));

	if (status == TDM_OK) {
		status = tdm_buffer_append(out, "\"", 1);
	}
	for (size_t i = 0; i < shown.size && status == TDM_OK; i++) {
		const uint8_t byte = shown.bytes[i];

		if (byte == '"' || byte == '\\') {
			status = tdm_buffer_printf(out, "\\%c", byte);
		} else if (byte < 0x20 || byte == 0x7f) {
			status = tdm_buffer_printf(out, "\\%03o", byte);
		} else {
			status = tdm_buffer_append(out, &byte, 1);
		}
	}
	if (status == TDM_OK) {
		status = tdm_buffer_append(out, "\"", 1);
	}
	tdm_buffer_release(&shown);
	return status;
}

static enum tdm_status put_integer(
	struct tdm_buffer *out, uint32_t size_bytes, bool is_signed, unsigned int base)
{
	return tdm_buffer_printf(out,
		"integer { size = %" PRIu32
		"; align = 8; signed = %d; encoding = none; base = %u; }",
		size_bytes * 8, is_signed, base);
}

enum tdm_status tdm_ctf_metadata_env_value(struct tdm_buffer *out, const struct tdm_ctf_env *env)
{
	return env->text ? put_quoted(out, env->text)
			 : tdm_buffer_printf(out, "%" PRId64, env->number);
}

enum tdm_status tdm_ctf_metadata_env(struct tdm_buffer *out, const struct tdm_ctf_env *env)
{
	enum tdm_status status = tdm_buffer_printf(out, "\t%s = ", env->name);

	if (status == TDM_OK) {
		status = tdm_ctf_metadata_env_value(out, env);
	}
	return status == TDM_OK ? tdm_buffer_printf(out, ";\n") : status;
}

static enum tdm_status put_env(struct tdm_buffer *out, const struct tdm_ctf_trace *trace)
{
	enum tdm_status status = tdm_buffer_printf(out, "env {\n");

	for (size_t i = 0; i < trace->env_count && status == TDM_OK; i++) {
		status = tdm_ctf_metadata_env(out, &trace->env[i]);
	}
	return status == TDM_OK ? tdm_buffer_printf(out, "};\n\n") : status;
}

static enum tdm_status put_members(
	struct tdm_buffer *out, const struct tdm_ctf_member *members, size_t count)
{
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		if (members[i].is_list) {
			status = tdm_buffer_printf(out, "\t\tuint%" PRIu32 "_t __%s_length;\n\t\t",
				members[i].size_bytes * 8, members[i].name);
			if (status == TDM_OK) {
				status = put_integer(out, 8, false, 16);
			}
			if (status == TDM_OK) {
				status = tdm_buffer_printf(out, " _%s[__%s_length];\n",
					members[i].name, members[i].name);
			}
			continue;
		}
		status = tdm_buffer_printf(out, "\t\t");
		if (status == TDM_OK) {
			status = members[i].is_text
					 ? tdm_buffer_printf(out, "string { encoding = UTF8; }")
					 : put_integer(out, members[i].size_bytes,
						   members[i].is_signed, 10);
		}
		if (status == TDM_OK) {
			status = tdm_buffer_printf(out, " _%s;\n", members[i].name);
		}
	}
	return status;
}

static enum tdm_status put_clock(struct tdm_buffer *out, const struct tdm_ctf_trace *trace)
{
	const struct tdm_ctf_offset offset =
		tdm_ctf_split_offset(trace->clock_offset_ns, trace->clock_bias_ns);
	char uuid[37];
	enum tdm_status status;

	tdm_ctf_uuid_text(trace->clock_uuid, uuid);
	/* "freq" stands before "offset": a reader that scales as it goes needs it first. */
	status = tdm_buffer_printf(out,
		"clock {\n\tname = \"%s\";\n\tuuid = \"%s\";\n\tdescription = ", trace->clock_name,
		uuid);
	if (status == TDM_OK) {
		status = put_quoted(out, trace->clock_description);
	}
	if (status != TDM_OK) {
		return status;
	}
	status = tdm_buffer_printf(out, ";\n\tfreq = 1000000000;\n");
	if (status == TDM_OK && offset.seconds) {
		status = tdm_buffer_printf(out, "\toffset_s = %" PRId64 ";\n", offset.seconds);
	}
	if (status == TDM_OK) {
		status = tdm_buffer_printf(out, "\toffset = %" PRId64 ";\n", offset.rest_ns);
	}
	return status == TDM_OK ? tdm_buffer_printf(out, "\tabsolute = true;\n};\n\n") : status;
}

static enum tdm_status put_event_header(struct tdm_buffer *out, const struct tdm_ctf_trace *trace)
{
	const char *const clock = trace->clock_name;
	const bool compact = trace->layout->compact;

	return tdm_buffer_printf(out,
		"struct event_header {\n"
		"\tenum : integer { size = %d; align = %d; signed = false; } { compact = 0 ... %d, extended = %d } id;\n"
		"\tvariant <id> {\n"
		"\t\tstruct {\n"
		"\t\t\tinteger { size = %d; align = %d; signed = false; map = clock.%s.value; } timestamp;\n"
		"\t\t} compact;\n"
		"\t\tstruct {\n"
		"\t\t\tuint32_t id;\n"
		"\t\t\tinteger { size = 64; align = 8; signed = false; map = clock.%s.value; } timestamp;\n"
		"\t\t} extended;\n"
		"\t} v;\n"
		"} align(8);\n\n",
		compact ? 5 : 16, compact ? 1 : 8, compact ? 30 : 65534, compact ? 31 : 65535,
		compact ? 27 : 32, compact ? 1 : 8, clock, clock);
}

enum tdm_status tdm_ctf_metadata_begin(struct tdm_buffer *out, const struct tdm_ctf_trace *trace)
{
	const char *const clock = trace->clock_name;
	char uuid[37];
	enum tdm_status status;

	tdm_ctf_uuid_text(trace->layout->trace_uuid, uuid);
	status = tdm_buffer_printf(out,
		"/* CTF 1.8 */\n\n"
		"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
		"typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
		"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
		"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n\n"
		"trace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"%s\";\n\tbyte_order = %s;\n"
		"\tpacket.header := struct {\n\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n"
		"\t\tuint32_t stream_id;\n\t\tuint64_t stream_instance_id;\n\t};\n};\n\n",
		uuid, trace->layout->big_endian ? "be" : "le");
	if (status == TDM_OK) {
		status = put_env(out, trace);
	}
	if (status == TDM_OK) {
		status = put_clock(out, trace);
	}
	if (status == TDM_OK) {
		status = put_event_header(out, trace);
	}
	if (status == TDM_OK) {
		status = tdm_buffer_printf(out,
			"stream {\n\tid = 0;\n\tevent.header := struct event_header;\n"
			"\tpacket.context := struct {\n"
			"\t\tinteger { size = 64; align = 8; signed = false; map = clock.%s.value; } timestamp_begin;\n"
			"\t\tinteger { size = 64; align = 8; signed = false; map = clock.%s.value; } timestamp_end;\n"
			"\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n"
			"\t\tuint64_t events_discarded;\n\t\tuint32_t cpu_id;\n\t};\n"
			"\tevent.context := struct {\n",
			clock, clock);
	}
	if (status == TDM_OK) {
		status = put_members(out, trace->context, trace->context_count);
	}
	return status == TDM_OK ? tdm_buffer_printf(out, "\t};\n};\n\n") : status;
}

/* Names of a structure's members, so far. */
struct member_names {
	char (*of)[TDM_MEMBER_NAME_BYTES]; /* owned */
	size_t count;
};

static bool is_used(const void *user, const char *name)
{
	const struct member_names *const names = user;

	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->of[i], name) == 0) {
			return true;
		}
	}
	return false;
}

static void take_name(struct member_names *names, const char *name)
{
	memcpy(names->of[names->count++], name, TDM_MEMBER_NAME_BYTES);
}

static unsigned int base_of(const struct tdm_field *field)
{
	return field->kind == TDM_FIELD_POINTER || field->kind == TDM_FIELD_CPUMASK ? 16 : 10;
}

/* One member; every name gets the underscore that readers take off. */
static enum tdm_status put_field(struct tdm_buffer *out, const struct tdm_shown_class *shown_class,
	const struct tdm_shown_field *shown, const char *name, const char *length_name)
{
	const struct tdm_field *const field = &shown->field;
	const bool wide = field->kind == TDM_FIELD_WIDE;
	const bool is_list = tdm_copy_is_list(shown);
	const uint32_t element_bytes = wide ? 8 : field->element_bytes;
	enum tdm_status status;

	if (shown->conversion == TDM_CONVERT_RWBS) {
		return tdm_buffer_printf(out, "\t\tuint32_t _%s;\n", name);
	}
	if (field->kind == TDM_FIELD_TEXT || tdm_shown_is_printk(shown_class, shown)) {
		return tdm_buffer_printf(out, "\t\tstring { encoding = UTF8; } _%s;\n", name);
	}
	if (is_list) {
		status = tdm_buffer_printf(
			out, "\t\tuint%u_t _%s;\n", tdm_copy_length_bytes(field) * 8, length_name);
		if (status != TDM_OK) {
			return status;
		}
	}
	status = tdm_buffer_printf(out, "\t\t");
	if (status == TDM_OK) {
		status = put_integer(
			out, element_bytes, field->kind == TDM_FIELD_SIGNED, base_of(field));
	}
	if (status != TDM_OK) {
		return status;
	}
	if (is_list) {
		return tdm_buffer_printf(out, " _%s[_%s];\n", name, length_name);
	}
	if (wide || field->is_array) {
		return tdm_buffer_printf(out, " _%s[%" PRIu32 "];\n", name,
			element_bytes ? field->size_bytes / element_bytes : 0);
	}
	return tdm_buffer_printf(out, " _%s;\n", name);
}

static enum tdm_status begin_event(struct tdm_buffer *out, const char *name, uint32_t id)
{
	enum tdm_status status = tdm_buffer_printf(out, "event {\n\tname = ");

	if (status == TDM_OK) {
		status = put_quoted(out, name);
	}
	if (status == TDM_OK) {
		status = tdm_buffer_printf(out,
			";\n\tid = %" PRIu32 ";\n\tstream_id = 0;\n\tfields := struct {\n", id);
	}
	return status;
}

enum tdm_status tdm_ctf_metadata_event(
	struct tdm_buffer *out, const struct tdm_shown_class *shown, uint32_t id)
{
	struct member_names names = { 0 };
	enum tdm_status status;

	names.of = calloc(shown->field_count * 2u + 1u, sizeof(*names.of));
	status = names.of ? begin_event(out, shown->name, id) : TDM_ERR_NOMEM;
	for (uint32_t i = 0; i < shown->field_count && status == TDM_OK; i++) {
		const struct tdm_shown_field *const field = &shown->fields[i];
		char name[TDM_MEMBER_NAME_BYTES] = "";
		char length_name[TDM_MEMBER_NAME_BYTES] = "";

		tdm_member_name("", field->field.unique_name, "", is_used, &names, name);
		if (tdm_copy_is_list(field)) {
			tdm_member_name("_", name, "_length", is_used, &names, length_name);
			take_name(&names, length_name);
		}
		take_name(&names, name);
		status = put_field(out, shown, field, name, length_name);
	}
	if (status == TDM_OK) {
		status = tdm_buffer_printf(out, "\t};\n};\n\n");
	}
	free(names.of);
	return status;
}

enum tdm_status tdm_ctf_metadata_made_up(struct tdm_buffer *out, const char *name, uint32_t id,
	const struct tdm_ctf_member *members, size_t member_count)
{
	enum tdm_status status = begin_event(out, name, id);

	if (status == TDM_OK) {
		status = put_members(out, members, member_count);
	}
	return status == TDM_OK ? tdm_buffer_printf(out, "\t};\n};\n\n") : status;
}
