/* SPDX-License-Identifier: MIT */
#include "out_dir.h"
#include "record_spool_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <tandem/tracedat_writer.h>
#include <unistd.h>

enum {
	MAX_SHIFT_POINTS = 4096
};

/* Times of the last events lie behind their page's base time: the shift has to reach as far. */
#define SHIFT_MARGIN_UNITS (UINT64_C(10) * 1000 * 1000 * 1000)

/* Base time of the page at an offset of a CPU's file. */
static bool page_time(
	const struct record_spool *spool, uint32_t cpu, uint64_t offset, uint64_t *time)
{
	uint8_t bytes[8];

	if (pread(spool->fds[cpu], bytes, sizeof(bytes), (off_t)offset) != sizeof(bytes)) {
		return false;
	}
	*time = tdm_load_u64(bytes, spool->meta.big_endian);
	return true;
}

/* First and last raw time of all pages. */
static bool time_range(const struct record_spool *spool, uint64_t *first, uint64_t *last)
{
	const uint64_t page_bytes = spool->meta.page_bytes;
	bool found = false;

	*first = UINT64_MAX;
	*last = 0;
	for (uint32_t cpu = 0; cpu < spool->cpu_count; cpu++) {
		const uint64_t pages =
			page_bytes ? record_spool_cpu_bytes(spool, cpu) / page_bytes : 0;
		uint64_t head, tail;

		if (pages && page_time(spool, cpu, 0, &head) &&
			page_time(spool, cpu, (pages - 1) * page_bytes, &tail)) {
			*first = head < *first ? head : *first;
			*last = tail > *last ? tail : *last;
			found = true;
		}
	}
	return found;
}

/* The same points for every CPU, as trace-cmd wants one list each; CPUs with an offset of their own get theirs. */
static enum tdm_status make_shift(const struct record_spool *spool,
	const struct tdm_timeline *corrections, struct tdm_shift_cpu *cpus,
	struct tdm_shift_sample **points, struct tdm_error *err)
{
	uint64_t first, last;

	*points = calloc((size_t)spool->cpu_count * MAX_SHIFT_POINTS, sizeof(**points));
	if (!*points) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a TIME_SHIFT");
	}
	if (!time_range(spool, &first, &last)) {
		return TDM_END;
	}
	for (uint32_t cpu = 0; cpu < spool->cpu_count; cpu++) {
		struct tdm_shift_sample *mine = *points + (size_t)cpu * MAX_SHIFT_POINTS;
		size_t count = 0;
		const enum tdm_status status = tdm_timeline_to_shift(corrections, cpu, first,
			last + SHIFT_MARGIN_UNITS, mine, MAX_SHIFT_POINTS, &count, err);

		if (status != TDM_OK) {
			return status;
		}
		cpus[cpu] = (struct tdm_shift_cpu){ .samples = mine, .sample_count = count };
	}
	return TDM_OK;
}

/*
 * Whether the result only finds room where the spool gives way while it is copied. That is a risk (a failure half way
 * loses what was copied), so it is only taken where the plain way must fail.
 */
static bool disk_is_full(const struct record_spool *spool)
{
	struct statvfs disk;

	return statvfs(spool->path, &disk) == 0 &&
	       (uint64_t)disk.f_bavail * disk.f_frsize < record_spool_bytes(spool) / 2;
}

enum tdm_status record_spool_finish(struct record_spool *spool, const struct tdm_guest_info *guests,
	size_t guest_count, const struct tdm_timeline *corrections, const struct tdm_log *log,
	struct tdm_error *err)
{
	struct tdm_page_spool *pages = calloc(spool->cpu_count, sizeof(*pages));
	struct tdm_shift_cpu *shift_cpus = calloc(spool->cpu_count, sizeof(*shift_cpus));
	struct tdm_shift_sample *shift_points = NULL;
	char *path = out_dir_path(spool->dir, spool->name, ".dat");
	enum tdm_status status = TDM_OK;
	struct tdm_tracedat_plan plan = {
		.path = path,
		.meta = &spool->meta,
		.prefix = spool->prefix.size ? &spool->prefix : NULL,
		.compress = true,
		.trace_id = spool->ties.trace_id,
		.guests = guests,
		.guest_count = guest_count,
		.peer_trace_id = spool->ties.host_trace_id,
		.shift_cpus = shift_cpus,
		.has_tsc2nsec = spool->ties.has_tsc2nsec,
		.tsc_mult = spool->ties.tsc_mult,
		.tsc_shift = spool->ties.tsc_shift,
		.spools = pages,
	};

	if (!pages || !shift_cpus || !path) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory");
		goto out;
	}
	if (corrections) {
		struct tdm_error reason = { 0 };

		status = make_shift(spool, corrections, shift_cpus, &shift_points, &reason);
		plan.has_shift = status == TDM_OK;
		plan.shift_cpu_count = plan.has_shift ? spool->cpu_count : 0;
		if (status != TDM_OK && status != TDM_END) {
			/* The corrections file beside it still says it all; only trace-cmd's readers go without. */
			TDM_WARNING(log, "No TIME_SHIFT in %s: %s", path, reason.text);
		}
	}
	for (uint32_t cpu = 0; cpu < spool->cpu_count; cpu++) {
		if (spool->fds[cpu] >= 0) {
			pages[plan.spool_count++] = (struct tdm_page_spool){
				.cpu = cpu,
				.fd = spool->fds[cpu],
				.size_bytes = record_spool_cpu_bytes(spool, cpu),
				.give_back = disk_is_full(spool),
			};
		}
	}
	record_spool_release_reserve(spool);
	status = tdm_tracedat_write(&plan, err);
	if (status == TDM_OK) {
		record_spool_remove(spool);
	}
out:
	free(pages);
	free(shift_cpus);
	free(shift_points);
	free(path);
	return status;
}
