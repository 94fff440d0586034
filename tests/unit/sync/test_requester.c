/* SPDX-License-Identifier: MIT */
#include "kernel_stamps.h"
#include "responder_thread.h"
#include "tdm_cmocka.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <tandem/requester.h>

/* Both ends on this machine read the same clocks: the truth is that they do not differ. */
struct ends {
	struct responder_thread server;
	struct tdm_local_clock clock;
	struct tdm_requester *requester;
};

static void connect_ends(struct ends *ends, const char *address, const char *clock, bool datagrams)
{
	struct tdm_error err;

	ends->server.cpu = -1;
	ends->server.clock = clock;
	assert_true(responder_thread_start(&ends->server, address));
	assert_int_equal(tdm_local_clock_init(&ends->clock, clock, NULL, &err), TDM_OK);

	const struct tdm_requester_options options = { .address = ends->server.address,
		.secret = &ends->server.secret,
		.clock = clock,
		.local = &ends->clock,
		.datagrams = datagrams,
		.first_sequence = 1000 };

	ends->requester = tdm_requester_create(&options, &err);
	if (!ends->requester) {
		fail_msg("%s", err.text);
	}
}

static void release(struct ends *ends)
{
	tdm_requester_destroy(ends->requester);
	responder_thread_stop(&ends->server);
	tdm_local_clock_release(&ends->clock);
}

/* No sample may contradict that both clocks are one, and each lies in its place. */
static void check_truth(const struct tdm_burst_result *result)
{
	for (size_t i = 0; i < result->sample_count; i++) {
		const struct tdm_exchange_sample *sample = &result->samples[i];

		assert_true(sample->h1 <= sample->g2 && sample->g2 <= sample->g3 &&
			    sample->g3 <= sample->h4);
		assert_true(sample->h1_raw <= sample->g2_raw && sample->g2_raw <= sample->g3_raw &&
			    sample->g3_raw <= sample->h4_raw);
		if (sample->flags & TDM_SAMPLE_STAMPED) {
			assert_true(sample->k1_ns <= sample->k2_ns &&
				    sample->k2_ns <= sample->k3_ns &&
				    sample->k3_ns <= sample->k4_ns);
		}
		if (i > 0) {
			assert_true(sample->sequence > sample[-1].sequence);
		}
	}
}

static void run_over(const char *address, const char *clock, bool with_secret)
{
	struct ends ends = { .server.secret = { .is_set = with_secret, .key = { 1 } } };
	const struct tdm_burst_plan plans[] = { { .count = 100 }, { .count = 64, .pipeline = 16 },
		{ .count = 20, .pairs = true } };
	struct tdm_burst_result result;
	struct tdm_error err;

	connect_ends(&ends, address, clock, false);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(
			tdm_requester_burst(ends.requester, &plans[i], &result, &err), TDM_OK);
		/* A machine that is busy with other things may lose some to the deadline, never all. */
		assert_true(result.sample_count > 0 && result.sample_count <= plans[i].count);
		assert_int_equal(result.refused, 0);
		assert_int_equal(result.samples[0].flags & TDM_SAMPLE_PIPELINED, i == 1 ? 1 : 0);
		check_truth(&result);
	}
	release(&ends);
}

static void exchanges_over_tcp_never_contradict_the_truth(void **state)
{
	(void)state;
	run_over("tcp:127.0.0.1:0", "mono", false);
	run_over("tcp:[::1]:0", "mono_raw", false);
}

static void exchanges_over_a_unix_socket_never_contradict_the_truth(void **state)
{
	char address[80];

	(void)state;
	snprintf(address, sizeof(address), "unix:/tmp/tandem-requester-%d", (int)getpid());
	run_over(address, "boot", false);
}

static void exchanges_with_proven_senders_never_contradict_the_truth(void **state)
{
	(void)state;
	run_over("tcp:127.0.0.1:0", "mono", true);
}

static void both_sockets_have_nagle_off(void **state)
{
	struct ends ends = { 0 };
	int on = 0;
	socklen_t size = sizeof(on);

	(void)state;
	connect_ends(&ends, "tcp:127.0.0.1:0", "mono", false);
	assert_int_equal(
		getsockopt(tdm_requester_fd(ends.requester), IPPROTO_TCP, TCP_NODELAY, &on, &size),
		0);
	assert_int_not_equal(on, 0);
	release(&ends);
	assert_true(ends.server.is_undelayed);
}

static unsigned int stamping(int fd)
{
	unsigned int flags = 0;
	socklen_t size = sizeof(flags);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, &size), 0);
	return flags;
}

