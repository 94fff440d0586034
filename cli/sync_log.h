/* SPDX-License-Identifier: MIT */
/*
 * sync_log.h - one guest's exchanges on their way into NAME.exchanges and NAME.corrections.
 */
#ifndef CLI_SYNC_LOG_H
#define CLI_SYNC_LOG_H

#include "kvm_looks.h"
#include <stdbool.h>
#include <tandem/estimate.h>
#include <tandem/requester.h>

enum {
	SYNC_BREAKS_BYTES = 200
};

struct sync_log; /* opaque; one thread at a time */

/**
 * Begins a log.
 *
 * @param dir, name  Of the files; copied. The log grows under NAME.exchanges.part until it is complete.
 * @return Owned by the caller; NULL with @p err filled.
 */
struct sync_log *sync_log_create(const char *dir, const char *name, struct tdm_error *err);
void sync_log_destroy(struct sync_log *log);

/** Removes what this log has written, also what is complete; files of an earlier run that it has not replaced stay. */
void sync_log_remove(struct sync_log *log);

/** What the log is about. Called when it is known, before the first burst is added; the strings are copied. */
enum tdm_status sync_log_set_info(
	struct sync_log *log, const struct tdm_exchange_log_info *info, struct tdm_error *err);

/** Adds a burst, with its kernel stamps where @p stamps. */
enum tdm_status sync_log_add_burst(struct sync_log *log, const struct tdm_burst_result *burst,
	bool stamps, struct tdm_error *err);
void sync_log_add_local(
	struct sync_log *log, enum tdm_side side, const struct tdm_sandwich *sandwich);

/** From @p guest on another epoch holds. Numbers are the log's own. */
void sync_log_add_epoch(struct sync_log *log, uint64_t guest, const char *reason);

/** The guest's CPU needs ticks added to its stamps. */
void sync_log_add_cpu(struct sync_log *log, uint32_t cpu, int64_t ticks, uint64_t bound);

/** Samples in the log. */
size_t sync_log_count(const struct sync_log *log);

/**
 * What became final since the last call, as the corrections service sends it. Appended.
 * @param is_last  No burst comes any more: what waits for another one to agree is final too.
 */
enum tdm_status sync_log_lines(
	struct sync_log *log, bool is_last, struct tdm_buffer *lines, struct tdm_error *err);

/** How good the relation is now. */
void sync_log_quality_now(const struct sync_log *log, struct tdm_quality *quality);

/* What KVM's own numbers are worth beside what was measured. */
enum sync_kvm {
	SYNC_KVM_NONE,    /* no VM of this machine, or not asked */
	SYNC_KVM_USED,    /* exactly one VM agrees: its relation is in the file */
	SYNC_KVM_DIFFERS, /* the only VM there is contradicts the exchanges: they are in the file */
	SYNC_KVM_AMBIGUOUS, /* several VMs agree, and not with one another */
};

/**
 * Estimates all there is and replaces NAME.corrections.
 *
 * @param looks    VMs of this machine, of which one may be the guest.
 * @param quality  Receives how good it is.
 * @param kvm      Receives what became of the VMs.
 * @param differ   Receives by how many host units the only VM lies outside what was measured.
 * @retval TDM_ERR_RANGE  No exchange can be used: no file.
 */
enum tdm_status sync_log_save_corrections(struct sync_log *log, const struct kvm_looks *looks,
	struct tdm_quality *quality, enum sync_kvm *kvm, uint64_t *differ, struct tdm_error *err);

/** One exchange as logs keep it. */
struct tdm_exchange_record sync_log_record_of(const struct tdm_exchange_sample *sample);

/** Completes NAME.exchanges. */
enum tdm_status sync_log_finish(struct sync_log *log, struct tdm_error *err);

/** Segments and doubt of the corrections that were saved last, for reports. */
size_t sync_log_segments(const struct sync_log *log);

/** Kinds and places of their breaks, seconds after the first knot; "" where there are none. Owned by the log. */
const char *sync_log_breaks(const struct sync_log *log);

#endif
