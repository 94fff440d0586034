/* SPDX-License-Identifier: MIT */
#include "guest_address.h"
#include "run_command.h"
#include "sync_guest_priv.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
	CONNECT_MS = 5000,
	RECONNECT_MS = 2000, /* while a session runs, and for its last burst */
	TICK_MS = 250,       /* own trace clock against own raw clock */
	UNSEEN_BURSTS = 8,
	BREAKS_TOLD = 4,
	BACK_OFF_MIN_MS = 1000,
	BACK_OFF_MAX_MS = 30000,
	LOG_RESERVE = 4096,
	START_TRIES = 3,
	START_PAUSE_MS = 500,
	END_TRIES = 3,
	END_MS = 10000, /* more tries than that, where the guest is there but slow */
	END_SLOW_MS = 1000,
	END_PAUSE_MS = 200,
	SAVE_COST_SHARE = 5000 /* saving takes at most this part of a CPU */
};

struct sync_guest *sync_guest_create(
	const struct sync_guest_options *options, struct tdm_error *err)
{
	struct sync_guest *guest = calloc(1, sizeof(*guest));

	if (!guest) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a guest");
		return NULL;
	}
	guest->options = *options;
	guest->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&guest->lock, NULL);
	pthread_cond_init(&guest->changed, NULL);
	tdm_random(&guest->random, sizeof(guest->random));

	enum tdm_status status =
		tdm_local_clock_init(&guest->clock, options->clock, options->log, err);

	if (status == TDM_OK) {
		guest->log = sync_log_create(options->dir, options->name, err);
		status = guest->log ? TDM_OK : TDM_ERR_IO;
	}
	if (status != TDM_OK) {
		sync_guest_destroy(guest);
		return NULL;
	}
	return guest;
}

void sync_guest_destroy(struct sync_guest *guest)
{
	if (!guest) {
		return;
	}
	if (guest->has_thread) {
		struct sync_outcome ignored;

		sync_guest_stop(guest);
		sync_guest_join(guest, &ignored);
	}
	tdm_requester_destroy(guest->requester);
	sync_log_destroy(guest->log);
	tdm_local_clock_release(&guest->clock);
	kvm_looks_release(&guest->looks);
	pthread_cond_destroy(&guest->changed);
	pthread_mutex_destroy(&guest->lock);
	if (guest->stop_fd >= 0) {
		close(guest->stop_fd);
	}
	free(guest);
}

uint64_t sync_guest_bound(struct sync_guest *guest)
{
	return guest->bound;
}

static bool is_stopping(const struct sync_guest *guest)
{
	return tdm_socket_wait(guest->stop_fd, TDM_WAIT_READ, -1, 0) == TDM_OK;
}

static bool is_interrupted(const struct sync_guest *guest)
{
	return run_command_interrupt_waits(guest->options.interrupt_fd);
}

static void sample_own_clock(struct sync_guest *guest)
{
	struct tdm_sandwich sandwich;

	if (tdm_local_clock_sample(&guest->clock, &sandwich, NULL) == TDM_OK) {
		sync_log_add_local(guest->log, TDM_SIDE_HOST, &sandwich);
	}
}

/* Sleeps, but for the stop and the ticks of a steered clock. */
static void wait_until(struct sync_guest *guest, uint64_t when_ns)
{
	const bool ticks = guest->clock.trace != guest->clock.raw &&
			   guest->clock.trace != TDM_CLOCK_MARKER && guest->has_info;

	while (tdm_now_ns() < when_ns && !is_stopping(guest)) {
		const uint64_t tick_ns = tdm_deadline_ns(TICK_MS);

		tdm_socket_wait(guest->stop_fd, TDM_WAIT_READ, -1,
			ticks && tick_ns < when_ns ? tick_ns : when_ns);
		if (ticks && tdm_now_ns() < when_ns) {
			sample_own_clock(guest);
		}
	}
}

