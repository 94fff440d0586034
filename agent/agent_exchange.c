/* SPDX-License-Identifier: MIT */
#include "agent.h"
#include "host_clock.h"
#include "tsc_check.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/responder.h>
#include <tandem/tap.h>
#include <unistd.h>

enum {
	SEND_MS = 5000,
	LOCAL_PERIOD_MS = 250, /* own trace clock against own raw clock */
	LOCAL_MAX = 256,       /* kept while the host is away; then the oldest go */
	PAIRS = 8,             /* readings of the host's clock at a time */
	CHECK_AGAIN_MS = 60000,
	CHECK_BUDGET_MS = 200, /* a host waits a second for notes */
	CHECK_BATCH = 128,
	CPU_MAX = 1024
};

/* One exchange session, in its thread. */
struct session {
	struct agent_peer *peer;
	struct tdm_local_clock clock;
	uint32_t epoch;
	uint64_t epoch_at; /* trace clock when the jump was seen; 0 = nothing to tell */
	const char *epoch_reason;
	uint32_t suspends, steps, disruptions;
	bool after_burst; /* since the last notes */
	int host_fd;      /* the host's clock, where KVM lends it; -1 = not */
	bool saw_step;    /* of the wall clock, since the last notes */

	/* Own clocks between bursts, a ring. */
	struct tdm_sandwich locals[LOCAL_MAX];
	uint32_t local_count; /* ever taken since the last notes */

	/* TSC sessions: what the CPUs differ by, as the first run found. */
	struct tsc_check_result *checks;
	size_t check_count;
	unsigned int check_runs; /* that are done */
	uint32_t check_from;     /* the CPU that the run goes on with */
	uint64_t check_again_ns;
	bool is_unstable;
};

/* For whoever reads this machine's trace: behind this event another epoch holds. Where there is no tracefs, nobody does. */
static void mark_epoch(uint32_t epoch)
{
	const char *root = tdm_tap_find_tracefs(NULL);
	char text[64];

	if (!root) {
		return;
	}
	snprintf(text, sizeof(text), "%s/trace_marker", root);

	const int fd = open(text, O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		const int length = snprintf(text, sizeof(text), "tandem epoch %u\n", epoch);

		(void)!write(fd, text, (size_t)length);
		close(fd);
	}
}

static uint32_t look(struct session *session)
{
	struct agent *agent = session->peer->agent;
	uint32_t suspends, steps;

	session->peer->active_ns = tdm_now_ns();
	agent_clock_look(&agent->clock, &suspends, &steps);

	const uint32_t disruptions = agent_clock_disruptions(&agent->clock);
	const uint32_t epoch =
		agent_clock_epoch(session->clock.trace, suspends, steps, disruptions);

	if (epoch != session->epoch) {
		session->epoch = epoch;
		session->epoch_at = tdm_local_clock_arrival(&session->clock).trace;
		mark_epoch(epoch);
		session->epoch_reason = disruptions != session->disruptions ? "disruption"
					: suspends != session->suspends     ? "suspend"
									    : "step";
	}
	session->saw_step |= steps != session->steps;
	session->suspends = suspends;
	session->steps = steps;
	session->disruptions = disruptions;
	return epoch;
}

static uint32_t hook_epoch(void *user)
{
	struct session *session = user;

	session->after_burst = true;
	return look(session);
}

static bool hook_may_stamp(void *user)
{
	struct session *session = user;

	return agent_clock_may_stamp(&session->peer->agent->clock);
}

static void hook_tick(void *user)
{
	struct session *session = user;
	struct tdm_sandwich *to = &session->locals[session->local_count % LOCAL_MAX];

	session->local_count += tdm_local_clock_sample(&session->clock, to, NULL) == TDM_OK ? 1 : 0;
}

static void note_locals(struct session *session, struct tdm_buffer *to)
{
	hook_tick(session);

	const uint32_t kept =
		session->local_count < LOCAL_MAX ? session->local_count : (uint32_t)LOCAL_MAX;

	for (uint32_t i = session->local_count - kept; i != session->local_count; i++) {
		const struct tdm_sandwich *local = &session->locals[i % LOCAL_MAX];

		tdm_buffer_printf(to, "l %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", local->outer,
			local->inner, local->width);
	}
	session->local_count = 0;
}

