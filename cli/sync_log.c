/* SPDX-License-Identifier: MIT */
#include "sync_log.h"
#include "out_dir.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <tandem/text.h>
#include <unistd.h>

enum {
	CPU_MAX = 1024
};

struct cpu_offset {
	uint32_t cpu;
	int64_t ticks;
	uint64_t bound;
};

struct sync_log {
	char *log_path, *part_path, *corrections_path;
	int fd; /* of part_path */
	struct tdm_exchange_log *log;
	struct tdm_estimator *estimator;
	struct tdm_buffer text;  /* not written yet */
	struct tdm_buffer early; /* records that came before the header could be written */
	bool has_info, has_corrections_file;
	uint64_t epoch;
	struct cpu_offset *cpus;
	size_t cpu_count;
	size_t segments;
	char breaks[SYNC_BREAKS_BYTES];
};

/* The lock tells a log that is being written from one that was left behind, which is begun anew. Negative on failure. */
static int open_part(const char *path, struct tdm_error *err)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0) {
		tdm_fail_errno(err, errno, "%s", path);
		return -1;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, 0) == 0) {
		return fd;
	}
	if (errno == EWOULDBLOCK) {
		tdm_fail(err, TDM_ERR_RANGE, "%s: another tandem writes it now", path);
	} else {
		tdm_fail_errno(err, errno, "%s", path);
	}
	close(fd);
	return -1;
}

struct sync_log *sync_log_create(const char *dir, const char *name, struct tdm_error *err)
{
	struct sync_log *log = calloc(1, sizeof(*log));

	if (log) {
		log->fd = -1;
		log->log_path = out_dir_path(dir, name, ".exchanges");
		log->part_path = out_dir_path(dir, name, ".exchanges.part");
		log->corrections_path = out_dir_path(dir, name, ".corrections");
		log->log = tdm_exchange_log_create();
	}
	if (!log || !log->log_path || !log->part_path || !log->corrections_path || !log->log) {
		sync_log_destroy(log);
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for an exchange log");
		return NULL;
	}
	log->fd = open_part(log->part_path, err);
	if (log->fd < 0) {
		sync_log_destroy(log);
		return NULL;
	}
	return log;
}

void sync_log_destroy(struct sync_log *log)
{
	if (!log) {
		return;
	}
	if (log->fd >= 0) {
		close(log->fd);
		/* A log with samples is worth keeping, even one that could not be completed. */
		if (sync_log_count(log) == 0) {
			unlink(log->part_path);
		}
	}
	tdm_exchange_log_destroy(log->log);
	tdm_estimator_destroy(log->estimator);
	tdm_buffer_release(&log->text);
	tdm_buffer_release(&log->early);
	free(log->log_path);
	free(log->part_path);
	free(log->corrections_path);
	free(log->cpus);
	free(log);
}

void sync_log_remove(struct sync_log *log)
{
	/* It is closed once it is complete and has its own name. */
	unlink(log->fd >= 0 ? log->part_path : log->log_path);
	if (log->has_corrections_file) {
		unlink(log->corrections_path);
	}
}

enum tdm_status sync_log_set_info(
	struct sync_log *log, const struct tdm_exchange_log_info *info, struct tdm_error *err)
{
	enum tdm_status status = tdm_exchange_log_set_info(log->log, info, err);

	if (status != TDM_OK) {
		return status;
	}
	log->estimator = tdm_estimator_create(info);
	if (!log->estimator || tdm_exchange_write_header(info, &log->text) != TDM_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for an exchange log");
	}
	log->has_info = true;
	if (log->early.size > 0 &&
		tdm_buffer_append(&log->text, log->early.bytes, log->early.size) != TDM_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for an exchange log");
	}
	tdm_buffer_release(&log->early);
	return TDM_OK;
}

/* Puts on disk what has gathered. */
static enum tdm_status flush(struct sync_log *log, struct tdm_error *err)
{
	size_t at = 0;

	while (at < log->text.size) {
		const ssize_t done = write(log->fd, log->text.bytes + at, log->text.size - at);

		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done < 0) {
			tdm_fail_errno(err, errno, "%s", log->part_path);
			/* What is written stays a log of whole lines: the rest of this burst is given up. */
			log->text.size = 0;
			return TDM_ERR_IO;
		}
		at += (size_t)done;
	}
	log->text.size = 0;
	return TDM_OK;
}

struct tdm_exchange_record sync_log_record_of(const struct tdm_exchange_sample *sample)
{
	struct tdm_exchange_record record = { .seq = sample->sequence,
		.trace = { sample->h1, sample->g2, sample->g3, sample->h4 },
		.marks = (uint8_t)((sample->flags & TDM_SAMPLE_PIPELINED ? TDM_MARK_PIPELINED : 0) |
				   (sample->flags & TDM_SAMPLE_QUEUED ? TDM_MARK_CODED : 0)) };

