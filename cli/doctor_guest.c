/* SPDX-License-Identifier: MIT */
/* One guest: is it reached, how quick is it, and how well would its clock be known. */
#include "doctor.h"
#include "sync_log.h"
#include <inttypes.h>
#include <string.h>
#include <tandem/estimate.h>
#include <tandem/requester.h>
#include <tandem/wide.h>
#include <unistd.h>

enum {
	BURSTS = 3,
	PAUSE_US = 400000
};

/* What the exchanges told. */
struct look {
	struct tdm_exchange_log *log;
	uint64_t unit_hz; /* of this machine's clock */
	uint64_t sent, answered, lost;
	uint64_t round_trip_ns; /* the best burst's median */
	bool is_delayed, is_hung, is_unstable, has_jumped, has_stamps;
	int32_t steering;
};

static void print_time(char text[32], uint64_t ns)
{
	if (ns < 10000) {
		snprintf(text, 32, "%" PRIu64 " ns", ns);
	} else if (ns < 10000000) {
		snprintf(text, 32, "%" PRIu64 " us", ns / 1000);
	} else {
		snprintf(text, 32, "%" PRIu64 " ms", ns / 1000000);
	}
}

static const char *remedy_of(const char *text)
{
	static const struct {
		const char *word, *remedy;
	} known[] = {
		{ "refused",
			"start tandem-agent in the guest, listening on this address (-l); look for a firewall" },
		{ "secret", "give both sides the same --secret-file" },
		{ "timed out",
			"look at the route and at firewalls; port 8990 where none is given" },
		{ "no answer",
			"look at the route and at firewalls; port 8990 where none is given" },
		{ "clock \"", "name a clock that the guest has, with -C" },
		{ "No such device",
			"start the guest with a vhost-vsock device; modprobe vhost_vsock here" },
		{ "Permission denied",
			"run it as root, or as a user with rights on this socket; look at what keeps the agent's port (SELinux, AppArmor)" },
		{ "not permitted",
			"run it as root; in a container, allow sockets of this kind (its seccomp profile)" },
		{ "No such file", "start tandem-agent in the guest, listening on this path (-l)" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strstr(text, known[i].word)) {
			return known[i].remedy;
		}
	}
	return "tandem-agent has to run in the guest and to listen there";
}

static enum tdm_status set_info(struct look *look, const struct tdm_requester_peer *peer,
	const char *clock, struct tdm_error *err)
{
	const struct tdm_exchange_log_info info = { .host_clock = clock,
		.guest_clock = clock,
		.host_unit_hz = look->unit_hz,
		.guest_unit_hz = peer->unit_hz,
		.rate_ppb = 100 };

	return tdm_exchange_log_set_info(look->log, &info, err);
}

static enum tdm_status add_burst(
	struct look *look, const struct tdm_burst_result *result, struct tdm_error *err)
{
	look->sent += result->sent;
	look->lost += result->lost;
	look->answered += result->sample_count;
	look->is_delayed |= result->is_delayed;
	look->is_hung |= result->is_hung;
	look->has_stamps |= result->has_stamps;
	look->steering = result->frequency;
	look->is_unstable |= result->notes_bytes > 0 &&
			     memmem(result->notes, result->notes_bytes, "tsc-unstable", 12) != NULL;
	look->has_jumped |= result->notes_bytes > 2 &&
			    (memcmp(result->notes, "e ", 2) == 0 ||
				    memmem(result->notes, result->notes_bytes, "\ne ", 3) != NULL);
	if (result->sample_count > 0 &&
		(!look->round_trip_ns || result->median_round_trip_ns < look->round_trip_ns)) {
		look->round_trip_ns = result->median_round_trip_ns;
	}
	for (size_t i = 0; i < result->sample_count; i++) {
		const struct tdm_exchange_record record = sync_log_record_of(&result->samples[i]);

		if (tdm_exchange_log_add(look->log, &record) != TDM_OK) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the exchanges");
		}
	}
	return TDM_OK;
}

static enum tdm_status do_bursts(struct look *look, struct tdm_requester *requester,
	struct tdm_local_clock *local, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	for (int i = 0; i < BURSTS && status == TDM_OK; i++) {
		const struct tdm_burst_plan plan = { .count = TDM_BURST_START_COUNT,
			.stamps = i == 0 };
		struct tdm_burst_result result;
		struct tdm_sandwich sandwich;

		if (i > 0) {
			usleep(PAUSE_US);
		}
		if (tdm_local_clock_sample(local, &sandwich, NULL) == TDM_OK) {
			const struct tdm_local_record record = { .side = TDM_SIDE_HOST,
				.raw = sandwich.outer,
				.trace = sandwich.inner,
				.width = sandwich.width };

			/* One of many: without room for it the rest is as good. */
			tdm_exchange_log_add_local(look->log, &record);
		}
		status = tdm_requester_burst(requester, &plan, &result, err);

		const enum tdm_status taken = add_burst(look, &result, err);

		status = taken != TDM_OK ? taken : status;
	}
	return status;
}

