/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/input_file.h>
#include <tandem/trace.h>

enum {
	MAGIC_BYTES = 10
};

enum tdm_trace_format tdm_trace_probe(const char *path)
{
	struct tdm_input_file *file = NULL;
	char magic[MAGIC_BYTES] = { 0 };
	char inside[4096];
	struct stat about;
	size_t got = 0;

	if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
		/* "perf record --threads" makes a folder; the file in it has the magic. */
		const int length = snprintf(inside, sizeof(inside), "%s/data", path);

		if (length < 0 || (size_t)length >= sizeof(inside)) {
			return TDM_FORMAT_UNKNOWN;
		}
		path = inside;
	}
	if (tdm_input_file_open(path, &file, NULL) != TDM_OK) {
		return TDM_FORMAT_UNKNOWN;
	}
	(void)tdm_input_file_read(file, 0, magic, sizeof(magic), &got, NULL);
	tdm_input_file_close(file);
	if (got == sizeof(magic) && memcmp(magic, "\x17\x08\x44tracing", sizeof(magic)) == 0) {
		return TDM_FORMAT_TRACEDAT;
	}
	/* perf.data, little and big endian. */
	if (got >= 8 && (memcmp(magic, "PERFILE2", 8) == 0 || memcmp(magic, "2ELIFREP", 8) == 0)) {
		return TDM_FORMAT_PERF;
	}
	return TDM_FORMAT_UNKNOWN;
}