static enum tdm_status connect_guest(
	struct sync_guest *guest, uint32_t ms, int stop_fd, struct tdm_error *err)
{
	const struct tdm_requester_options options = { .address = guest->options.address,
		.secret = guest->options.secret,
		.clock = guest->options.clock,
		.local = &guest->clock,
		.datagrams = guest->options.kernel_stamps,
		.first_sequence = guest->sequence,
		.timeout_ms = ms,
		.stop_fd = stop_fd };

	guest->requester = tdm_requester_create(&options, err);
	if (!guest->requester) {
		return err->status;
	}

	const struct tdm_requester_peer *peer = tdm_requester_peer(guest->requester);

	/* Another boot is another clock; the same one may have jumped while nobody was connected. */
	if (guest->boot_id[0] && strcmp(guest->boot_id, peer->boot_id) != 0) {
		guest->pending_epoch = "restart";
	} else if (guest->boot_id[0] && peer->epoch != guest->epoch) {
		guest->pending_epoch = "jump";
	}
	snprintf(guest->boot_id, sizeof(guest->boot_id), "%s", peer->boot_id);
	guest->epoch = peer->epoch;
	return TDM_OK;
}

static void disconnect(struct sync_guest *guest)
{
	if (guest->requester) {
		guest->sequence = tdm_requester_next_sequence(guest->requester);
		tdm_requester_destroy(guest->requester);
		guest->requester = NULL;
	}
}

/* KVM's numbers, read with each burst: one that changed is a migration or a write to the TSC. */
static void look_at_kvm(struct sync_guest *guest)
{
	if (guest->options.use_kvm && guest->clock.trace == TDM_CLOCK_TSC) {
		kvm_looks_take(&guest->looks, NULL);
		guest->outcome.kvm_ended = guest->looks.ended;
	}
}

static uint64_t own_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static void save(struct sync_guest *guest, bool is_last, struct tdm_error *err)
{
	struct sync_outcome *outcome = &guest->outcome;
	const uint64_t began_cpu_ns = own_cpu_ns();

	if (!is_last && guest->saved_ns &&
		tdm_now_ns() < guest->saved_ns + guest->save_cost_ns * SAVE_COST_SHARE) {
		return;
	}
	outcome->status = sync_log_save_corrections(guest->log, &guest->looks, &outcome->quality,
		&outcome->kvm, &outcome->kvm_differ, err);
	outcome->has_files |= outcome->status == TDM_OK;
	outcome->segments = sync_log_segments(guest->log);
	memcpy(outcome->breaks_text, sync_log_breaks(guest->log), sizeof(outcome->breaks_text));
	guest->saved_ns = tdm_now_ns();
	guest->save_cost_ns = own_cpu_ns() - began_cpu_ns;
}

static void publish(struct sync_guest *guest, bool is_last, struct tdm_error *err)
{
	struct tdm_buffer lines = { 0 };
	struct tdm_quality now;

	/* With nobody to send it to, an estimate in between is worth a glance now and then. */
	if (!guest->options.lines && !is_last && guest->burst_number % UNSEEN_BURSTS != 1) {
		return;
	}
	if (sync_log_lines(guest->log, is_last, &lines, err) == TDM_OK && lines.size > 0 &&
		guest->options.lines) {
		guest->options.lines(guest->options.user, (const char *)lines.bytes, lines.size);
	}
	tdm_buffer_release(&lines);
	sync_log_quality_now(guest->log, &now);
	guest->bound = now.median_bound;
}

/* True where only the trace clock can be had of the guest, and it is not raw itself: an agent that is older than ours. */
static bool sees_trace_only(const struct sync_guest *guest, const struct tdm_burst_result *result)
{
	return guest->clock.trace != guest->clock.raw &&
	       !(result->samples[0].flags & TDM_SAMPLE_HAS_RAW);
}

/* Takes what a burst brought into the log. */
static enum tdm_status take_burst(
	struct sync_guest *guest, const struct tdm_burst_result *result, struct tdm_error *err)
{
	bool saw_step = false;

