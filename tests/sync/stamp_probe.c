/* SPDX-License-Identifier: MIT */
/* stamp_probe.c - the kernel stamps every packet that arrives during bursts that ask for it, and at no other time. */
#include "kernel_stamps.h"
#include "responder_thread.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tandem/requester.h>

enum {
	PATIENCE_MS = 20000
};

static void fail(const char *what)
{
	fprintf(stderr, "stamp_probe: %s\n", what);
	exit(1);
}

struct bursts {
	struct tdm_requester *requester;
	bool stamps;
	_Atomic int running;
	size_t stamped, samples;
};

/* A burst that lasts as long as a burst may: the answering end is slow on purpose. */
static void *run_burst(void *user)
{
	struct bursts *bursts = user;
	const struct tdm_burst_plan plan = { .count = TDM_BURST_COUNT_MAX,
		.stamps = bursts->stamps };
	struct tdm_burst_result result;
	struct tdm_error err;

	bursts->running = 1;
	if (tdm_requester_burst(bursts->requester, &plan, &result, &err) != TDM_OK) {
		fprintf(stderr, "stamp_probe: burst: %s\n", err.text);
	}
	for (size_t i = 0; i < result.sample_count; i++) {
		bursts->stamped += result.samples[i].flags & TDM_SAMPLE_STAMPED ? 1 : 0;
	}
	bursts->samples = result.sample_count;
	bursts->running = 0;
	return NULL;
}

/* Runs one burst and looks at the key while it runs. */
static bool on_during_burst(struct tdm_requester *requester, bool stamps)
{
	struct bursts bursts = { .requester = requester, .stamps = stamps };
	pthread_t thread;
	bool was_on = false;

	if (pthread_create(&thread, NULL, run_burst, &bursts) != 0) {
		fail("no thread");
	}
	kernel_stamps_pause_ms(60);
	while (bursts.running && !was_on) {
		was_on = kernel_stamps_are_on() && bursts.running;
		/* Off between two looks, or the look itself would keep it on. */
		kernel_stamps_pause_ms(30);
	}
	pthread_join(thread, NULL);
	printf("burst: %zu exchanges, %zu stamped by the kernel\n", bursts.samples, bursts.stamped);
	if (stamps != (bursts.stamped > 0)) {
		fail(stamps ? "no stamps came" : "stamps came unasked");
	}
	return was_on;
}

static void check(const char *address, bool datagrams, bool stamps)
{
	struct responder_thread server = { .cpu = -1 };
	struct tdm_local_clock clock;
	struct tdm_error err;

	if (!responder_thread_start(&server, address) ||
		tdm_local_clock_init(&clock, "mono", NULL, &err) != TDM_OK) {
		fail("cannot start");
	}

	const struct tdm_requester_options options = {
		.address = server.address, .clock = "mono", .local = &clock, .datagrams = datagrams
	};
	struct tdm_requester *requester = tdm_requester_create(&options, &err);

	if (!requester) {
		fail(err.text);
	}
	if (!kernel_stamps_become(false, PATIENCE_MS)) {
		fail("the key is on before the burst");
	}
	/* Twice: what turns off late by itself would show in the second one. */
	for (int round = 0; round < 2; round++) {
		bool was_on = on_during_burst(requester, stamps);

		/* Somebody else on this machine may ask for stamps meanwhile; not each time, we would. */
		for (int again = 0; !stamps && was_on && again < 5; again++) {
			kernel_stamps_become(false, PATIENCE_MS);
			was_on = on_during_burst(requester, stamps);
		}

		printf("%s%s, %s: key %s during the burst\n", address, datagrams ? " with UDP" : "",
			stamps ? "stamps kernel" : "stamps user", was_on ? "on" : "off");
		if (was_on != stamps) {
			fail(stamps ? "the key is off during the burst"
				    : "the key is on without being asked for");
		}
		if (!kernel_stamps_become(false, 5000)) {
			fail("the key stays on after the burst");
		}
		kernel_stamps_pause_ms(1000);
	}
	/* A burst whose peer dies in the middle leaves nothing on either. */
	if (stamps) {
		struct bursts bursts = { .requester = requester, .stamps = true };
		pthread_t thread;

		pthread_create(&thread, NULL, run_burst, &bursts);
		kernel_stamps_pause_ms(100);
		shutdown(tdm_requester_fd(requester), SHUT_RDWR);
		pthread_join(thread, NULL);
		if (!kernel_stamps_become(false, 2000)) {
			fail("the key stays on after a burst that broke");
		}
	}
	tdm_requester_destroy(requester);
	responder_thread_stop(&server);
	tdm_local_clock_release(&clock);
	if (!kernel_stamps_become(false, 2000)) {
		fail("the key stays on after the session");
	}
}

