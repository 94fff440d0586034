/* SPDX-License-Identifier: MIT */
/*
 * ctf_check.h - lints CTF traces for Trace Compass: what it would refuse, silently leave out, or show wrong.
 */
#ifndef TANDEM_CTF_CHECK_H
#define TANDEM_CTF_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>

struct tdm_ctf_finding {
	bool is_error; /* the trace is not, or not wholly, read; else a view lacks something */
	char *text;    /* owned */
};

/* One vmsync event, see vm_sync.c. */
struct tdm_ctf_sync {
	bool is_guest;   /* vmsync_gh_guest; else vmsync_gh_host */
	int64_t time_ns; /* since the epoch, as Trace Compass counts */
	uint64_t vm_uid, count;
	bool has_thread; /* a sched_switch told who ran on the CPU */
	int32_t tid;
};

/* What was found in one trace. */
struct tdm_ctf_checked {
	char *path; /* owned, as are the rest */
	char *hostname, *clock_uuid;
	bool is_readable, is_kernel, has_kvm, has_state_dump, has_sched_switch;
	bool has_lttng_names; /* the layout that Trace Compass calls LTTng 2.9 */
	uint64_t seen;        /* events that views ask for: tdm_ctf_views_event() */
	int64_t clock_offset_ns;
	uint64_t file_count, packet_count, event_count, discarded;
	int64_t first_kvm_ns; /* of the first KVM entry or exit */
	struct tdm_ctf_sync *syncs;
	size_t sync_count;
	int32_t *dumped; /* threads in the state dump, in order */
	size_t dumped_count;
	struct tdm_ctf_finding *findings;
	size_t finding_count;
	size_t error_count;
};

/**
 * Looks at one trace directory. Faults of the trace are findings.
 * @retval TDM_ERR_NOMEM  @p checked is to be released in any case.
 */
enum tdm_status tdm_ctf_check(const char *path, struct tdm_ctf_checked *checked);

/** What only several traces together show: identities, the guests' sync events. Findings go to the trace they are about. */
enum tdm_status tdm_ctf_check_together(struct tdm_ctf_checked *checked, size_t count);

void tdm_ctf_checked_release(struct tdm_ctf_checked *checked);

/** Adds a finding. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_finding_add(struct tdm_ctf_checked *checked, bool is_error,
	const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