	guest->outcome.lost += result->lost;
	if (result->is_delayed && !guest->outcome.is_delayed) {
		guest->outcome.is_delayed = true;
		GUEST_WARNING(guest,
			"%s: peer lacks TCP_NODELAY: replies wait 40 ms for an acknowledgement (Nagle's algorithm)",
			guest->options.name);
	}
	if (guest->options.kernel_stamps && !result->has_stamps && guest->burst_number == 0) {
		guest->outcome.lacks_stamps = true;
	}
	sync_guest_take_notes(guest, result->notes, result->notes_bytes, &saw_step);
	if (result->sample_count == 0) {
		return TDM_OK;
	}

	const bool is_steered = sees_trace_only(guest, result);

	if (guest->has_info && is_steered && !guest->is_steered) {
		return tdm_fail(
			err, TDM_ERR_PEER, "it tells no raw clock any more: another agent?");
	}
	if (!guest->has_info) {
		guest->is_steered = is_steered;

		const enum tdm_status status = sync_guest_set_info(guest, result->has_stamps, err);

		if (status != TDM_OK) {
			return status;
		}
	}
	if (guest->pending_epoch) {
		GUEST_WARNING(guest, "%s: its clock is another one now: reason=\"%s\"",
			guest->options.name, guest->pending_epoch);
		sync_log_add_epoch(guest->log, result->samples[0].g2, guest->pending_epoch);
		guest->pending_epoch = NULL;
	}
	if (sync_log_count(guest->log) + result->sample_count >
		TDM_EXCHANGE_LOG_MAX - (guest->burst_number ? LOG_RESERVE : 0)) {
		return TDM_OK; /* what is known stays; the end has its place kept */
	}
	sample_own_clock(guest);
	return sync_log_add_burst(guest->log, result, !saw_step, err);
}

static enum tdm_status do_burst(struct sync_guest *guest, bool is_edge, struct tdm_error *err)
{
	const struct tdm_burst_plan plan = sync_guest_plan_burst(guest, is_edge);
	struct tdm_burst_result result;
	const bool in_gate = sync_guest_enter_gate(guest);

	look_at_kvm(guest);

	enum tdm_status status = tdm_requester_burst(guest->requester, &plan, &result, err);

	if (in_gate) {
		sem_post(guest->options.gate);
	}
	guest->was_hung = result.is_hung;

	enum tdm_status taken = take_burst(guest, &result, err);
	bool is_lost = false;

	guest->burst_number++;
	if (taken == TDM_OK && status == TDM_OK && result.sample_count > 0) {
		taken = sync_guest_take_pairs(guest, &is_lost, err);
	}
	if (taken != TDM_OK) {
		return taken;
	}
	if (is_lost) {
		status = err->status;
	}
	if (result.sample_count > 0) {
		publish(guest, false, err);
	}
	if (status != TDM_OK) {
		disconnect(guest);
	} else if (result.sample_count == 0) {
		status = tdm_fail(err, TDM_ERR_PEER, "no exchange was answered");
	}
	return status;
}

static void set_phase(struct sync_guest *guest, enum phase phase, const struct tdm_error *err)
{
	pthread_mutex_lock(&guest->lock);
	if (guest->phase == PHASE_STARTING) {
		guest->phase = phase;
		if (err) {
			guest->start_err = *err;
		}
		pthread_cond_broadcast(&guest->changed);
	}
	pthread_mutex_unlock(&guest->lock);
}

static void back_off(struct sync_guest *guest, const struct tdm_error *err)
{
	if (guest->back_off_ms == 0) {
		/* A guest that is starved breaks off every few seconds, for hours: the report has the count. */
		if (guest->outcome.breaks++ < BREAKS_TOLD) {
			GUEST_WARNING(guest, "%s: %s; trying again%s", guest->options.name,
				err->text,
				guest->outcome.breaks == BREAKS_TOLD
					? "; further breaks are counted only"
					: "");
		}
		guest->back_off_ms = BACK_OFF_MIN_MS;
	} else {
		guest->back_off_ms = guest->back_off_ms * 2 > BACK_OFF_MAX_MS
					     ? (uint32_t)BACK_OFF_MAX_MS
					     : guest->back_off_ms * 2;
	}
	wait_until(guest, tdm_deadline_ns(guest->back_off_ms));
}

