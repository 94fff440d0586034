/* SPDX-License-Identifier: MIT */
/*
 * replay_main.c - gives every file of the folders and files named to the fuzz target, once.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat about;

	if (!file || fstat(fileno(file), &about) != 0) {
		perror(path);
		if (file) {
			fclose(file);
		}
		return -1;
	}

	/* Exactly as large as the input, so that a sanitizer sees the first byte behind it. */
	uint8_t *data = malloc((size_t)about.st_size);
	const size_t size = data ? fread(data, 1, (size_t)about.st_size, file) : 0;

	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 1;
}

static int replay(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	if (!folder) {
		return replay_file(path);
	}
	for (const struct dirent *entry; count >= 0 && (entry = readdir(folder));) {
		char *inner = NULL;

		if (entry->d_name[0] == '.' || asprintf(&inner, "%s/%s", path, entry->d_name) < 0) {
			continue;
		}

		const int done = replay(inner);

		count = done < 0 ? -1 : count + done;
		free(inner);
	}
	closedir(folder);
	return count;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++) {
		const int done = replay(argv[i]);

		if (done < 0) {
			return 1;
		}
		count += done;
	}
	printf("%d inputs\n", count);
	/* An empty corpus would pass whatever the parser does. */
	return count ? 0 : 1;
}