/* Unix time less the trace clock, for the host's file and for kernel stamps. */
static void note_unix_time(struct session *session, struct tdm_buffer *to)
{
	struct tdm_sandwich sandwich;

	if (session->clock.trace == TDM_CLOCK_MARKER || session->clock.trace == TDM_CLOCK_TSC) {
		return; /* not read together, or not in ns */
	}
	sandwich = tdm_clock_sandwich(session->clock.trace, TDM_CLOCK_REAL);
	tdm_buffer_printf(to, "unix %" PRId64 " %" PRIu64 "\n",
		(int64_t)(sandwich.inner - sandwich.outer), sandwich.width);
}

static bool differ(const struct tsc_check_result *a, const struct tsc_check_result *b)
{
	const int64_t apart = a->ticks - b->ticks;

	return (uint64_t)(apart < 0 ? -apart : apart) > a->bound + b->bound;
}

static bool is_apart(const struct session *session, const struct tsc_check_result *now)
{
	for (size_t i = 0; i < session->check_count; i++) {
		if (session->checks[i].cpu == now->cpu && differ(&session->checks[i], now)) {
			return true;
		}
	}
	return false;
}

/*
 * Compares CPUs for as long as a host waits for notes, and goes on after the next burst: on a busy machine with many CPUs
 * a run takes longer. Twice, a minute apart: what drifts shows only then.
 */
static void check_cpus(struct session *session, struct tdm_buffer *to)
{
	const bool is_first = session->check_runs == 0;
	struct tsc_check_result now[CHECK_BATCH];

	const size_t count =
		tsc_check_some(now, CHECK_BATCH, &session->check_from, CHECK_BUDGET_MS);

	for (size_t i = 0; i < count; i++) {
		session->is_unstable |= !is_first && is_apart(session, &now[i]);
		if (is_first && session->check_count < CPU_MAX) {
			session->checks[session->check_count++] = now[i];
		}
		if (now[i].is_off) {
			tdm_buffer_printf(to, "cpu %u %" PRId64 " %" PRIu64 "\n", now[i].cpu,
				now[i].ticks, now[i].bound);
		}
	}
	tdm_buffer_printf(to, "cpus-checked %zu\n", count);
	if (session->check_from == UINT32_MAX) {
		session->check_runs++;
		session->check_from = 0;
		session->check_again_ns = tdm_deadline_ns(CHECK_AGAIN_MS);
	}
}

static void note_cpus(struct session *session, struct tdm_buffer *to)
{
	if (session->clock.trace != TDM_CLOCK_TSC) {
		return;
	}
	if (!session->checks) {
		session->checks = calloc(CPU_MAX, sizeof(*session->checks));
	}
	if (session->checks && session->check_runs < 2 && tdm_now_ns() >= session->check_again_ns) {
		check_cpus(session, to);
	}
	if (session->is_unstable) {
		tdm_buffer_printf(to, "tsc-unstable 1\n");
	}
}

/* To a QUERY without a burst: the host's clock beside ours, for a host that can tell its own. */
static void note_pairs(struct session *session, struct tdm_buffer *to)
{
	struct host_pair pair;

	for (int i = 0; i < PAIRS && session->host_fd >= 0 && !session->after_burst; i++) {
		if (host_clock_read(host_clock_id(session->host_fd), &session->clock, &pair)) {
			tdm_buffer_printf(to,
				"p %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
				pair.before.raw, pair.before.trace, pair.host_ns, pair.after.trace,
				pair.after.raw);
		}
	}
	session->after_burst = false;
}

static enum tdm_status hook_notes(void *user, struct tdm_buffer *to)
{
	struct session *session = user;

	/* Within the burst something may have happened too. */
	look(session);
	if (session->epoch_at != 0) {
		tdm_buffer_printf(to, "e %u %" PRIu64 " %s\n", session->epoch, session->epoch_at,
			session->epoch_reason);
		session->epoch_at = 0;
	}
	if (session->saw_step) {
		tdm_buffer_printf(to, "wall-clock-step 1\n");
		session->saw_step = false;
	}
	note_locals(session, to);
	note_unix_time(session, to);
	note_cpus(session, to);
	note_pairs(session, to);
	return TDM_OK;
}