/* Between start and end. Returns only when it is time to end, or nothing can be written any more. */
static enum tdm_status keep_in_time(struct sync_guest *guest, struct tdm_error *err)
{
	const uint64_t began_ns = tdm_now_ns();
	uint64_t next_ns = sync_guest_next_burst_ns(guest, began_ns);

	while (!is_stopping(guest)) {
		enum tdm_status status = TDM_OK;

		wait_until(guest, next_ns);
		if (is_stopping(guest)) {
			break;
		}
		if (!guest->requester) {
			status = connect_guest(guest, RECONNECT_MS, guest->stop_fd, err);
			if (status == TDM_AGAIN) {
				break; /* it is time to end */
			}
		}
		if (status == TDM_OK) {
			status = do_burst(guest, !guest->outcome.has_files, err);
		}
		if (status == TDM_OK) {
			if (guest->back_off_ms && !guest->was_hung) {
				if (guest->outcome.breaks <= BREAKS_TOLD) {
					GUEST_INFO(guest, "%s: answers again", guest->options.name);
				}
				guest->back_off_ms = 0;
			}
			save(guest, false, err);
		}
		if (status == TDM_ERR_IO && guest->requester) {
			return status; /* the disk, not the peer */
		}
		if (status != TDM_OK || guest->was_hung) {
			if (status == TDM_OK) {
				tdm_fail(
					err, TDM_ERR_PEER, "hung: three probes in a row were lost");
			}
			back_off(guest, err);
			next_ns = 0;
		} else {
			next_ns = sync_guest_next_burst_ns(guest, began_ns);
		}
	}
	return TDM_OK;
}

/*
 * The last burst. An end is worth further tries: without it the last seconds are extrapolated. Where nobody is there any more
 * that is known at once, and three will do; a guest that is there but starved of its CPU may need seconds for each.
 */
static enum tdm_status do_last_burst(struct sync_guest *guest, struct tdm_error *err)
{
	const uint64_t deadline_ns = tdm_deadline_ns(END_MS);
	/* A guest that was never reached has no end, but may have come up since it was asked last. */
	const int least = guest->has_info ? END_TRIES : 1;
	enum tdm_status status = TDM_OK;

	for (int i = 0;; i++) {
		const uint64_t slow_ns = tdm_deadline_ns(END_SLOW_MS);

		status = guest->requester ? TDM_OK
					  : connect_guest(guest, RECONNECT_MS,
						    guest->options.interrupt_fd, err);
		if (status == TDM_OK) {
			status = do_burst(guest, true, err);
		}

		const bool is_there =
			guest->has_info && (guest->requester || tdm_now_ns() > slow_ns);

		if (status == TDM_OK || (status == TDM_ERR_IO && guest->requester) ||
			is_interrupted(guest) ||
			(i + 1 >= least && (!is_there || tdm_now_ns() >= deadline_ns))) {
			return status;
		}
		tdm_socket_wait(guest->options.interrupt_fd > 0 ? guest->options.interrupt_fd : -1,
			TDM_WAIT_READ, -1, tdm_deadline_ns(END_PAUSE_MS));
	}
}

static void end_session(struct sync_guest *guest)
{
	struct sync_outcome *outcome = &guest->outcome;
	struct tdm_error err = { 0 };
	enum tdm_status status = TDM_OK;

	if (guest->is_interrupted) {
		outcome->lacks_end = true;
		outcome->err = guest->start_err;
	} else if (!guest->is_unwanted && (guest->has_info || !guest->is_lasting)) {
		/* A log without one exchange has nothing that an end could close. */
		status = do_last_burst(guest, &err);
		outcome->lacks_end = status != TDM_OK;
		if (status != TDM_OK) {
			outcome->err = err;
		}
	}
	if (guest->has_info) {
		/* What waited for one more burst to agree need not wait any more. */
		publish(guest, true, &err);
	}
	save(guest, true, &err);
	if (outcome->status == TDM_OK) {
		outcome->status = sync_log_finish(guest->log, &err);
	}
	if (outcome->status != TDM_OK) {
		if (!guest->has_info) {
			err = guest->start_err.status ? guest->start_err : outcome->err;
			tdm_error_prefix(&err, "never reached");
		}
		outcome->err = err;
	}
	disconnect(guest);
}

