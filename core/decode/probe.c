/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/input_file.h>
#include <tandem/trace.h>

enum {
	MAGIC_BYTES = 10,
	LOOK_BYTES = 512
};

#define UNPACK(what) "data that " what " packed: unpack it first"
#define PRINTED \
	"text that a tracer printed: what is wanted is the file it was printed from, as trace-cmd record and perf record write it"
#define PART_OF_CTF "a part of a CTF trace: give the directory that it is in"

/* What users hand over in place of a trace. */
static const struct foreign {
	size_t at;
	const char *bytes;
	size_t size;
	const char *words;
} foreigners[] = {
	{ 0, "\x1f\x8b", 2, UNPACK("gzip") },
	{ 0,
		"\xfd"
		"7zXZ",
		5, UNPACK("xz") },
	{ 0, "BZh", 3, UNPACK("bzip2") },
	{ 0, "\x28\xb5\x2f\xfd", 4, UNPACK("zstd") },
	{ 0, "\x04\x22\x4d\x18", 4, UNPACK("lz4") },
	{ 0, "PK\x03\x04", 4, UNPACK("zip") },
	{ 257, "ustar", 5, UNPACK("tar") },
	{ 0, "# tracer:", 9, PRINTED },
	{ 0, "cpus=", 5, PRINTED },
	{ 0, "version = ", 10, PRINTED },
	{ 0, "# ========", 10, PRINTED },
	{ 0, "\xc1\x1f\xfc\xc1", 4, PART_OF_CTF },
	{ 0, "\xc1\xfc\x1f\xc1", 4, PART_OF_CTF },
	{ 0, "\x57\x1d\xd1\x75", 4, PART_OF_CTF },
	{ 0, "\x75\xd1\x1d\x57", 4, PART_OF_CTF },
	{ 0, "/* CTF", 6, PART_OF_CTF },
	{ 0, "tandem-corrections ", 19,
		"a corrections file: give it with --corrections, beside the trace that it is for" },
	{ 0, "tandem-exchanges ", 17,
		"an exchange log: tandem estimate makes a corrections file of it" },
	{ 0,
		"\x7f"
		"ELF",
		4, "a program" },
};

/* "trace.dat.cpu3": what trace-cmd record keeps while it runs, and leaves behind when it is killed. */
static bool is_cpu_file(const char *path)
{
	const char *const found = strstr(path, ".cpu");

	return found && found[4] && strspn(found + 4, "0123456789") == strlen(found + 4);
}

static bool ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), end_length = strlen(end);

	return length > end_length && strcmp(text + length - end_length, end) == 0;
}

/* What is in a directory in place of a trace. */
static const char *words_of_folder(const char *path)
{
	DIR *const folder = opendir(path);
	bool is_unfinished = false, has_files = false;

	if (!folder) {
		return "a directory that cannot be read";
	}
	for (const struct dirent *entry; (entry = readdir(folder));) {
		is_unfinished |= ends_with(entry->d_name, ".recording");
		has_files |= ends_with(entry->d_name, ".dat");
	}
	closedir(folder);
	if (is_unfinished) {
		return "a directory with a recording that did not end: tandem record --finish completes what a killed recorder left";
	}
	return has_files
		       ? "a directory with .dat files: give each under the name of its machine"
		       : "a directory without traces: no trace.dat, no CTF (a file \"metadata\" in it or below it), none of perf record --threads";
}

const char *tdm_trace_foreign(const char *path)
{
	struct tdm_input_file *file = NULL;
	char bytes[LOOK_BYTES];
	struct stat about;
	size_t got = 0;

	if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
		return words_of_folder(path);
	}
	if (is_cpu_file(path)) {
		return "the pages of one CPU, of a recording that did not end: trace-cmd restore makes a trace.dat of them";
	}
	if (tdm_input_file_open(path, &file, NULL) != TDM_OK) {
		return NULL;
	}
	(void)tdm_input_file_read(file, 0, bytes, sizeof(bytes), &got, NULL);
	tdm_input_file_close(file);
	for (size_t i = 0; i < sizeof(foreigners) / sizeof(foreigners[0]); i++) {
		const struct foreign *const one = &foreigners[i];

		if (got >= one->at + one->size &&
			memcmp(bytes + one->at, one->bytes, one->size) == 0) {
			return one->words;
		}
	}
	return NULL;
}

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
	/* perf.data, little and big endian, and the first version, which its reader refuses. */
	if (got >= 8 && (memcmp(magic, "PERFILE2", 8) == 0 || memcmp(magic, "2ELIFREP", 8) == 0 ||
				memcmp(magic, "PERFFILE", 8) == 0)) {
		return TDM_FORMAT_PERF;
	}
	return TDM_FORMAT_UNKNOWN;
}
