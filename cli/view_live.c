/* SPDX-License-Identifier: MIT */
#include "view_live.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/stream.h>

static bool is_live(const char *text)
{
	return strncmp(text, "tandem://", strlen("tandem://")) == 0;
}

/* NAME=URL as one more argument, kept for the inputs to point to. */
static bool add_url(struct view_live_urls *urls, struct cli_named_list *inputs, const char *name,
	const char *url, size_t address_bytes, const char *machine)
{
	char **items = realloc(urls->items, (urls->count + 1) * sizeof(char *));
	char *made = NULL;

	if (!items) {
		return false;
	}
	urls->items = items;
	if (asprintf(&made, "%s=%.*s%s", name, (int)address_bytes, url, machine) < 0) {
		return false;
	}
	items[urls->count++] = made;
	return cli_named_add(inputs, made);
}

/* One input for each machine that the recorder has. */
static enum tdm_status add_all(const struct view_options *options, struct view_live_urls *urls,
	struct cli_named_list *inputs, const char *url, struct tdm_address *address,
	const char *star, struct tdm_error *err)
{
	struct tdm_secret secret = { 0 };
	struct tdm_buffer names = { 0 };
	enum tdm_status status = tdm_address_resolve(address, err);

	if (status == TDM_OK && options->secret_file) {
		status = tdm_secret_load(options->secret_file, &secret, err);
	}
	if (status == TDM_OK) {
		const struct tdm_stream_options stream = {
			.address = address,
			.secret = secret.is_set ? &secret : NULL,
		};

		status = tdm_stream_list(&stream, &names, err);
	}
	if (status == TDM_OK && tdm_buffer_append(&names, "", 1) != TDM_OK) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for inputs");
	}
	for (char *name = (char *)names.bytes, *end; status == TDM_OK && *name; name = end + 1) {
		end = strchrnul(name, '\n');
		if (!*end) {
			break;
		}
		*end = '\0';
		if (!tdm_machine_name_is_valid(name)) {
			status = tdm_fail(err, TDM_ERR_PEER,
				"%s: the recorder has a machine of no allowed name", url);
		} else if (!add_url(urls, inputs, name, url, (size_t)(star - url), name)) {
			status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for inputs");
		}
	}
	tdm_secret_clear(&secret);
	tdm_buffer_release(&names);
	return status;
}

enum tdm_status view_live_expand(
	struct view_options *options, struct view_live_urls *urls, struct tdm_error *err)
{
	struct cli_named_list expanded = { 0 };
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < options->inputs.count && status == TDM_OK; i++) {
		const struct cli_named *item = &options->inputs.items[i];
		struct tdm_address address;
		const char *machine;
		bool added;

		if (!is_live(item->text)) {
			struct cli_named_list *list = &expanded;
			struct cli_named *items =
				realloc(list->items, (list->count + 1) * sizeof(*items));

			added = items != NULL;
			if (added) {
				list->items = items;
				items[list->count++] = *item;
			}
		} else {
			status = tdm_stream_parse_url(item->text, &address, &machine, err);
			if (status == TDM_OK && strcmp(machine, "*") == 0) {
				status = add_all(options, urls, &expanded, item->text, &address,
					machine, err);
				added = true;
			} else {
				added = status != TDM_OK ||
					add_url(urls, &expanded, *item->name ? item->name : machine,
						item->text, strlen(item->text), "");
			}
		}
		if (status == TDM_OK && !added) {
			status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for inputs");
		}
	}
	if (status != TDM_OK) {
		cli_named_release(&expanded);
		return status;
	}
	cli_named_release(&options->inputs);
	options->inputs = expanded;
	return TDM_OK;
}

void view_live_release(struct view_live_urls *urls)
{
	for (size_t i = 0; i < urls->count; i++) {
		free(urls->items[i]);
	}
	free(urls->items);
	*urls = (struct view_live_urls){ 0 };
}

enum tdm_status view_live_service(const char *url, char *text, size_t room, struct tdm_error *err)
{
	struct tdm_address address;
	const char *machine;
	const enum tdm_status status = tdm_stream_parse_url(url, &address, &machine, err);

	if (status == TDM_OK) {
		tdm_address_print(&address, text, room);
	}
	return status;
}