static void *guest_main(void *user)
{
	struct sync_guest *guest = user;
	struct tdm_error err = { 0 };
	enum tdm_status status = TDM_OK;
	bool is_connected = true;

	/* A busy guest that connects but misses a burst is asked again; one that cannot be reached is reported at once. */
	for (int i = 0; i < START_TRIES; i++) {
		if (!guest->requester) {
			status =
				connect_guest(guest, CONNECT_MS, guest->options.interrupt_fd, &err);
			is_connected = status == TDM_OK;
			guest->is_interrupted = status == TDM_AGAIN;
		}
		if (is_connected) {
			sample_own_clock(guest);
			status = do_burst(guest, true, &err);
		}
		if (!is_connected || status == TDM_OK || is_stopping(guest)) {
			break;
		}
		wait_until(guest, tdm_deadline_ns(START_PAUSE_MS));
	}
	if (!is_connected) {
		/* Refused for what we are or ask, not for being busy: the same answer would come again. */
		guest->is_lasting = strstr(err.text, "secret") != NULL ||
				    strstr(err.text, "clock \"") != NULL ||
				    status == TDM_ERR_UNSUPPORTED;
		if (!guest->is_lasting && !guest->is_interrupted) {
			guest_address_hint(guest->options.name, &guest->options.address, &err);
		}
	}
	if (status == TDM_OK) {
		save(guest, false, &err);
		set_phase(guest, PHASE_RUNNING, NULL);
	} else {
		set_phase(guest, PHASE_FAILED, &err);
		if (!guest->is_lasting && !guest->is_interrupted) {
			/* Whoever awaits us tells of this one. */
			guest->outcome.breaks++;
			guest->back_off_ms = BACK_OFF_MIN_MS;
			wait_until(guest, tdm_deadline_ns(guest->back_off_ms));
		}
	}
	if (!guest->is_lasting && !guest->is_interrupted) {
		status = keep_in_time(guest, &err);
	}
	wait_until(guest, UINT64_MAX);
	if (status == TDM_ERR_IO && guest->has_info) {
		guest->outcome.status = status;
		guest->outcome.err = err;
		disconnect(guest);
	} else {
		end_session(guest);
	}
	return NULL;
}

enum tdm_status sync_guest_start(struct sync_guest *guest, struct tdm_error *err)
{
	if (pthread_create(&guest->thread, NULL, guest_main, guest) != 0) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no thread for guest %s", guest->options.name);
	}
	guest->has_thread = true;
	return TDM_OK;
}

enum tdm_status sync_guest_await(struct sync_guest *guest, struct tdm_error *err)
{
	pthread_mutex_lock(&guest->lock);
	while (guest->phase == PHASE_STARTING) {
		pthread_cond_wait(&guest->changed, &guest->lock);
	}

	const bool failed = guest->phase == PHASE_FAILED;

	if (failed) {
		*err = guest->start_err;
	}
	pthread_mutex_unlock(&guest->lock);
	return failed ? err->status : TDM_OK;
}

bool sync_guest_gave_up(const struct sync_guest *guest)
{
	return guest->is_lasting;
}

void sync_guest_stop(struct sync_guest *guest)
{
	const uint64_t one = 1;

	if (write(guest->stop_fd, &one, sizeof(one)) < 0) {
		return; /* it is set already */
	}
}

void sync_guest_join(struct sync_guest *guest, struct sync_outcome *outcome)
{
	if (guest->has_thread) {
		pthread_join(guest->thread, NULL);
		guest->has_thread = false;
	}
	*outcome = guest->outcome;
}

void sync_guest_discard(struct sync_guest *guest)
{
	struct sync_outcome ignored;

	guest->is_unwanted = true;
	sync_guest_stop(guest);
	sync_guest_join(guest, &ignored);
	sync_log_remove(guest->log);
}
