/* SPDX-License-Identifier: MIT */
/*
 * ctf_metadata.h - the text of a CTF 1.8 trace's metadata.
 *
 * Member names get one underscore in front, which readers take off, so that no name is a keyword; names that are no C
 * identifiers are mapped to one, and kept apart where that makes two the same.
 */
#ifndef TANDEM_CTF_METADATA_H
#define TANDEM_CTF_METADATA_H

#include "ctf_packet.h"
#include <tandem/buffer.h>
#include <tandem/names.h>

/* An offset as a clock's block tells it: babeltrace2 takes no negative one but in seconds. */
struct tdm_ctf_offset {
	int64_t seconds,
		rest_ns; /* "offset_s" and "offset" of a clock of 1 GHz; rest_ns is never negative */
};

/** The offset @p offset_ns less @p bias_ns, which is in whole seconds. */
static inline struct tdm_ctf_offset tdm_ctf_split_offset(int64_t offset_ns, uint64_t bias_ns)
{
	const int64_t rest_ns = offset_ns % 1000000000;

	if (offset_ns >= 0 && (uint64_t)offset_ns >= bias_ns) {
		return (struct tdm_ctf_offset){ 0, offset_ns - (int64_t)bias_ns };
	}
	return (struct tdm_ctf_offset){
		.seconds = offset_ns / 1000000000 - (rest_ns < 0) - (int64_t)(bias_ns / 1000000000),
		.rest_ns = rest_ns + (rest_ns < 0 ? 1000000000 : 0),
	};
}

/* One environment entry. */
struct tdm_ctf_env {
	const char *name; /* a C identifier */
	const char *text; /* NULL: the number */
	int64_t number;
};

/* One member of the event context, or of a made-up event. */
struct tdm_ctf_member {
	const char *name; /* without underscore */
	bool is_text;     /* a string; else an integer */
	uint32_t size_bytes;
	bool is_signed;
	bool is_list; /* a sequence of 64-bit addresses; size_bytes are those of its length */
};

/* What the metadata says of the trace as a whole. All pointers are borrowed. */
struct tdm_ctf_trace {
	const struct tdm_ctf_layout *layout;
	const char *clock_name, *clock_description;
	uint8_t clock_uuid[16];
	int64_t clock_offset_ns;
	uint64_t clock_bias_ns; /* to be taken off again; whole seconds */
	const struct tdm_ctf_env *env;
	size_t env_count;
	const struct tdm_ctf_member *context; /* of every event */
	size_t context_count;
};

/** Appends everything before the events. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_metadata_begin(struct tdm_buffer *out, const struct tdm_ctf_trace *trace);

/** Appends one event class. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_metadata_event(
	struct tdm_buffer *out, const struct tdm_shown_class *shown, uint32_t id);

/** Appends an event class that no input has. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_metadata_made_up(struct tdm_buffer *out, const char *name, uint32_t id,
	const struct tdm_ctf_member *members, size_t member_count);

/** Appends one line of an environment. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_metadata_env(struct tdm_buffer *out, const struct tdm_ctf_env *env);

/** Appends its value alone. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_metadata_env_value(struct tdm_buffer *out, const struct tdm_ctf_env *env);

/** Writes a UUID as text. */
void tdm_ctf_uuid_text(const uint8_t uuid[16], char text[37]);

#endif
