/* SPDX-License-Identifier: MIT */
/*
 * bench_stream.c - how fast a guest's pages come over loopback: a real agent's rings, filled beforehand, to a file in memory,
 * bare and sealed; beside the plainest loops of splice and of read and write over the same rings, in turn.
 *
 * usage: bench_stream AGENT [ROUNDS] [MIB]     as root; MIB of each CPU's ring
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tandem/stream.h>
#include <tandem/tap.h>
#include <unistd.h>

enum {
	MAX_CPUS = 64,
	MAX_ROUNDS = 99,
	BLOB_BYTES = 3000,
	PIPE_BYTES = 1 << 20,
	MIB = 1 << 20
};

static const char event_name[] =
	"sched:sched_process_exec"; /* rare: what fills the rings is ours */

struct bench {
	const char *agent_path;
	unsigned int rounds, ring_mib;
	uint32_t cpu_count, page_bytes;
	char secret_path[96];
	struct tdm_secret secret;
	struct tdm_address address;
	pid_t agent_pid;
	int files[MAX_CPUS]; /* in memory */
};

static void die(const char *what, const struct tdm_error *err)
{
	fprintf(stderr, "bench_stream: %s: %s\n", what, err ? err->text : strerror(errno));
	exit(1);
}

/* What one way gave in each round. */
struct figures {
	double mib_s[MAX_ROUNDS]; /* by the wall clock */
	double cpu_ms_gib
		[MAX_ROUNDS]; /* of both ends: what is left of it on a machine that has other work */
};

/* CPU time of this process and, with @p agent, of that one. */
static uint64_t cpu_ns(const struct bench *bench, bool agent)
{
	struct timespec own = { 0 }, other = { 0 };
	clockid_t clock;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
	if (agent && clock_getcpuclockid(bench->agent_pid, &clock) == 0) {
		clock_gettime(clock, &other);
	}
	return (uint64_t)(own.tv_sec + other.tv_sec) * 1000000000 +
	       (uint64_t)(own.tv_nsec + other.tv_nsec);
}

static void note(struct figures *figures, unsigned int round, uint64_t got_bytes, uint64_t began_ns,
	uint64_t used_ns)
{
	const double mib = (double)got_bytes / MIB;

	figures->mib_s[round] = mib / ((double)(tdm_now_ns() - began_ns) / 1e9);
	figures->cpu_ms_gib[round] = (double)used_ns / 1e6 / (mib / 1024);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

/* ---- rings full of markers ---- */

/* Writes to each CPU's ring until it has gone round: then it holds what it can hold. */
static void fill_rings(const struct bench *bench, const char *instance)
{
	static char blob[BLOB_BYTES] = { 1, 2, 3, 4 };
	char path[512];

	snprintf(path, sizeof(path), "%s/trace_marker_raw", instance);

	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0) {
		die(path, NULL);
	}
	for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set) != 0) {
			die("sched_setaffinity", NULL);
		}
		for (size_t done = 0; done < (size_t)bench->ring_mib * MIB;
			done += bench->page_bytes) {
			if (write(fd, blob, sizeof(blob)) < 0) {
				die("writing markers", NULL);
			}
		}
		CPU_ZERO(&set);
		for (uint32_t i = 0; i < bench->cpu_count; i++) {
			CPU_SET(i, &set);
		}
		sched_setaffinity(0, sizeof(set), &set);
	}
	close(fd);
}

static void empty_files(struct bench *bench)
{
	for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
		if (ftruncate(bench->files[cpu], 0) != 0 ||
			lseek(bench->files[cpu], 0, SEEK_SET) != 0) {
			die("emptying a file", NULL);
		}
	}
}

/* ---- the agent ---- */

static void start_agent(struct bench *bench)
{
	char buffer[16], path[64], text[80];
	struct tdm_error err;

	snprintf(buffer, sizeof(buffer), "%u", bench->ring_mib * 1024);
	snprintf(path, sizeof(path), "/tmp/bench-stream-%d", (int)getpid());
	snprintf(bench->secret_path, sizeof(bench->secret_path), "%s.secret", path);

	const int fd = open(bench->secret_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, "between us\n", 11) != 11 || close(fd) != 0 ||
		tdm_secret_load(bench->secret_path, &bench->secret, &err) != TDM_OK) {
		die("the secret", NULL);
	}

	/* A free port: the one that the kernel gives to a socket that goes again. */
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	const int probe = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(probe, (struct sockaddr *)&at, sizeof(at)) != 0 ||
		getsockname(probe, (struct sockaddr *)&at, &size) != 0) {
		die("a port", NULL);
	}
	close(probe);
	snprintf(text, sizeof(text), "tcp:127.0.0.1:%u", ntohs(at.sin_port));
	if (tdm_address_parse(text, TDM_ADDRESS_CONNECT, &bench->address, &err) != TDM_OK) {
		die(text, &err);
	}
	bench->agent_pid = fork();
	if (bench->agent_pid == 0) {
		execl(bench->agent_path, bench->agent_path, "--quiet", "--listen", text,
			"--secret-file", bench->secret_path, "--allow", "*:*", "--max-buffer-kib",
			buffer, (char *)NULL);
		_exit(127);
	}
	usleep(300000);
}

