/* SPDX-License-Identifier: MIT */
#include "ctf_list.h"
#include "ctf_packet.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/cursor.h>
#include <tandem/trace.h>
#include <unistd.h>

enum {
	MAX_DEPTH = 10,
	MAX_LOOKS = 64 /* files of a folder that are opened to see whether they are streams */
};

static enum tdm_status add(char ***paths, size_t *count, const char *path, struct tdm_error *err)
{
	char **const grown = realloc(*paths, (*count + 1) * sizeof(*grown));

	if (grown) {
		*paths = grown;
		grown[*count] = strdup(path);
	}
	if (!grown || !grown[*count]) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a list of traces");
	}
	++*count;
	return TDM_OK;
}

enum tdm_status tdm_ctf_list_add(struct tdm_ctf_list *list, const char *path, struct tdm_error *err)
{
	return add(&list->paths, &list->count, path, err);
}

static bool is_stream(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint8_t magic[4];
	const bool is_read = fd >= 0 && read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic);

	if (fd >= 0) {
		close(fd);
	}
	return is_read && (tdm_load_u32(magic, false) == TDM_CTF_MAGIC ||
				  tdm_load_u32(magic, true) == TDM_CTF_MAGIC);
}

static enum tdm_status find_below(
	const char *dir, unsigned int depth, struct tdm_ctf_list *list, struct tdm_error *err)
{
	char path[PATH_MAX];
	struct stat about;
	struct dirent **entries = NULL;
	enum tdm_status status = TDM_OK;
	unsigned int looks = 0;

	if (snprintf(path, sizeof(path), "%s/metadata", dir) < (int)sizeof(path) &&
		stat(path, &about) == 0 && S_ISREG(about.st_mode)) {
		return add(&list->paths, &list->count, dir, err);
	}

	const int count = depth < MAX_DEPTH ? scandir(dir, &entries, NULL, alphasort) : 0;

	for (int i = 0; i < count; i++) {
		if (status == TDM_OK && entries[i]->d_name[0] != '.' &&
			snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name) <
				(int)sizeof(path) &&
			lstat(path, &about) == 0) {
			if (S_ISDIR(about.st_mode)) {
				status = find_below(path, depth + 1, list, err);
			} else if (S_ISREG(about.st_mode) && looks < MAX_LOOKS) {
				looks++;
				if (is_stream(path)) {
					looks = MAX_LOOKS; /* one tells of the folder */
					status =
						add(&list->orphans, &list->orphan_count, path, err);
				}
			}
		}
		free(entries[i]);
	}
	free(entries);
	return status;
}

enum tdm_status tdm_ctf_list_find(
	const char *root, struct tdm_ctf_list *list, struct tdm_error *err)
{
	return find_below(root, 0, list, err);
}

static void release(char **paths, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(paths[i]);
	}
	free(paths);
}

enum tdm_status tdm_ctf_list_fail_empty(
	const char *root, const struct tdm_ctf_list *list, struct tdm_error *err)
{
	const char *const words = tdm_trace_foreign(root);

	if (list->orphan_count) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: %s is a stream of a CTF trace, but the \"metadata\" beside it is missing",
			root, list->orphans[0]);
	}
	return tdm_fail(err, TDM_ERR_FORMAT, "%s: %s", root, words ? words : "no trace");
}

void tdm_ctf_list_release(struct tdm_ctf_list *list)
{
	release(list->paths, list->count);
	release(list->orphans, list->orphan_count);
	*list = (struct tdm_ctf_list){ 0 };
}
