/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/local_clock.h>
#include <tandem/tap.h>
#include <unistd.h>

enum {
	MARKERS = 8,
	/* Two markers a CPU would do; the kernel rounds up to a page anyway. */
	RING_KIB = 16,
	PIPE_BYTES = 16384
};

struct tdm_marker {
	struct tdm_tap *tap;
	int write_fd; /* trace_marker */
	int read_fd;  /* trace_pipe, its lines in raw format: times with all digits */
	uint64_t number;
};

static int open_file(const struct tdm_tap *tap, const char *name, int flags)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", tdm_tap_path(tap), name);
	return open(path, flags | O_CLOEXEC);
}

static void marker_destroy(struct tdm_marker *marker)
{
	if (!marker) {
		return;
	}
	if (marker->write_fd >= 0) {
		close(marker->write_fd);
	}
	if (marker->read_fd >= 0) {
		close(marker->read_fd);
	}
	tdm_tap_destroy(marker->tap);
	free(marker);
}

static enum tdm_status marker_create(const char *clock, const struct tdm_log *log,
	struct tdm_marker **made, struct tdm_error *err)
{
	const struct tdm_tap_options options = {
		.label = "clock", .clock = clock, .buffer_kib = RING_KIB
	};
	struct tdm_marker *marker = calloc(1, sizeof(*marker));

	if (!marker) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for clock markers");
	}
	marker->write_fd = -1;
	marker->read_fd = -1;

	enum tdm_status status = tdm_tap_create(&options, log, &marker->tap, err);

	if (status == TDM_OK) {
		status = tdm_tap_start(marker->tap, err);
	}
	if (status == TDM_OK) {
		const int fd = open_file(marker->tap, "trace_options", O_WRONLY);
		const bool is_raw = fd >= 0 && write(fd, "raw", 3) == 3;

		marker->write_fd = open_file(marker->tap, "trace_marker", O_WRONLY);
		marker->read_fd = open_file(marker->tap, "trace_pipe", O_RDONLY | O_NONBLOCK);
		if (!is_raw || marker->write_fd < 0 || marker->read_fd < 0) {
			status = tdm_fail_errno(
				err, errno, "clock markers in %s", tdm_tap_path(marker->tap));
		}
		if (fd >= 0) {
			close(fd);
		}
	}
	if (status != TDM_OK) {
		marker_destroy(marker);
		return status;
	}
	*made = marker;
	return TDM_OK;
}

/* Finds the time of marker "tandem NUMBER" among lines "PID CPU TIME # ADDRESS TEXT". */
static bool find_marker(char *lines, uint64_t number, uint64_t *time)
{
	char *rest = NULL;

	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		uint64_t at, found;

		if (sscanf(line, "%*d %*d %" SCNu64 " # %*x tandem %" SCNu64, &at, &found) == 2 &&
			found == number) {
			*time = at;
			return true;
		}
	}
	return false;
}

static enum tdm_status marker_sample(
	struct tdm_marker *marker, struct tdm_sandwich *best, struct tdm_error *err)
{
	char lines[PIPE_BYTES + 1];

	best->width = UINT64_MAX;
	for (int i = 0; i < MARKERS; i++) {
		char text[40];
		const int length =
			snprintf(text, sizeof(text), "tandem %" PRIu64 "\n", ++marker->number);
		const uint64_t before = tdm_clock_read(TDM_CLOCK_RAW);
		const ssize_t written = write(marker->write_fd, text, (size_t)length);
		const uint64_t after = tdm_clock_read(TDM_CLOCK_RAW);
		uint64_t time;

		if (written != length) {
			return tdm_fail_errno(err, errno, "writing a clock marker");
		}

		const ssize_t got = read(marker->read_fd, lines, PIPE_BYTES);

		if (got <= 0) {
			continue;
		}
		lines[got] = '\0';
		if (find_marker(lines, marker->number, &time) && after - before < best->width) {
			best->outer = before + (after - before) / 2;
			best->inner = time;
			best->width = after - before;
		}
	}
	return best->width == UINT64_MAX
		       ? tdm_fail(err, TDM_ERR_IO, "no clock marker came back from %s",
				 tdm_tap_path(marker->tap))
		       : TDM_OK;
}

enum tdm_status tdm_local_clock_init(struct tdm_local_clock *clock, const char *name,
	const struct tdm_log *log, struct tdm_error *err)
{
	memset(clock, 0, sizeof(*clock));

	enum tdm_status status = tdm_clock_by_name(name, &clock->trace, err);

	if (status != TDM_OK) {
		return status;
	}
	clock->raw = tdm_clock_raw_of(clock->trace);
	/* The kernel stamps in ticks of USER_HZ, whatever its own HZ. */
	clock->tick_ns =
		strcmp(name, "uptime") == 0 ? 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK) : 1;
	if (clock->trace == TDM_CLOCK_MARKER) {
		struct tdm_sandwich sandwich;

		status = marker_create(name, log, &clock->marker, err);
		if (status == TDM_OK) {
			status = tdm_local_clock_sample(clock, &sandwich, err);
		}
		if (status != TDM_OK) {
			tdm_local_clock_release(clock);
			tdm_error_prefix(err, "clock \"%s\"", name);
		}
	}
	return status;
}

uint64_t tdm_local_clock_hz(const struct tdm_local_clock *clock)
{
	return clock->trace == TDM_CLOCK_TSC ? tdm_clock_tsc_hz() : 1000000000 / clock->tick_ns;
}

void tdm_local_clock_release(struct tdm_local_clock *clock)
{
	marker_destroy(clock->marker);
	clock->marker = NULL;
}

enum tdm_status tdm_local_clock_sample(
	struct tdm_local_clock *clock, struct tdm_sandwich *sandwich, struct tdm_error *err)
{
	if (clock->trace == clock->raw) {
		return TDM_AGAIN;
	}
	if (clock->trace != TDM_CLOCK_MARKER) {
		*sandwich = tdm_clock_sandwich(clock->raw, clock->trace);
		return TDM_OK;
	}

	const enum tdm_status status = marker_sample(clock->marker, sandwich, err);

	if (status == TDM_OK) {
		clock->marker_raw = sandwich->outer;
		clock->marker_trace = sandwich->inner;
	}
	return status;
}
