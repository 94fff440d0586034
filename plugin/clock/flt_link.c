/* SPDX-License-Identifier: MIT */
#include "clock/flt_link.h"

struct flt_link *flt_link_create(
	const char *address, const char *guest, const char *secret_file, struct tdm_error *err)
{
	(void)guest, (void)secret_file;
	(void)tdm_fail(err, TDM_ERR_UNSUPPORTED, "%s: corrections services are not supported yet",
		address);
	return NULL;
}

void flt_link_destroy(struct flt_link *link)
{
	(void)link;
}

bool flt_link_take(struct flt_link *link, char **line)
{
	(void)link, (void)line;
	return false;
}

void flt_link_get_news(struct flt_link *link, struct flt_link_news *news)
{
	(void)link;
	*news = (struct flt_link_news){ .came = false };
}
