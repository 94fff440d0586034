/* SPDX-License-Identifier: MIT */
/*
 * sync_guest.h - one guest kept in time with, by a thread of its own, from its first exchange to its finished files.
 */
#ifndef CLI_SYNC_GUEST_H
#define CLI_SYNC_GUEST_H

#include "sync_log.h"
#include <semaphore.h>
#include <tandem/log.h>

struct sync_guest_options {
	const char *name;
	struct tdm_address address; /* numeric */
	const char *clock;          /* ftrace's name, at both ends */
	bool kernel_stamps;
	bool use_kvm; /* ask KVM for the exact relation where the clock is x86-tsc */
	const struct tdm_secret *secret; /* NULL = none */
	const char *dir;
	uint64_t target_bound_ns; /* 0 = none */
	const struct tdm_log *log;
	int interrupt_fd; /* readable while Ctrl-C waits to be taken: nothing is waited for then; 0 = none */

	/* What the corrections service sends: whole lines, as they become final; from the guest's thread. May be NULL. */
	void (*lines)(void *user, const char *text, size_t text_bytes);
	void *user;

	/* Bursts of several guests at once would be each other's load: this many may run at a time. NULL = any. */
	sem_t *gate;
};

/* What became of one guest. */
struct sync_outcome {
	enum tdm_status status; /* TDM_OK: both files are complete */
	struct tdm_error err;
	bool has_files;
	struct tdm_quality quality;
	size_t segments;
	char breaks_text[SYNC_BREAKS_BYTES]; /* kinds and places of what is between them */
	uint64_t host_unit_hz, guest_unit_hz;
	uint64_t lost;       /* probes unanswered */
	uint64_t pairs;      /* readings of this host's clock by the guest */
	uint32_t breaks;     /* connections that ended early */
	bool is_delayed;     /* the peer lacks TCP_NODELAY */
	bool is_unstable;    /* the guest's TSCs drift apart */
	bool lacks_stamps;   /* kernel stamps were asked for and could not be had */
	bool lacks_end;      /* the last burst failed: the end is extrapolated */
	enum sync_kvm kvm;   /* what KVM's own numbers were worth */
	uint32_t kvm_ended;  /* VMs that ended while we looked, or changed again and again */
	uint64_t kvm_differ; /* SYNC_KVM_DIFFERS: by so many host units */
};

struct sync_guest; /* opaque */

/** Borrows what @p options points to, for its life. @return NULL with @p err filled. */
struct sync_guest *sync_guest_create(
	const struct sync_guest_options *options, struct tdm_error *err);

/** Starts the thread; the guest is connected to and the first burst done. Waits for neither. */
enum tdm_status sync_guest_start(struct sync_guest *guest, struct tdm_error *err);

/**
 * Waits until the first burst is done or has failed.
 * @retval TDM_ERR_PEER, TDM_ERR_IO  It failed; the thread goes on trying unless the reason is lasting.
 */
enum tdm_status sync_guest_await(struct sync_guest *guest, struct tdm_error *err);

/** Once sync_guest_await() failed: true where the reason is lasting (a wrong secret, a clock that it lacks), so that nothing is tried again. */
bool sync_guest_gave_up(const struct sync_guest *guest);

/** Asks the thread for its last burst and its files; returns at once. */
void sync_guest_stop(struct sync_guest *guest);

/** Waits for the thread: for its last burst ten seconds at most, less where the interrupt_fd becomes readable. */
void sync_guest_join(struct sync_guest *guest, struct sync_outcome *outcome);

/** Ends the thread, and removes the files that it has written: of a start that failed nothing is left. */
void sync_guest_discard(struct sync_guest *guest);
void sync_guest_destroy(struct sync_guest *guest);

/** Half the gap at the latest burst, in host units; 0 = not known yet. Thread-safe. */
uint64_t sync_guest_bound(struct sync_guest *guest);

#endif