static struct tdm_requester *connect_to(
	const struct responder_thread *server, struct tdm_local_clock *clock, bool datagrams)
{
	struct tdm_error err;

	if (tdm_local_clock_init(clock, "mono", NULL, &err) != TDM_OK) {
		fail("no clock");
	}

	const struct tdm_requester_options options = {
		.address = server->address, .clock = "mono", .local = clock, .datagrams = datagrams
	};
	struct tdm_requester *requester = tdm_requester_create(&options, &err);

	if (!requester) {
		fail(err.text);
	}
	return requester;
}

/* A program that is killed in a burst with stamps, in whatever way, leaves the key to nobody: not its own, not its peer's. */
static void check_killed(int signal_number, bool datagrams)
{
	struct responder_thread server = { .cpu = -1 };
	bool was_on = false;

	if (!responder_thread_start(&server, "tcp:127.0.0.1:0")) {
		fail("cannot start");
	}

	const pid_t pid = fork();

	if (pid == 0) {
		struct tdm_local_clock clock;
		struct tdm_requester *requester = connect_to(&server, &clock, datagrams);

		for (;;) {
			const struct tdm_burst_plan plan = { .count = TDM_BURST_COUNT_MAX,
				.stamps = true,
				.max_ms = TDM_BURST_MAX_MS };
			struct tdm_burst_result result;

			tdm_requester_burst(requester, &plan, &result, NULL);
		}
	}
	for (int i = 0; i < 100 && !was_on; i++) {
		was_on = kernel_stamps_are_on();
		kernel_stamps_pause_ms(10);
	}
	kill(pid, signal_number);
	waitpid(pid, NULL, 0);
	if (!was_on) {
		fail("no burst with stamps to be killed in");
	}
	if (!kernel_stamps_become(false, 3000)) {
		fail("the key stays on after a kill in a burst");
	}
	responder_thread_stop(&server);
	printf("killed by signal %d%s: key off\n", signal_number, datagrams ? ", UDP" : "");
}

/* A host that has a burst with stamps begun and then says nothing: the answering end turns them off by itself. */
static void check_silent(void)
{
	struct responder_thread server = { .cpu = -1 };
	const struct tdm_link_options link_options = { .capabilities = TDM_CAN_EXCHANGE };
	const struct tdm_burst_frame burst = { .count = 1000, .flags = TDM_BURST_STAMPS };
	struct tdm_buffer open = { .cap = 4096 };
	uint8_t body[TDM_BURST_BYTES];
	struct tdm_opened opened;
	struct tdm_error err;
	struct tdm_link *link;
	int fd;

	if (!responder_thread_start(&server, "tcp:127.0.0.1:0") ||
		tdm_socket_connect(&server.address, tdm_deadline_ns(5000), -1, &fd, &err) !=
			TDM_OK ||
		!(link = tdm_link_create(fd, TDM_ROLE_CLIENT, &link_options, &err))) {
		fail("cannot connect");
	}
	tdm_open_put(&open, TDM_PURPOSE_EXCHANGE, 5);
	tdm_record_add(&open, "clock", "mono");
	tdm_burst_put(body, &burst);
	if (tdm_link_request(link, &open, tdm_deadline_ns(5000), -1, &opened, &err) != TDM_OK ||
		tdm_link_send(link, TDM_FRAME_BURST, body, sizeof(body), tdm_deadline_ns(1000),
			&err) != TDM_OK) {
		fail(err.text);
	}
	if (!kernel_stamps_become(true, 1000)) {
		fail("the key is off in a burst that was asked for");
	}
	if (!kernel_stamps_become(false, 3000)) {
		fail("the key stays on for a host that says nothing more");
	}
	printf("silent in a burst: key off\n");
	tdm_buffer_release(&open);
	tdm_link_destroy(link);
	responder_thread_stop(&server);
}

int main(void)
{
	if (!kernel_stamps_become(false, PATIENCE_MS)) {
		/* Somebody else's capture. */
		printf("SKIP: receive stamping is on already\n");
		return 77;
	}
	check("tcp:127.0.0.1:0", false, false);
	check("tcp:127.0.0.1:0", false, true);
	check("tcp:127.0.0.1:0", true, true);
	check_killed(SIGTERM, false);
	check_killed(SIGKILL, true);
	check_silent();
	return 0;
}
