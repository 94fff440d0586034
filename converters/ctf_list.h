/* SPDX-License-Identifier: MIT */
/*
 * ctf_list.h - the CTF traces below a folder, and the streams there that have lost their metadata.
 */
#ifndef TANDEM_CTF_LIST_H
#define TANDEM_CTF_LIST_H

#include <stddef.h>
#include <tandem/status.h>

struct tdm_ctf_list {
	char **paths; /* owned, as are the texts: each the folder of a trace */
	size_t count;
	char **orphans; /* the same: stream files in folders without metadata, one for each folder */
	size_t orphan_count;
};

/** Finds them, in order of their names. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_list_find(
	const char *root, struct tdm_ctf_list *list, struct tdm_error *err);
/** Adds one that is known to be a trace's. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_list_add(
	struct tdm_ctf_list *list, const char *path, struct tdm_error *err);
/** Says of a folder without traces what is there instead. @return TDM_ERR_FORMAT */
enum tdm_status tdm_ctf_list_fail_empty(
	const char *root, const struct tdm_ctf_list *list, struct tdm_error *err);
void tdm_ctf_list_release(struct tdm_ctf_list *list);

#endif