/* The instance that the agent made for the session that is open. */
static void find_instance(const struct bench *bench, char *path, size_t room)
{
	const char *root = tdm_tap_find_tracefs(NULL);
	char prefix[32], folder[256];

	snprintf(prefix, sizeof(prefix), "tandem-%d-", (int)bench->agent_pid);
	snprintf(folder, sizeof(folder), "%s/instances", root ? root : "");

	DIR *list = opendir(folder);

	for (struct dirent *entry; list && (entry = readdir(list));) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
			snprintf(path, room, "%s/%.200s", folder, entry->d_name);
			closedir(list);
			return;
		}
	}
	die("the agent's instance", NULL);
}

/* As the recorder of a guest does: one thread for all its CPUs. */
static uint64_t receive_all(struct bench *bench, struct tdm_page_link **links)
{
	struct pollfd polls[MAX_CPUS];
	uint64_t sum_bytes = 0;
	uint32_t left = bench->cpu_count;
	struct tdm_error err = { 0 };

	while (left) {
		for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
			polls[cpu] = (struct pollfd){
				.fd = links[cpu] ? tdm_page_link_fd(links[cpu]) : -1,
				.events = POLLIN,
			};
		}
		poll(polls, bench->cpu_count, 1000);
		for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
			uint64_t moved_bytes = 0;

			if (!links[cpu] || !polls[cpu].revents) {
				continue;
			}

			const enum tdm_status status = tdm_page_link_move(
				links[cpu], bench->files[cpu], &moved_bytes, &err);

			sum_bytes += moved_bytes;
			if (status == TDM_END) {
				tdm_page_link_destroy(links[cpu]);
				links[cpu] = NULL;
				left--;
			} else if (status != TDM_OK && status != TDM_AGAIN) {
				die("pages", &err);
			}
		}
	}
	return sum_bytes;
}

static void measure_agent(
	struct bench *bench, bool plain, struct figures *figures, unsigned int round)
{
	const struct tdm_stream_event event = { .pattern = event_name };
	const struct tdm_stream_request request = {
		.events = &event, .event_count = 1, .clock = "mono", .plain = plain
	};
	const struct tdm_stream_options options = { .address = &bench->address,
		.secret = &bench->secret };
	struct tdm_page_link *links[MAX_CPUS] = { NULL };
	struct tdm_trace_meta meta = { 0 };
	struct tdm_stream_end end = { 0 };
	struct tdm_error err = { 0 };
	struct tdm_stream *stream = tdm_stream_create(&options, &request, &err);
	char instance[512];

	if (!stream || tdm_stream_receive_texts(stream, &meta, &err) != TDM_OK) {
		die("the agent", &err);
	}
	for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
		links[cpu] = tdm_page_link_create(stream, cpu, &err);
		if (!links[cpu]) {
			die("a page link", &err);
		}
	}
	if (tdm_stream_start(stream, &err) != TDM_OK) {
		die("the start", &err);
	}
	/* Nobody reads meanwhile: the agent stands still once the sockets are full. */
	find_instance(bench, instance, sizeof(instance));
	fill_rings(bench, instance);
	empty_files(bench);

	const uint64_t began_ns = tdm_now_ns();
	const uint64_t began_cpu_ns = cpu_ns(bench, true);

	if (tdm_stream_stop(stream, &err) != TDM_OK) {
		die("the stop", &err);
	}

	const uint64_t got_bytes = receive_all(bench, links);

	note(figures, round, got_bytes, began_ns, cpu_ns(bench, true) - began_cpu_ns);
	if (tdm_stream_receive_end(stream, &meta, &end, &err) != TDM_OK) {
		die("the end", &err);
	}
	if (got_bytes != end.sent_bytes) {
		fprintf(stderr, "bench_stream: bytes sent and received differ\n");
		exit(1);
	}
	tdm_stream_destroy(stream);
	tdm_trace_meta_release(&meta);
}

