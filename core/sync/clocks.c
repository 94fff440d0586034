/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <tandem/clocks.h>
#include <tandem/wide.h>
#include <unistd.h>

static const struct {
	const char *name;
	enum tdm_clock clock;
} names[] = {
	{ "mono", TDM_CLOCK_MONO },
	{ "mono_raw", TDM_CLOCK_RAW },
	{ "real", TDM_CLOCK_REAL },
	{ "boot", TDM_CLOCK_BOOT },
	{ "tai", TDM_CLOCK_TAI },
	{ "x86-tsc", TDM_CLOCK_TSC },
	{ "local", TDM_CLOCK_MARKER },
	{ "global", TDM_CLOCK_MARKER },
	{ "perf", TDM_CLOCK_MARKER },
	{ "uptime", TDM_CLOCK_MARKER },
};

enum tdm_status tdm_clock_by_name(const char *name, enum tdm_clock *clock, struct tdm_error *err)
{
	*clock = TDM_CLOCK_NONE;
	if (strcmp(name, "counter") == 0) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"clock \"counter\" counts events, it does not tell time");
	}
#if !defined(__x86_64__)
	if (strcmp(name, "x86-tsc") == 0) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED, "this machine has no x86-tsc");
	}
#endif
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i].name, name) == 0) {
			*clock = names[i].clock;
			return TDM_OK;
		}
	}
	return tdm_fail(err, TDM_ERR_UNSUPPORTED,
		"clock \"%.60s\" is not known; wanted mono, mono_raw, boot, tai, real, x86-tsc, local, global, perf or uptime",
		name);
}

enum tdm_clock tdm_clock_raw_of(enum tdm_clock clock)
{
	return clock == TDM_CLOCK_TSC ? TDM_CLOCK_TSC : TDM_CLOCK_RAW;
}

const char *tdm_clock_name(enum tdm_clock clock)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].clock == clock && clock != TDM_CLOCK_MARKER) {
			return names[i].name;
		}
	}
	return clock == TDM_CLOCK_MARKER ? "marker" : "none";
}

struct tdm_sandwich tdm_clock_sandwich(enum tdm_clock outer, enum tdm_clock inner)
{
	struct tdm_sandwich best = { .width = UINT64_MAX };

	for (int i = 0; i < 8; i++) {
		const uint64_t before = tdm_clock_read(outer);
		const uint64_t reading = tdm_clock_read(inner);
		const uint64_t after = tdm_clock_read(outer);

		if (after >= before && after - before < best.width) {
			best.outer = before + (after - before) / 2;
			best.inner = reading;
			best.width = after - before;
		}
	}
	return best;
}

#if defined(__x86_64__)
/* The kernel's own conversion of ticks to ns, which it shows to whoever may open a software counter. */
static uint64_t hz_from_perf(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1 };
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t hz = 0;

	if (fd < 0) {
		return 0;
	}

	const long page_bytes = sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page =
		mmap(NULL, (size_t)page_bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (page != MAP_FAILED) {
		if (page->cap_user_time && page->time_mult) {
			hz = (uint64_t)(((tdm_u128)1000000000 << page->time_shift) /
					page->time_mult);
		}
		munmap(page, (size_t)page_bytes);
	}
	close(fd);
	return hz;
}

static uint64_t hz_measured(void)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	const struct tdm_sandwich first = tdm_clock_sandwich(TDM_CLOCK_RAW, TDM_CLOCK_TSC);

	nanosleep(&pause, NULL);

	const struct tdm_sandwich second = tdm_clock_sandwich(TDM_CLOCK_RAW, TDM_CLOCK_TSC);
	const uint64_t span_ns = second.outer - first.outer;

	return span_ns && second.inner > first.inner
		       ? (uint64_t)((tdm_u128)(second.inner - first.inner) * 1000000000 / span_ns)
		       : 0;
}
#endif

uint64_t tdm_clock_tsc_hz(void)
{
#if defined(__x86_64__)
	const uint64_t hz = hz_from_perf();

	return hz ? hz : hz_measured();
#else
	return 0;
#endif
}

int32_t tdm_clock_steering(void)
{
	struct timex state = { 0 };

	return adjtimex(&state) < 0 ? 0 : (int32_t)state.freq;
}

void tdm_clock_boot_id(char id[37])
{
	const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd >= 0 ? read(fd, id, 36) : -1;

	if (fd >= 0) {
		close(fd);
	}
	if (got == 36) {
		id[36] = '\0';
	} else {
		memcpy(id, "unknown", 8);
	}
}

const char *tdm_clock_source(enum tdm_clock raw)
{
	char name[8] = "";

	if (raw == TDM_CLOCK_TSC) {
		return "tsc";
	}
	if (raw != TDM_CLOCK_RAW) {
		return "";
	}

	const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd >= 0 ? read(fd, name, sizeof(name) - 1) : -1;

	if (fd >= 0) {
		close(fd);
	}
	return got == 4 && memcmp(name, "tsc\n", 4) == 0 ? "tsc" : "";
}
