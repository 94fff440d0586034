/* SPDX-License-Identifier: MIT */
/*
 * bench_open - how long a trace.dat file with 5 MiB of kallsyms takes to open, and to give its first symbol.
 *
 * usage: bench_open [RUNS]
 * Makes the files itself, in each version and compression. Prints medians of CPU time in ms.
 */
#include "tracedat_builder.h"
#include <stdio.h>
#include <stdlib.h>
#include <tandem/trace.h>
#include <time.h>
#include <unistd.h>

enum {
	KALLSYMS_BYTES = 5 << 20,
	MAX_RUNS = 99
};

static const struct dat_layout layouts[] = {
	{ 6, false, 8, 4096, "none" },
	{ 7, false, 8, 4096, "none" },
	{ 7, false, 8, 4096, "zlib" },
	{ 7, false, 8, 4096, "zstd" },
};

static double cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static int compare(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static char *make_kallsyms(void)
{
	char *text = malloc(KALLSYMS_BYTES + 128);
	size_t used = 0;
	uint64_t address = UINT64_C(0xffffffff81000000);

	for (unsigned int i = 0; text && used < KALLSYMS_BYTES; i++) {
		address += 64 + i % 7 * 16;
		used += (size_t)sprintf(text + used, "%016llx t some_kernel_function_%x\n",
			(unsigned long long)address, i * 2654435761u);
	}
	return text;
}

static int measure(const struct dat_layout *layout, const char *kallsyms, int runs)
{
	struct dat_pages pages = { .layout = layout };
	const struct dat_cpu cpu = { 0, &pages.bytes };
	const struct dat_buffer buffer = { "", "mono", 0, &cpu, 1 };
	const struct dat_spec spec = {
		.layout = *layout, .buffers = &buffer, .buffer_count = 1, .kallsyms = kallsyms
	};
	struct tdm_buffer bytes = { 0 };
	double open_ms[MAX_RUNS], symbol_ms[MAX_RUNS];
	int failed = 0;

	pages_of_ticks(&pages, 1, 10, 1);
	dat_build(&spec, &bytes, NULL);

	char *path = dat_save(&bytes);

	for (int run = 0; run < runs && !failed; run++) {
		const double start = cpu_ms();
		struct tdm_trace *trace;
		struct tdm_error err;

		if (tdm_trace_open(path, NULL, NULL, &trace, &err) != TDM_OK) {
			fprintf(stderr, "bench_open: %s\n", err.text);
			failed = 1;
			break;
		}
		open_ms[run] = cpu_ms() - start;
		failed = !tdm_trace_symbol(trace, UINT64_C(0xffffffff81100000), NULL);
		symbol_ms[run] = cpu_ms() - start;
		tdm_trace_close(trace);
	}
	if (!failed) {
		qsort(open_ms, (size_t)runs, sizeof(open_ms[0]), compare);
		qsort(symbol_ms, (size_t)runs, sizeof(symbol_ms[0]), compare);
		printf("open-%u-%s: %.3f ms CPU; with the first symbol looked up %.1f ms\n",
			layout->version, layout->compression, open_ms[runs / 2],
			symbol_ms[runs / 2]);
	}
	unlink(path);
	free(path);
	tdm_buffer_release(&bytes);
	tdm_buffer_release(&pages.bytes);
	return failed;
}

int main(int argc, char **argv)
{
	const int wanted = argc > 1 ? atoi(argv[1]) : 7;
	const int runs = wanted < 1 ? 1 : wanted > MAX_RUNS ? MAX_RUNS : wanted;
	char *kallsyms = make_kallsyms();
	int failed = !kallsyms;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]) && !failed; i++) {
		failed = measure(&layouts[i], kallsyms, runs);
	}
	free(kallsyms);
	return failed;
}