/* ---- the plainest way ---- */

struct plain {
	const struct bench *bench;
	bool splices;
	int ring_fds[MAX_CPUS], out_fds[MAX_CPUS], in_fds[MAX_CPUS];
	uint64_t got_bytes;
};

struct sender {
	struct plain *plain;
	uint32_t cpu;
};

/* As the agent has one for each CPU. */
static void *send_plain(void *user)
{
	const struct sender *sender = user;
	const struct plain *plain = sender->plain;
	const int ring_fd = plain->ring_fds[sender->cpu];
	const int out_fd = plain->out_fds[sender->cpu];
	const uint32_t page_bytes = plain->bench->page_bytes;
	char *page = malloc(page_bytes);
	int ends[2];

	if (!page || pipe(ends) != 0) {
		die("a pipe", NULL);
	}
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	for (ssize_t taken;
		plain->splices && (taken = splice(ring_fd, NULL, ends[1], NULL, PIPE_BYTES,
					   SPLICE_F_MOVE | SPLICE_F_NONBLOCK)) > 0;) {
		while (taken > 0) {
			const ssize_t done =
				splice(ends[0], NULL, out_fd, NULL, (size_t)taken, SPLICE_F_MOVE);

			if (done <= 0) {
				die("splice", NULL);
			}
			taken -= done;
		}
	}
	for (ssize_t taken; (taken = read(ring_fd, page, page_bytes)) > 0;) {
		if (write(out_fd, page, page_bytes) != (ssize_t)page_bytes) {
			die("write", NULL);
		}
	}
	shutdown(out_fd, SHUT_WR);
	close(ends[0]);
	close(ends[1]);
	free(page);
	return NULL;
}

/* False at the end of a connection. */
static bool receive_plain(struct plain *plain, uint32_t cpu, const int ends[2], char *buffer)
{
	const int file = plain->bench->files[cpu];
	ssize_t got;

	if (!plain->splices) {
		got = recv(plain->in_fds[cpu], buffer, PIPE_BYTES, 0);
		if (got > 0 && write(file, buffer, (size_t)got) != got) {
			die("write", NULL);
		}
	} else {
		got = splice(plain->in_fds[cpu], NULL, ends[1], NULL, PIPE_BYTES, SPLICE_F_MOVE);
		for (ssize_t left = got; left > 0;) {
			const ssize_t done =
				splice(ends[0], NULL, file, NULL, (size_t)left, SPLICE_F_MOVE);

			if (done <= 0) {
				die("splice", NULL);
			}
			left -= done;
		}
	}
	plain->got_bytes += got > 0 ? (uint64_t)got : 0;
	return got > 0;
}

static void connect_pair(int *out_fd, int *in_fd)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int one = 1;

	*in_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 1) != 0 ||
		getsockname(listener, (struct sockaddr *)&at, &size) != 0 ||
		connect(*in_fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
		(*out_fd = accept(listener, NULL, NULL)) < 0) {
		die("a connection", NULL);
	}
	setsockopt(*out_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(listener);
}

static void measure_plain(
	struct bench *bench, bool splices, struct figures *figures, unsigned int round)
{
	const struct tdm_tap_event event = { .pattern = event_name };
	const struct tdm_tap_options options = { .label = "bench",
		.events = &event,
		.event_count = 1,
		.clock = "mono",
		.buffer_kib = bench->ring_mib * 1024 };
	static struct plain plain;
	struct sender senders[MAX_CPUS];
	pthread_t threads[MAX_CPUS];
	struct pollfd polls[MAX_CPUS];
	char *buffer = malloc(PIPE_BYTES);
	struct tdm_tap *tap = NULL;
	struct tdm_error err;
	uint32_t left = bench->cpu_count;
	int ends[2];

	plain = (struct plain){ .bench = bench, .splices = splices };
	if (!buffer || pipe(ends) != 0 || tdm_tap_create(&options, NULL, &tap, &err) != TDM_OK ||
		tdm_tap_start(tap, &err) != TDM_OK) {
		die("an instance", &err);
	}
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	fill_rings(bench, tdm_tap_path(tap));
	tdm_tap_stop(tap, &err);
	empty_files(bench);
	for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
		char path[512];

		snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/trace_pipe_raw", tdm_tap_path(tap),
			cpu);
		plain.ring_fds[cpu] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		connect_pair(&plain.out_fds[cpu], &plain.in_fds[cpu]);
		senders[cpu] = (struct sender){ .plain = &plain, .cpu = cpu };
	}

	const uint64_t began_ns = tdm_now_ns();
	const uint64_t began_cpu_ns = cpu_ns(bench, false);

	for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
		if (pthread_create(&threads[cpu], NULL, send_plain, &senders[cpu]) != 0) {
			die("a thread", NULL);
		}
		polls[cpu] = (struct pollfd){ .fd = plain.in_fds[cpu], .events = POLLIN };
	}
	while (left) {
		poll(polls, bench->cpu_count, 1000);
		for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
			if (polls[cpu].fd >= 0 && polls[cpu].revents &&
				!receive_plain(&plain, cpu, ends, buffer)) {
				polls[cpu].fd = -1;
				left--;
			}
		}
	}

	note(figures, round, plain.got_bytes, began_ns, cpu_ns(bench, false) - began_cpu_ns);
	for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
		pthread_join(threads[cpu], NULL);
		close(plain.ring_fds[cpu]);
		close(plain.out_fds[cpu]);
		close(plain.in_fds[cpu]);
	}
	close(ends[0]);
	close(ends[1]);
	tdm_tap_destroy(tap);
	free(buffer);
}

/* One line of the result. */
struct way {
	const char *name;
	struct figures *figures;
};

static void open_files(struct bench *bench)
{
	const struct tdm_tap_event event = { .pattern = event_name };
	const struct tdm_tap_options options = { .label = "bench",
		.events = &event,
		.event_count = 1,
		.clock = "mono",
		.buffer_kib = 8 };
	struct tdm_tap *tap = NULL;
	struct tdm_error err;

	if (tdm_tap_create(&options, NULL, &tap, &err) != TDM_OK) {
		die("an instance", &err);
	}
	bench->cpu_count = tdm_tap_cpu_count(tap);
	bench->page_bytes = tdm_tap_page_bytes(tap);
	tdm_tap_destroy(tap);
	if (bench->cpu_count > MAX_CPUS) {
		fprintf(stderr, "bench_stream: more than %d CPUs\n", MAX_CPUS);
		exit(1);
	}
	for (uint32_t cpu = 0; cpu < bench->cpu_count; cpu++) {
		bench->files[cpu] = memfd_create("pages", MFD_CLOEXEC);
	}
}

int main(int argc, char **argv)
{
	struct bench bench = { .rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 7,
		.ring_mib = argc > 3 ? (unsigned int)atoi(argv[3]) : 128 };
	static struct figures bare, sealed, spliced, copied;

	if (argc < 2 || bench.rounds < 1 || bench.rounds > MAX_ROUNDS || bench.ring_mib < 1) {
		fprintf(stderr, "usage: bench_stream AGENT [ROUNDS] [MIB]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	bench.agent_path = argv[1];
	open_files(&bench);
	start_agent(&bench);
	for (unsigned int i = 0; i < bench.rounds; i++) {
		measure_agent(&bench, true, &bare, i);
		measure_plain(&bench, true, &spliced, i);
		measure_plain(&bench, false, &copied, i);
		measure_agent(&bench, false, &sealed, i);
	}
	kill(bench.agent_pid, SIGTERM);
	waitpid(bench.agent_pid, NULL, 0);
	unlink(bench.secret_path);

	const struct way ways[] = { { "bare", &bare }, { "sealed", &sealed },
		{ "limit: splice", &spliced }, { "limit: read and write", &copied } };
	double mib_s[4], cpu_ms_gib[4];

	for (unsigned int i = 0; i < 4; i++) {
		mib_s[i] = median(ways[i].figures->mib_s, bench.rounds);
		cpu_ms_gib[i] = median(ways[i].figures->cpu_ms_gib, bench.rounds);
	}

	const unsigned int limit = mib_s[2] > mib_s[3] ? 2 : 3;

	for (unsigned int i = 0; i < 4; i++) {
		printf("%-22s %6.0f MiB/s of pages, %6.0f ms CPU/GiB; x %.2f of the limit, x %.2f of bare\n",
			ways[i].name, mib_s[i], cpu_ms_gib[i], mib_s[i] / mib_s[limit],
			mib_s[i] / mib_s[0]);
	}
	printf("(%u CPUs, medians of %u rounds of %u MiB a ring, to a file in memory)\n",
		bench.cpu_count, bench.rounds, bench.ring_mib);
	return 0;
}