static void say_path(struct doctor *doctor, const struct look *look)
{
	char time[32];

	print_time(time, look->round_trip_ns);
	if (look->answered == 0) {
		doctor_say(doctor, DOCTOR_BAD, "exchanges", "look at the load of the guest",
			"none of %" PRIu64 " was answered", look->sent);
		return;
	}
	doctor_say(doctor,
		look->is_hung ? DOCTOR_BAD
		: look->lost  ? DOCTOR_NOTE
			      : DOCTOR_OK,
		"exchanges",
		look->is_hung || look->lost ? "look at the load of the guest and at the path"
					    : NULL,
		"%" PRIu64 " answered, %" PRIu64 " lost, round trip %s (median)", look->answered,
		look->lost, time);
	if (look->is_delayed) {
		doctor_say(doctor, DOCTOR_BAD, "nagle",
			"run tandem-agent of this version in the guest; a proxy between has to set TCP_NODELAY",
			"replies wait 40 ms for an acknowledgement (Nagle's algorithm)");
	} else {
		doctor_say(doctor, DOCTOR_OK, "nagle", NULL, "off: no reply waits");
	}
}

static void say_clock(struct doctor *doctor, const struct look *look, const char *clock)
{
	struct tdm_timeline *timeline = NULL;
	struct tdm_quality quality;
	struct tdm_error err;
	char bound[32], spread[32];

	if (look->answered == 0) {
		return;
	}
	if (tdm_estimate(look->log, &timeline, &quality, &err) != TDM_OK) {
		doctor_say(
			doctor, DOCTOR_BAD, "clock", "name another clock with -C", "%s", err.text);
		return;
	}
	tdm_timeline_destroy(timeline);

	const uint64_t bound_ns =
		(uint64_t)((tdm_u128)quality.median_bound * 1000000000 / look->unit_hz);
	const uint64_t spread_ns =
		(uint64_t)((tdm_u128)quality.median_spread * 1000000000 / look->unit_hz);

	print_time(bound, bound_ns);
	print_time(spread, spread_ns);
	doctor_say(doctor, quality.noisy ? DOCTOR_NOTE : DOCTOR_OK, "clock",
		quality.noisy ? "give the guest CPUs of its own, or a longer session" : NULL,
		"%s known within +-%s after %d bursts, spread %s%s%s%s", clock, bound, BURSTS,
		spread, quality.noisy ? ", the guest is starved of CPU" : "",
		quality.composed ? ", through raw clocks" : "",
		look->has_stamps ? ", kernel stamps can be had" : "");
	if (look->is_unstable) {
		doctor_say(doctor, DOCTOR_NOTE, "clock", "take another clock, e.g. -C mono_raw",
			"the TSCs of the guest's CPUs drift apart (tsc-unstable)");
	}
	if (look->has_jumped) {
		doctor_say(doctor, DOCTOR_NOTE, "clock",
			"stop what sets it, or look at docs/clock-correction.md for what that costs",
			"the guest's clock jumped while it was looked at");
	}
}

void doctor_guest(struct doctor *doctor, const struct tdm_address *address, const char *clock,
	const struct tdm_secret *secret)
{
	struct tdm_local_clock local = { .trace = TDM_CLOCK_NONE };
	struct look look = { .unit_hz = 1000000000 };
	struct tdm_error err;
	char where[300];

	tdm_address_print(address, where, sizeof(where));
	if (tdm_local_clock_init(&local, clock, &doctor->command.log, &err) != TDM_OK) {
		doctor_say(
			doctor, DOCTOR_BAD, "guest", "name another clock with -C", "%s", err.text);
		return;
	}
	if (local.trace == TDM_CLOCK_TSC) {
		look.unit_hz = tdm_clock_tsc_hz();
	}

	const struct tdm_requester_options options = {
		.address = *address, .secret = secret, .clock = clock, .local = &local
	};
	struct tdm_requester *const requester = tdm_requester_create(&options, &err);

	if (!requester) {
		doctor_say(doctor, DOCTOR_BAD, "guest", remedy_of(err.text), "not reached: %s",
			err.text);
		tdm_local_clock_release(&local);
		return;
	}

	const struct tdm_requester_peer *const peer = tdm_requester_peer(requester);
	char boot_id[37];

	tdm_clock_boot_id(boot_id);
	doctor_say(doctor, DOCTOR_OK, "guest", NULL, "answers at %s, %" PRIu64 " CPU%s, clock %s%s",
		where, peer->cpus, peer->cpus == 1 ? "" : "s", peer->clock,
		strcmp(boot_id, peer->boot_id) == 0 ? "; it runs on this very machine" : "");
	look.log = tdm_exchange_log_create();

	enum tdm_status status = look.log && look.unit_hz
					 ? set_info(&look, peer, clock, &err)
					 : tdm_fail(&err, TDM_ERR_NOMEM, "no memory, or no TSC");

	if (status == TDM_OK) {
		status = do_bursts(&look, requester, &local, &err);
	}
	say_path(doctor, &look);
	if (status != TDM_OK) {
		doctor_say(doctor, DOCTOR_BAD, "guest", remedy_of(err.text),
			"the connection ended: %s", err.text);
	} else {
		say_clock(doctor, &look, clock);
	}
	tdm_exchange_log_destroy(look.log);
	tdm_requester_destroy(requester);
	tdm_local_clock_release(&local);
}