	if (sample->flags & TDM_SAMPLE_HAS_RAW) {
		record.has_raw = true;
		record.raw = (struct tdm_exchange){ sample->h1_raw, sample->g2_raw, sample->g3_raw,
			sample->h4_raw };
	}
	if (sample->flags & TDM_SAMPLE_STAMPED) {
		record.has_kernel = true;
		record.kernel[0] = sample->k1_ns;
		record.kernel[1] = sample->k2_ns;
		record.kernel[2] = sample->k3_ns;
		record.kernel[3] = sample->k4_ns;
	}
	return record;
}

enum tdm_status sync_log_add_burst(struct sync_log *log, const struct tdm_burst_result *burst,
	bool stamps, struct tdm_error *err)
{
	for (size_t i = 0; i < burst->sample_count; i++) {
		struct tdm_exchange_record record = sync_log_record_of(&burst->samples[i]);

		record.has_kernel = record.has_kernel && stamps;
		if (tdm_exchange_log_add(log->log, &record) != TDM_OK ||
			tdm_estimator_add(log->estimator, &record) != TDM_OK ||
			tdm_exchange_write_record(&record, &log->text) != TDM_OK) {
			return tdm_fail(err, TDM_ERR_NOMEM, "the exchange log is full");
		}
	}
	return flush(log, err);
}

void sync_log_add_local(
	struct sync_log *log, enum tdm_side side, const struct tdm_sandwich *sandwich)
{
	const struct tdm_local_record record = { .side = side,
		.raw = sandwich->outer,
		.trace = sandwich->inner,
		.width = sandwich->width };

	/* One of many: a log without room for it is as good. */
	if (tdm_exchange_log_add_local(log->log, &record) == TDM_OK) {
		tdm_exchange_write_local(&record, log->has_info ? &log->text : &log->early);
		if (log->estimator) {
			tdm_estimator_add_local(log->estimator, &record);
		}
	}
}

void sync_log_add_epoch(struct sync_log *log, uint64_t guest, const char *reason)
{
	struct tdm_epoch_record record = { .epoch = ++log->epoch, .guest = guest };

	strncpy(record.reason, reason, sizeof(record.reason) - 1);
	if (tdm_exchange_log_add_epoch(log->log, &record) == TDM_OK) {
		tdm_exchange_write_epoch(&record, log->has_info ? &log->text : &log->early);
		if (log->estimator) {
			tdm_estimator_add_epoch(log->estimator, &record);
		}
	}
}

void sync_log_add_cpu(struct sync_log *log, uint32_t cpu, int64_t ticks, uint64_t bound)
{
	const struct cpu_offset offset = { cpu, ticks, bound };

	for (size_t i = 0; i < log->cpu_count; i++) {
		if (log->cpus[i].cpu == cpu) {
			log->cpus[i] = offset;
			return;
		}
	}
	if (log->cpu_count == CPU_MAX) {
		return;
	}

	struct cpu_offset *cpus = realloc(log->cpus, (log->cpu_count + 1) * sizeof(*cpus));

	if (cpus) {
		log->cpus = cpus;
		log->cpus[log->cpu_count++] = offset;
	}
}

size_t sync_log_count(const struct sync_log *log)
{
	size_t count = 0;

	if (log->log) {
		tdm_exchange_log_records(log->log, &count);
	}
	return count;
}

enum tdm_status sync_log_lines(
	struct sync_log *log, bool is_last, struct tdm_buffer *lines, struct tdm_error *err)
{
	if (!log->estimator) {
		return TDM_OK;
	}
	return is_last ? tdm_estimator_finish(log->estimator, lines, err)
		       : tdm_estimator_update(log->estimator, lines, err);
}

void sync_log_quality_now(const struct sync_log *log, struct tdm_quality *quality)
{
	memset(quality, 0, sizeof(*quality));
	if (log->estimator) {
		tdm_estimator_quality(log->estimator, quality);
	}
}

/* Kinds and places of the breaks, as far as there is room: "step at 33.4 s, epoch at 50.1 s". */
static void tell_breaks(struct sync_log *log, const struct tdm_timeline *timeline)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	uint64_t first, last;
	size_t at = 0;

	log->breaks[0] = '\0';
	tdm_timeline_range(timeline, &first, &last);
	for (size_t i = 1; i < info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(timeline, i);
		const double after_s =
			((double)segment.from - (double)first) /
			(double)(info.guest_unit_hz ? info.guest_unit_hz : 1000000000);
		char one[48];
		const int length = snprintf(one, sizeof(one), "%s%s at %.1f s", at ? ", " : "",
			tdm_segment_kind_name(segment.kind), after_s);

		if (at + (size_t)length + sizeof(", ...") > sizeof(log->breaks)) {
			memcpy(log->breaks + at, ", ...", sizeof(", ..."));
			break;
		}
		memcpy(log->breaks + at, one, (size_t)length + 1);
		at += (size_t)length;
	}
}

static enum tdm_status write_corrections(
	struct sync_log *log, const struct tdm_timeline *timeline, struct tdm_error *err)
{
	struct tdm_buffer text = { 0 };
	enum tdm_status status = tdm_timeline_write(timeline, &text);

	log->segments = tdm_timeline_get_info(timeline).segment_count;
	tell_breaks(log, timeline);
	if (status != TDM_OK) {
		tdm_fail(err, status, "no memory for %s", log->corrections_path);
	} else {
		status = tdm_text_write_file(log->corrections_path, text.bytes, text.size, err);
		log->has_corrections_file |= status == TDM_OK;
	}
	tdm_buffer_release(&text);
	return status;
}

