/* SPDX-License-Identifier: MIT */
/*
 * sync_guest_priv.h - one guest's state, for the files that keep it.
 */
#ifndef CLI_SYNC_GUEST_PRIV_H
#define CLI_SYNC_GUEST_PRIV_H

#include "sync_guest.h"
#include <pthread.h>
#include <stdatomic.h>

enum phase {
	PHASE_STARTING,
	PHASE_RUNNING,
	PHASE_FAILED
};

struct sync_guest {
	struct sync_guest_options options;
	struct tdm_local_clock clock;
	struct sync_log *log;
	struct tdm_requester *requester;
	struct sync_outcome outcome;
	pthread_t thread;
	bool has_thread;
	int stop_fd;

	pthread_mutex_t lock; /* phase and start_err */
	pthread_cond_t changed;
	enum phase phase;
	struct tdm_error start_err;
	bool is_interrupted;      /* before the guest was reached */
	_Atomic bool is_unwanted; /* its files are removed at its end */
	bool is_lasting; /* the start failed for a reason that trying again does not change */
	_Atomic uint64_t bound;

	uint64_t sequence;
	uint32_t burst_number;
	uint32_t random;
	uint32_t epoch; /* of the agent, at OPENED */
	char boot_id[37];
	const char *pending_epoch; /* the next sample is of another epoch, for this reason */
	bool has_info;
	bool is_steered; /* estimated on trace clocks that are steered, without raw ones beside them */
	uint64_t unix_offset, unix_width;
	bool has_unix;
	uint64_t saved_ns, save_cost_ns;
	uint32_t back_off_ms;
	bool was_hung;
	uint32_t jumps_told;
	uint64_t pairs_refused;
	bool pairs_told;

	struct kvm_looks looks;
};

#define GUEST_INFO(guest, ...)    TDM_INFO((guest)->options.log, __VA_ARGS__)
#define GUEST_WARNING(guest, ...) TDM_WARNING((guest)->options.log, __VA_ARGS__)

/* Takes what the agent told of its own clocks after a burst. */
void sync_guest_take_notes(
	struct sync_guest *guest, const char *notes, size_t size, bool *saw_step);

/* The next burst's time, CLOCK_MONOTONIC; @p began_ns of the session. */
uint64_t sync_guest_next_burst_ns(struct sync_guest *guest, uint64_t began_ns);
struct tdm_burst_plan sync_guest_plan_burst(const struct sync_guest *guest, bool is_edge);

/* Waits for a place among the guests' bursts, but not for long. @return True where it has one: sem_post() it. */
bool sync_guest_enter_gate(struct sync_guest *guest);

/*
 * Asks the guest for readings of this host's clock, where KVM lends it to it, and takes them into the log. After a burst.
 * @param is_lost  Set, with @p err filled, where the connection broke.
 */
enum tdm_status sync_guest_take_pairs(
	struct sync_guest *guest, bool *is_lost, struct tdm_error *err);

/* The header of both files, once the first burst has told what it needs. */
enum tdm_status sync_guest_set_info(struct sync_guest *guest, bool stamps, struct tdm_error *err);

#endif