static enum tdm_status send_opened(struct session *session, const struct tdm_open *open,
	const char *clock, uint16_t port, struct tdm_error *err)
{
	struct tdm_buffer opened = { .cap = 4096 };
	char boot_id[37];
	const uint64_t hz = tdm_local_clock_hz(&session->clock);

	tdm_clock_boot_id(boot_id);
	tdm_opened_put(&opened, open->session, session->epoch);
	tdm_record_add(&opened, "boot", boot_id);
	tdm_record_add(&opened, "clock", clock);
	tdm_record_add(&opened, "raw", tdm_clock_name(session->clock.raw));
	const char *const source = tdm_clock_source(session->clock.raw);

	if (*source) {
		tdm_record_add(&opened, "raw-source", source);
	}
	tdm_buffer_printf(
		&opened, "unit-hz %" PRIu64 "\ncpus %ld\n", hz, sysconf(_SC_NPROCESSORS_ONLN));
	if (session->host_fd >= 0) {
		tdm_record_add(&opened, "host-clock", "kvm");
	}
	if (port) {
		tdm_buffer_printf(&opened, "udp-port %u\n", port);
	}

	const enum tdm_status status = tdm_link_send(session->peer->link, TDM_FRAME_OPENED,
		opened.bytes, opened.size, tdm_deadline_ns(SEND_MS), err);

	tdm_buffer_release(&opened);
	return status;
}

static enum tdm_status run(struct session *session, const struct tdm_open *open, const char *clock,
	struct tdm_error *err)
{
	struct tdm_responder_options options = { .session = open->session,
		.clock = &session->clock,
		.idle_ms = AGENT_SESSION_IDLE_MS,
		/* A clock that nobody steers, or that costs a marker to read, is looked at in bursts only. */
		.tick_ms = session->clock.trace == session->clock.raw ||
					   session->clock.trace == TDM_CLOCK_MARKER
				   ? 0
				   : LOCAL_PERIOD_MS,
		.stop_fd = session->peer->agent->stop_fd,
		.hooks = { .user = session,
			.epoch = hook_epoch,
			.may_stamp = hook_may_stamp,
			.tick = hook_tick,
			.notes = hook_notes } };
	uint64_t peer_port;
	uint16_t port;

	if (tdm_record_find_number(open->text, open->text_bytes, "udp-port", 0, &peer_port) &&
		peer_port <= UINT16_MAX) {
		options.peer_port = (uint16_t)peer_port;
	}

	struct tdm_responder *responder =
		tdm_responder_create(session->peer->link, &options, &port, err);

	if (!responder) {
		return TDM_ERR_NOMEM;
	}

	enum tdm_status status = send_opened(session, open, clock, port, err);

	if (status == TDM_OK) {
		status = tdm_responder_run(responder, err);
	}
	tdm_responder_destroy(responder);
	return status;
}

static bool is_own_host(const struct tdm_peer *who)
{
	enum {
		HOST_CID = 2
	};

	return who->kind == TDM_ADDRESS_VSOCK && who->cid == HOST_CID;
}

enum tdm_status agent_exchange_session(
	struct agent_peer *peer, const struct tdm_open *open, struct tdm_error *err)
{
	struct session session = { .peer = peer };
	char clock[TDM_VALUE_MAX + 1];

	if (!tdm_record_find(open->text, open->text_bytes, "clock", 0, clock)) {
		tdm_link_refuse(peer->link, "OPEN for exchanges names no clock");
		return tdm_fail(err, TDM_ERR_PEER, "OPEN for exchanges names no clock");
	}

	enum tdm_status status =
		tdm_local_clock_init(&session.clock, clock, &peer->agent->log, err);

	if (status != TDM_OK) {
		tdm_link_refuse(peer->link, err->text);
		return status;
	}
	agent_clock_look(&peer->agent->clock, &session.suspends, &session.steps);
	session.disruptions = agent_clock_disruptions(&peer->agent->clock);
	session.epoch = agent_clock_epoch(
		session.clock.trace, session.suspends, session.steps, session.disruptions);
	/* Whoever asks from elsewhere has another clock than the machine that runs this guest. */
	session.host_fd = is_own_host(&peer->who) ? host_clock_open(NULL, NULL) : -1;
	status = run(&session, open, clock, err);
	if (session.host_fd >= 0) {
		close(session.host_fd);
	}
	tdm_local_clock_release(&session.clock);
	free(session.checks);
	return status;
}
