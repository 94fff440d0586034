/* SPDX-License-Identifier: MIT */
#include "tracedat_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_buffer(struct writer *w)
{
	const struct tdm_tracedat_plan *plan = w->plan;
	const uint32_t page_bytes = w->page_bytes;
	const uint64_t section = w->sink.offset;
	struct tdm_buffer cpus = { 0 };
	uint32_t cpu_count = 0;

	section_header(w, SECTION_BUFFER, w->packer ? FLAG_COMPRESSED : 0, 0);
	for (size_t i = 0; i < plan->spool_count && w->sink.err.status == TDM_OK; i++) {
		const struct tdm_page_spool *spool = &plan->spools[i];
		uint64_t written_bytes = 0;

		if (spool->size_bytes < page_bytes) {
			continue;
		}
		sink_pad_to(&w->sink, page_bytes);

		const uint64_t offset = w->sink.offset;

		copy_pages(&w->sink, spool, page_bytes, w->packer != NULL, &written_bytes);
		put_u32(&cpus, w->sink.big_endian, spool->cpu, &w->failed);
		put_u64(&cpus, w->sink.big_endian, offset, &w->failed);
		put_u64(&cpus, w->sink.big_endian, written_bytes, &w->failed);
		cpu_count++;
	}
	sink_patch_u64(&w->sink, section + 8, w->sink.offset - section - 16);

	struct tdm_buffer out = { 0 };

	put_u64(&out, w->sink.big_endian, section, &w->failed);
	w->failed |= tdm_buffer_append(&out, "", 1) != TDM_OK;
	w->failed |= tdm_buffer_append(&out, w->clock, strlen(w->clock) + 1) != TDM_OK;
	put_u32(&out, w->sink.big_endian, page_bytes, &w->failed);
	put_u32(&out, w->sink.big_endian, cpu_count, &w->failed);
	w->failed |= tdm_buffer_append(&out, cpus.bytes, cpus.size) != TDM_OK;
	option(w, OPTION_BUFFER, out.bytes, out.size);
	tdm_buffer_release(&out);
	tdm_buffer_release(&cpus);
	write_options(w);
}

static enum tdm_status check_plan(const struct writer *w, struct tdm_error *err)
{
	const struct tdm_tracedat_plan *plan = w->plan;

	for (size_t i = 0; i < plan->spool_count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (plan->spools[i].cpu == plan->spools[j].cpu) {
				return tdm_fail(err, TDM_ERR_RANGE, "%s: CPU %" PRIu32 " twice",
					plan->path, plan->spools[i].cpu);
			}
		}
	}
	return TDM_OK;
}

/* What the plan or the prefix fixes: byte order, page size, clock and compression. */
static enum tdm_status prepare(struct writer *w, struct tdm_error *err)
{
	const struct tdm_tracedat_plan *plan = w->plan;

	if (!plan->prefix) {
		w->packer = plan->compress ? &zstd_packer : NULL;

		const enum tdm_status status = take_meta(w, err);

		return status == TDM_OK ? check_plan(w, err)
					: tdm_error_prefix(err, "%s", plan->path);
	}

	struct prefix_facts facts;
	enum tdm_status status = read_prefix(plan->prefix, &facts, err);

	if (status != TDM_OK) {
		return tdm_error_prefix(err, "%s", plan->path);
	}
	w->sink.big_endian = facts.big_endian;
	w->page_bytes = facts.page_bytes;
	/* A file has one way of compression; data that is not compressed is allowed in any. */
	w->packer = plan->compress && facts.is_zstd ? &zstd_packer : NULL;
	w->done_patch = facts.done_offset;
	memcpy(w->clock, facts.clock, sizeof(w->clock));
	status = check_page_size(w, err);
	return status == TDM_OK ? check_plan(w, err) : tdm_error_prefix(err, "%s", plan->path);
}

static enum tdm_status write_all(struct writer *w)
{
	if (w->plan->prefix) {
		sink_bytes(&w->sink, w->plan->prefix->bytes, w->plan->prefix->size);
		write_added_options(w);
	} else {
		write_head(w);
		write_texts(w);
		write_first_options(w);
	}
	write_buffer(w);
	sink_flush(&w->sink);
	if (w->failed && w->sink.err.status == TDM_OK) {
		tdm_fail(&w->sink.err, TDM_ERR_NOMEM, "%s: no memory", w->plan->path);
	}
	if (w->sink.err.status == TDM_OK && fsync(w->sink.fd) != 0) {
		tdm_fail_errno(&w->sink.err, errno, "%s: fsync", w->sink.path);
	}
	return w->sink.err.status;
}

enum tdm_status tdm_tracedat_write(const struct tdm_tracedat_plan *plan, struct tdm_error *err)
{
	struct writer w = { .plan = plan, .version = 7, .sink = { .fd = -1 } };
	enum tdm_status status = prepare(&w, err);
	char *temporary = NULL;

	if (status != TDM_OK) {
		return status;
	}
	if (asprintf(&temporary, "%s.part", plan->path) < 0) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", plan->path);
	}
	w.sink.path = temporary;
	w.sink.fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (w.sink.fd < 0) {
		status = tdm_fail_errno(err, errno, "%s", temporary);
		goto out;
	}
	status = write_all(&w);
	if (status == TDM_OK && rename(temporary, plan->path) != 0) {
		status = tdm_fail_errno(
			&w.sink.err, errno, "renaming %s to %s", temporary, plan->path);
	}
	if (status != TDM_OK) {
		if (err) {
			*err = w.sink.err;
		}
		unlink(temporary);
	}
out:
	if (w.sink.fd >= 0) {
		close(w.sink.fd);
	}
	tdm_buffer_release(&w.sink.pending);
	tdm_buffer_release(&w.body);
	tdm_buffer_release(&w.packed);
	free(temporary);
	return status;
}
