/* SPDX-License-Identifier: MIT */
/*
 * ctf_check_priv.h - shared by the parts of the lint: a trace with its metadata.
 */
#ifndef TANDEM_CTF_CHECK_PRIV_H
#define TANDEM_CTF_CHECK_PRIV_H

#include "ctf_check.h"
#include "tsdl.h"

/* What an event is to the lint. */
enum ctf_event_role {
	CTF_ROLE_OTHER,
	CTF_ROLE_SWITCH,
	CTF_ROLE_KVM,
	CTF_ROLE_DUMP,
	CTF_ROLE_SYNC_GUEST,
	CTF_ROLE_SYNC_HOST,
};

/* One packet of a stream file, to compare an index with. */
struct ctf_packet_place {
	uint64_t offset_bytes, packet_bits, begin;
};

/* The events of one stream class by id. */
struct ctf_stream_events {
	const struct tsdl_stream *stream;
	const struct tsdl_event **by_id; /* by_id_count entries */
	bool *was_met;                   /* likewise: an event of the class was */
	size_t by_id_count;
};

struct ctf_trace_check {
	struct tdm_ctf_checked *checked;
	struct tsdl_metadata metadata;
	struct ctf_stream_events *streams; /* as many as the metadata has */
	uint8_t uuid[16];
	bool has_uuid;
	bool is_lttng; /* the layout of names that Trace Compass calls LTTng 2.9 */
};

/* ctf_check_metadata.c */
enum tdm_status ctf_check_metadata(struct ctf_trace_check *trace);
enum ctf_event_role ctf_event_role(const struct tsdl_event *event);

/* ctf_check_stream.c */
enum tdm_status ctf_check_stream(struct ctf_trace_check *trace, const char *name);

#endif
