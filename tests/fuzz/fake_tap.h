/* SPDX-License-Identifier: MIT */
/*
 * fake_tap.h - a kernel tracer of two CPUs and a few pages, in place of core/tap: what a stranger asks an agent for stays
 * without effect.
 */
#ifndef FAKE_TAP_H
#define FAKE_TAP_H

#include <stdlib.h>
#include <string.h>
#include <tandem/tap.h>
#include <unistd.h>

enum {
	FAKE_CPUS = 2,
	FAKE_PAGE_BYTES = 4096,
	FAKE_PAGES = 3 /* of each CPU */
};

struct tdm_tap {
	bool runs;
};

struct tdm_ring {
	unsigned int left;
};

enum tdm_status tdm_tap_create(const struct tdm_tap_options *options, const struct tdm_log *log,
	struct tdm_tap **tap, struct tdm_error *err)
{
	(void)log;
	for (size_t i = 0; i < options->event_count; i++) {
		const struct tdm_tap_event *event = &options->events[i];

		if (!options->allow(options->allow_user, "sched", event->pattern) ||
			(event->filter && strlen(event->filter) > 300)) {
			return tdm_fail(
				err, TDM_ERR_RANGE, "\"%s\" is not allowed here", event->pattern);
		}
	}
	*tap = calloc(1, sizeof(**tap));
	return *tap ? TDM_OK : tdm_fail(err, TDM_ERR_NOMEM, "no memory for a tap");
}

void tdm_tap_destroy(struct tdm_tap *tap)
{
	free(tap);
}

enum tdm_status tdm_tap_start(struct tdm_tap *tap, struct tdm_error *err)
{
	(void)err;
	tap->runs = true;
	return TDM_OK;
}

enum tdm_status tdm_tap_stop(struct tdm_tap *tap, struct tdm_error *err)
{
	(void)err;
	tap->runs = false;
	return TDM_OK;
}

uint32_t tdm_tap_cpu_count(const struct tdm_tap *tap)
{
	(void)tap;
	return FAKE_CPUS;
}

const struct tdm_buffer *tdm_tap_left_out(const struct tdm_tap *tap)
{
	static const struct tdm_buffer nothing;

	(void)tap;
	return &nothing;
}

uint32_t tdm_tap_page_bytes(const struct tdm_tap *tap)
{
	(void)tap;
	return FAKE_PAGE_BYTES;
}

enum tdm_status tdm_tap_collect(
	struct tdm_tap *tap, bool kallsyms, struct tdm_trace_meta *meta, struct tdm_error *err)
{
	(void)tap;
	(void)kallsyms;
	meta->cpu_count = FAKE_CPUS;
	meta->page_bytes = FAKE_PAGE_BYTES;
	meta->long_bytes = 8;
	return tdm_trace_meta_add(meta, TDM_META_HEADER_PAGE, "", "header", 6, err);
}

enum tdm_status tdm_tap_collect_end(
	struct tdm_tap *tap, struct tdm_trace_meta *meta, struct tdm_error *err)
{
	(void)tap;
	return tdm_trace_meta_add(meta, TDM_META_CMDLINES, "", "1 init\n", 7, err);
}

enum tdm_status tdm_tap_get_stats(
	struct tdm_tap *tap, uint32_t cpu, struct tdm_tap_stats *stats, struct tdm_error *err)
{
	(void)tap;
	(void)err;
	*stats = (struct tdm_tap_stats){ .overrun_events = cpu };
	return TDM_OK;
}

struct tdm_ring *tdm_ring_open(struct tdm_tap *tap, uint32_t cpu, struct tdm_error *err)
{
	struct tdm_ring *ring = calloc(1, sizeof(*ring));

	(void)tap;
	if (!ring || cpu >= FAKE_CPUS) {
		tdm_fail(err, TDM_ERR_IO, "CPU %u has no ring", cpu);
		free(ring);
		return NULL;
	}
	ring->left = FAKE_PAGES;
	return ring;
}

void tdm_ring_close(struct tdm_ring *ring)
{
	free(ring);
}

int tdm_ring_poll_fd(const struct tdm_ring *ring)
{
	(void)ring;
	return -1;
}

enum tdm_status tdm_ring_read(struct tdm_ring *ring, void *page, struct tdm_error *err)
{
	(void)err;
	if (!ring->left) {
		return TDM_AGAIN;
	}
	memset(page, (int)ring->left--, FAKE_PAGE_BYTES);
	return TDM_OK;
}

enum tdm_status tdm_ring_take(
	struct tdm_ring *ring, void *pages, size_t room, size_t *got_bytes, struct tdm_error *err)
{
	*got_bytes = 0;
	while (ring->left > 1 && *got_bytes + FAKE_PAGE_BYTES <= room) {
		tdm_ring_read(ring, (uint8_t *)pages + *got_bytes, err);
		*got_bytes += FAKE_PAGE_BYTES;
	}
	return TDM_OK;
}

enum tdm_status tdm_ring_move(struct tdm_ring *ring, int out_fd, unsigned int timeout_ms,
	uint64_t *moved_bytes, struct tdm_error *err)
{
	uint8_t page[FAKE_PAGE_BYTES];

	(void)timeout_ms;
	*moved_bytes = 0;
	while (ring->left > 1) {
		tdm_ring_read(ring, page, err);
		if (write(out_fd, page, sizeof(page)) != (ssize_t)sizeof(page)) {
			return tdm_fail(err, TDM_ERR_PEER, "the receiver has gone");
		}
		*moved_bytes += sizeof(page);
	}
	return TDM_OK;
}

void tdm_ring_empty_page(const struct tdm_ring *ring, void *page, uint64_t time)
{
	(void)ring;
	memset(page, 0, FAKE_PAGE_BYTES);
	memcpy(page, &time, sizeof(time));
}

#endif
