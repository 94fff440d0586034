/* SPDX-License-Identifier: MIT */
/*
 * trace_make - writes a trace.dat of a layout that is hard to record, filled with random records of every type.
 *
 * usage: trace-make VERSION BYTE-ORDER LONG-BYTES PAGE-BYTES COMPRESSION SEED FILE     BYTE-ORDER: little or big
 */
#include "tracedat_builder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CPUS = 3,
	PAGES = 25,      /* of each CPU: three chunks */
	LARGE_PAGES = 12 /* of those above 8 KiB: two chunks */
};

static uint64_t state;

static uint32_t draw(uint32_t limit)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % limit;
}

static void fill_page(struct dat_pages *pages, uint64_t *time, bool lost)
{
	const size_t room = pages->layout->page_bytes - 64;

	page_begin(pages, *time);
	/* A record first: where a time extend comes before it the reference forgets the loss. */
	page_tick(pages, 0, (int32_t)draw(9000), draw(1u << 30));
	pages->lost = lost;
	pages->lost_count = lost ? 1 + draw(1000) : 0;
	while (pages->bytes.size - pages->page_at < room - 40) {
		const uint32_t delta = draw(100000);

		switch (draw(12)) {
		case 0: {
			const uint64_t far = (uint64_t)draw(1u << 30) * 7;

			page_extend(pages, far);
			*time += far;
			break;
		}
		case 1:
			*time += draw(1u << 30);
			page_stamp(pages, *time);
			break;
		case 2:
			page_discarded(pages, 1 + delta, 4 * (1 + draw(5)));
			*time += 1 + delta;
			break;
		default:
			page_tick(pages, delta, (int32_t)draw(9000), draw(1u << 30));
			*time += delta;
			break;
		}
	}
	if (draw(2)) {
		page_null(pages);
	}
	page_end(pages);
	*time += draw(5000);
}

int main(int argc, char **argv)
{
	if (argc != 8) {
		fputs("usage: trace-make VERSION little|big LONG-BYTES PAGE-BYTES COMPRESSION SEED FILE\n",
			stderr);
		return 2;
	}

	const struct dat_layout layout = {
		.version = (unsigned int)atoi(argv[1]),
		.big_endian = strcmp(argv[2], "big") == 0,
		.long_bytes = (unsigned int)atoi(argv[3]),
		.page_bytes = (uint32_t)atoi(argv[4]),
		.compression = argv[5],
	};
	struct dat_pages pages[CPUS] = { 0 };
	struct dat_cpu cpus[CPUS];
	const struct dat_buffer buffer = { "", "mono", 0, cpus, CPUS };
	const struct dat_spec spec = { .layout = layout,
		.buffers = &buffer,
		.buffer_count = 1,
		.cmdlines = "1 init\n2 two words\n" };
	struct tdm_buffer bytes = { 0 };

	state = strtoull(argv[6], NULL, 10);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		uint64_t time = 1000000 + draw(1000000);

		pages[cpu].layout = &layout;
		for (int page = 0; page < (layout.page_bytes > 8192 ? LARGE_PAGES : PAGES);
			page++) {
			fill_page(&pages[cpu], &time, draw(8) == 0);
		}
		/* Ids with holes: only those with data are listed. */
		cpus[cpu] = (struct dat_cpu){ cpu * 2, &pages[cpu].bytes };
	}
	dat_build(&spec, &bytes, NULL);

	FILE *file = fopen(argv[7], "wb");
	const bool done = file && fwrite(bytes.bytes, 1, bytes.size, file) == bytes.size;

	for (int cpu = 0; cpu < CPUS; cpu++) {
		tdm_buffer_release(&pages[cpu].bytes);
	}
	tdm_buffer_release(&bytes);
	return !(file && fclose(file) == 0 && done);
}