const char *sync_log_breaks(const struct sync_log *log)
{
	return log->breaks;
}

size_t sync_log_segments(const struct sync_log *log)
{
	return log->segments;
}

/* What a VM's numbers make of the log's clocks; NULL where they make nothing. */
static struct tdm_timeline *exact_of(
	const struct tdm_timeline *measured, const struct kvm_looks_vm *vm)
{
	struct tdm_timeline_info info = tdm_timeline_get_info(measured);
	struct tdm_timeline *exact = NULL;

	info.method = "exact";
	if (tdm_timeline_from_tsc_spans(&info, vm->spans, vm->span_count, &exact, NULL) != TDM_OK) {
		return NULL;
	}
	return exact;
}

static bool is_same(const struct kvm_looks_vm *a, const struct kvm_looks_vm *b)
{
	bool same = a->span_count == b->span_count;

	for (size_t i = 0; same && i < a->span_count; i++) {
		same = a->spans[i].vcpus[0].offset == b->spans[i].vcpus[0].offset &&
		       a->spans[i].vcpus[0].ratio == b->spans[i].vcpus[0].ratio;
	}
	return same;
}

/* The VM whose relation the exchanges allow. The caller destroys it; NULL: none, or not one. */
static struct tdm_timeline *find_exact(const struct tdm_timeline *measured,
	const struct kvm_looks *looks, enum sync_kvm *kvm, uint64_t *differ)
{
	struct tdm_timeline *found = NULL;
	size_t found_at = 0;

	*kvm = SYNC_KVM_NONE;
	for (size_t i = 0; i < looks->count; i++) {
		struct tdm_timeline *exact = exact_of(measured, &looks->vms[i]);
		uint64_t worst = 0;

		if (!exact) {
			continue;
		}
		if (!tdm_timeline_agrees(exact, measured, UINT32_MAX, &worst)) {
			tdm_timeline_destroy(exact);
			if (looks->count == 1) {
				*kvm = SYNC_KVM_DIFFERS;
				*differ = worst;
			}
		} else if (!found) {
			found = exact;
			found_at = i;
			*kvm = SYNC_KVM_USED;
		} else {
			tdm_timeline_destroy(exact);
			if (!is_same(&looks->vms[i], &looks->vms[found_at])) {
				*kvm = SYNC_KVM_AMBIGUOUS;
			}
		}
	}
	if (*kvm == SYNC_KVM_AMBIGUOUS) {
		tdm_timeline_destroy(found);
		return NULL;
	}
	return found;
}

/* The segments of an exact relation are known to a tick; where it changed, readings of both sides are in doubt. */
static void judge_exact(const struct tdm_timeline *exact, struct tdm_quality *quality)
{
	const size_t doubts = tdm_timeline_get_info(exact).doubt_count;

	quality->grade = TDM_GRADE_EXACT;
	quality->median_bound = 1;
	quality->worst_bound = 1;
	quality->doubt = 0;
	for (size_t i = 0; i < doubts; i++) {
		uint64_t from;
		uint64_t to;

		tdm_timeline_doubt(exact, i, &from, &to);
		quality->doubt += to - from + 1;
	}
}

enum tdm_status sync_log_save_corrections(struct sync_log *log, const struct kvm_looks *looks,
	struct tdm_quality *quality, enum sync_kvm *kvm, uint64_t *differ, struct tdm_error *err)
{
	struct tdm_timeline *measured = NULL;
	enum tdm_status status = tdm_estimate(log->log, &measured, quality, err);

	*differ = 0;
	*kvm = SYNC_KVM_NONE;
	if (status != TDM_OK) {
		return status;
	}

	struct tdm_timeline *exact = find_exact(measured, looks, kvm, differ);

	if (exact) {
		judge_exact(exact, quality);
		status = write_corrections(log, exact, err);
	} else {
		for (size_t i = 0; i < log->cpu_count && status == TDM_OK; i++) {
			status = tdm_timeline_add_cpu(measured, log->cpus[i].cpu,
				log->cpus[i].ticks, log->cpus[i].bound, err);
		}
		if (status == TDM_OK) {
			status = write_corrections(log, measured, err);
		}
	}
	tdm_timeline_destroy(exact);
	tdm_timeline_destroy(measured);
	return status;
}

enum tdm_status sync_log_finish(struct sync_log *log, struct tdm_error *err)
{
	if (sync_log_count(log) == 0) {
		return tdm_fail(err, TDM_ERR_RANGE, "not one exchange succeeded");
	}
	if (tdm_buffer_append(&log->text, "end\n", 4) != TDM_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %s", log->log_path);
	}

	const enum tdm_status status = flush(log, err);

	if (status != TDM_OK) {
		return status;
	}
	if (rename(log->part_path, log->log_path) != 0) {
		return tdm_fail_errno(err, errno, "%s", log->log_path);
	}
	close(log->fd);
	log->fd = -1;
	return TDM_OK;
}