static void run_stamped(bool datagrams, bool with_secret)
{
	struct ends ends = { .server.secret = { .is_set = with_secret, .key = { 1 } } };
	const struct tdm_burst_plan plan = { .count = 200, .stamps = true };
	struct tdm_burst_result result;
	struct tdm_error err;
	size_t stamped = 0;
	/* The kernel turns stamping on by a worker, which on a busy machine runs after the burst: it is on before. */
	const int asking = kernel_stamps_ask();

	assert_true(kernel_stamps_become(true, 60000));
	connect_ends(&ends, "tcp:127.0.0.1:0", "mono", datagrams);
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_OK);
	assert_true(result.has_stamps);
	check_truth(&result);
	for (size_t i = 0; i < result.sample_count; i++) {
		stamped += result.samples[i].flags & TDM_SAMPLE_STAMPED ? 1 : 0;
	}
	/* The last one's departure is never told. */
	assert_true(stamped > 0 && stamped < result.sample_count);
	assert_int_equal(stamping(tdm_requester_fd(ends.requester)), 0);

	/* At once again: not yet, the kernel's text is patched once a second at most. */
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_OK);
	assert_false(result.has_stamps);
	release(&ends);
	close(asking);
}

static void the_kernel_stamps_a_burst_over_tcp(void **state)
{
	(void)state;
	run_stamped(false, false);
}

static void the_kernel_stamps_a_burst_over_udp(void **state)
{
	(void)state;
	run_stamped(true, false);
	run_stamped(true, true);
}

static void stamps_are_refused_where_they_give_nothing(void **state)
{
	struct ends ends = { 0 };
	const struct tdm_burst_plan plan = { .count = 10, .stamps = true };
	struct tdm_burst_result result;
	struct tdm_error err;
	char address[80];

	(void)state;
	snprintf(address, sizeof(address), "unix:/tmp/tandem-stamps-%d", (int)getpid());
	connect_ends(&ends, address, "mono", true);
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_OK);
	assert_false(result.has_stamps);
	assert_int_equal(stamping(tdm_requester_fd(ends.requester)), 0);
	release(&ends);
}

static void a_burst_stops_once_the_target_is_met(void **state)
{
	struct ends ends = { 0 };
	const struct tdm_burst_plan plan = { .count = 5000, .target_bound = 1000000000 };
	struct tdm_burst_result result;
	struct tdm_error err;

	(void)state;
	connect_ends(&ends, "tcp:127.0.0.1:0", "mono_raw", false);
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_OK);
	assert_true(result.sample_count >= 64 && result.sample_count < 5000);
	release(&ends);
}

static void a_burst_that_the_other_end_would_not_stay_for_is_refused(void **state)
{
	struct ends ends = { 0 };
	struct tdm_burst_plan plan = { .count = 10, .max_ms = TDM_BURST_MAX_MS + 1 };
	struct tdm_burst_result result;
	struct tdm_error err;

	(void)state;
	connect_ends(&ends, "tcp:127.0.0.1:0", "mono", false);
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_ERR_RANGE);
	/* The longest that there is loses nothing at its end but what it could not send. */
	plan = (struct tdm_burst_plan){ .count = TDM_BURST_COUNT_MAX, .max_ms = TDM_BURST_MAX_MS };
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_OK);
	assert_true(result.sample_count > 0 && result.lost <= 3);
	release(&ends);
}

static void sequences_go_on_from_burst_to_burst(void **state)
{
	struct ends ends = { 0 };
	const struct tdm_burst_plan plan = { .count = 10 };
	struct tdm_burst_result result;
	struct tdm_error err;

	(void)state;
	connect_ends(&ends, "tcp:127.0.0.1:0", "mono", false);
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_OK);
	assert_int_equal(result.samples[0].sequence, 1000);
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_OK);
	assert_int_equal(result.samples[0].sequence, 1010);
	release(&ends);
}

static void a_peer_that_dies_ends_the_burst(void **state)
{
	struct ends ends = { 0 };
	const struct tdm_burst_plan plan = { .count = 10 };
	struct tdm_burst_result result;
	struct tdm_error err;

	cpu_set_t before, after;

	(void)state;
	sched_getaffinity(0, sizeof(before), &before);
	connect_ends(&ends, "tcp:127.0.0.1:0", "mono", false);
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_OK);
	responder_thread_stop(&ends.server);
	assert_int_equal(tdm_requester_burst(ends.requester, &plan, &result, &err), TDM_ERR_PEER);
	/* Whatever becomes of a burst, the thread is what it was. */
	sched_getaffinity(0, sizeof(after), &after);
	assert_true(CPU_EQUAL(&before, &after));
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	tdm_requester_destroy(ends.requester);
	tdm_local_clock_release(&ends.clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchanges_over_tcp_never_contradict_the_truth),
		cmocka_unit_test(exchanges_over_a_unix_socket_never_contradict_the_truth),
		cmocka_unit_test(exchanges_with_proven_senders_never_contradict_the_truth),
		cmocka_unit_test(both_sockets_have_nagle_off),
		cmocka_unit_test(the_kernel_stamps_a_burst_over_tcp),
		cmocka_unit_test(the_kernel_stamps_a_burst_over_udp),
		cmocka_unit_test(stamps_are_refused_where_they_give_nothing),
		cmocka_unit_test(a_burst_stops_once_the_target_is_met),
		cmocka_unit_test(a_burst_that_the_other_end_would_not_stay_for_is_refused),
		cmocka_unit_test(sequences_go_on_from_burst_to_burst),
		cmocka_unit_test(a_peer_that_dies_ends_the_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
