/* SPDX-License-Identifier: MIT */
#include "agent.h"
#include "privilege.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <tandem/tap.h>
#include <unistd.h>

enum {
	EVENTS = 64,
	ACCEPT_BATCH = 64 /* then the others have their turn */
};

static void write_log(void *user, enum tdm_log_level level, const char *line)
{
	(void)user;
	fprintf(stderr, "tandem-agent: %s%s\n", level <= TDM_LOG_WARNING ? "warning: " : "", line);
}

void agent_log_peer(struct agent *agent, const struct agent_peer *peer, const char *text)
{
	tdm_log_limited(&agent->log_limit, &agent->log, "%s: %s", peer->who.text, text);
}

static void accept_peers(struct agent *agent, unsigned int index)
{
	const int listener = agent->listeners[index];

	for (int i = 0; i < ACCEPT_BATCH; i++) {
		struct tdm_peer who;
		struct tdm_error err;
		int fd;
		const enum tdm_status status = tdm_socket_accept(listener, &fd, &who, &err);

		if (status == TDM_OK && agent->options->listen[index].is_tracecmd) {
			agent_peer_add_tracecmd(agent, fd, &who);
		} else if (status == TDM_OK) {
			agent_peer_add(agent, fd, &who);
		} else if (status == TDM_ERR_NOMEM && agent->greeting_count > 0) {
			/* No descriptor left: one of those that do nothing makes room. */
			agent_peer_shed(agent);
		} else {
			return;
		}
	}
}

/* What an epoll event is about: a small number, or a peer's address. */
enum source {
	SOURCE_SIGNAL = 1,
	SOURCE_REAP,
	SOURCE_STEP,
	SOURCE_LISTENER, /* and so on, one each */
	SOURCE_PEER = SOURCE_LISTENER + AGENT_LISTEN_MAX
};

static bool watch(struct agent *agent, int fd, uint64_t source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = source };

	return fd < 0 || epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Serves until a signal comes. */
static void serve(struct agent *agent)
{
	for (;;) {
		struct epoll_event events[EVENTS];
		const uint64_t expires_ns = agent_peer_expire(agent);
		const uint64_t now_ns = tdm_now_ns();
		/* Nobody greets: nothing wakes us but news. */
		const int timeout_ms =
			expires_ns == UINT64_MAX
				? -1
				: (int)((expires_ns > now_ns ? expires_ns - now_ns : 0) / 1000000) +
					  1;
		const int count = epoll_wait(agent->epoll_fd, events, EVENTS, timeout_ms);

		/* Peers first: what they are about may be dropped by what comes later. */
		for (int i = 0; i < count; i++) {
			if (events[i].data.u64 >= SOURCE_PEER) {
				agent_peer_greet(
					(struct agent_peer *)(uintptr_t)events[i].data.u64);
			}
		}
		for (int i = 0; i < count; i++) {
			const uint64_t source = events[i].data.u64;

			if (source == SOURCE_SIGNAL) {
				return;
			}
			if (source == SOURCE_REAP) {
				agent_peer_reap(agent);
			} else if (source == SOURCE_STEP) {
				agent_clock_rearm(&agent->clock);
			} else if (source >= SOURCE_LISTENER && source < SOURCE_PEER) {
				accept_peers(agent, (unsigned int)(source - SOURCE_LISTENER));
			}
		}
	}
}

static bool listen_everywhere(struct agent *agent)
{
	unsigned int good = 0;

	for (unsigned int i = 0; i < agent->options->listen_count; i++) {
		struct agent_listen listen = agent->options->listen[i];
		struct tdm_error err;
		char text[320];

		agent->listeners[i] = -1;
		if (tdm_socket_listen(&listen.address, &agent->listeners[i], &err) != TDM_OK) {
			if (!listen.is_default) {
				fprintf(stderr, "tandem-agent: %s\n", err.text);
				return false;
			}
			TDM_INFO(&agent->log, "Not there: %s", err.text);
			continue;
		}
		good++;
		tdm_address_print(&listen.address, text, sizeof(text));
		TDM_INFO(&agent->log, "Listening: address=\"%s\"%s", text,
			listen.is_tracecmd ? ", protocol=trace-cmd" : "");
		if (listen.is_tracecmd && listen.address.kind == TDM_ADDRESS_TCP &&
			!tdm_address_is_local(&listen.address)) {
			TDM_WARNING(&agent->log,
				"Whoever reaches %s can record what --allow allows: trace-cmd's protocol has no secret",
				text);
		}
	}
	if (good == 0) {
		fprintf(stderr, "tandem-agent: no address to listen on\n");
	}
	return good > 0;
}

static void close_listeners(struct agent *agent)
{
	for (unsigned int i = 0; i < agent->options->listen_count; i++) {
		const struct tdm_address *address = &agent->options->listen[i].address;

		if (agent->listeners[i] >= 0) {
			close(agent->listeners[i]);
			if (address->kind == TDM_ADDRESS_UNIX) {
				unlink(address->path);
			}
		}
	}
}

static bool prepare(struct agent *agent)
{
	sigset_t signals;
	bool good;

	/* Pages are spliced into sockets, where no flag keeps a broken one from raising it. */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	agent->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	agent->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	agent->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	agent->reap_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (agent->signal_fd < 0 || agent->epoll_fd < 0 || agent->stop_fd < 0 ||
		agent->reap_fd < 0) {
		fprintf(stderr, "tandem-agent: %s\n", strerror(errno));
		return false;
	}
	good = watch(agent, agent->signal_fd, SOURCE_SIGNAL) &&
	       watch(agent, agent->reap_fd, SOURCE_REAP) &&
	       watch(agent, agent->clock.step_fd, SOURCE_STEP);
	for (unsigned int i = 0; i < agent->options->listen_count; i++) {
		good = good && watch(agent, agent->listeners[i], SOURCE_LISTENER + i);
	}
	return good;
}

int agent_run(const struct agent_options *options)
{
	struct agent agent = { .options = options,
		.log = { .max_level = options->quiet ? TDM_LOG_ERROR : TDM_LOG_INFO,
			.write = write_log } };
	struct tdm_error err;
	const uint64_t one = 1;
	int status = EXIT_FAILURE;

	tdm_log_limit_init(&agent.log_limit);
	privilege_raise_file_limit();
	privilege_keep_bursts_ahead();
	if (!listen_everywhere(&agent)) {
		close_listeners(&agent);
		return EXIT_FAILURE;
	}
	agent_clock_init(&agent.clock);
	pthread_mutex_init(&agent.tracecmd_lock, NULL);
	stream_list_init(&agent.streams);
	/* What a killed agent left in the kernel; without tracefs there is nothing. */
	tdm_tap_remove_stale(&agent.log);
	if (!options->keep_privileges && privilege_drop(&err) != TDM_OK) {
		fprintf(stderr, "tandem-agent: %s\n", err.text);
	} else if (prepare(&agent)) {
		TDM_INFO(&agent.log, "Ready: secret=%s", options->secret.is_set ? "yes" : "no");
		serve(&agent);
		status = EXIT_SUCCESS;
	}
	(void)!write(agent.stop_fd, &one, sizeof(one));
	agent_peer_end_all(&agent);
	close_listeners(&agent);
	stream_list_release(&agent.streams);
	agent_clock_release(&agent.clock);
	tdm_log_limit_release(&agent.log_limit);
	return status;
}
