/* SPDX-License-Identifier: MIT */
/*
 * src_live.c - source.tandem.live: one machine of a recording that runs, as "tandem record --serve" serves it.
 */
#include "src_live.h"
#include "src_component.h"
#include <stdlib.h>
#include <string.h>
#include <tandem/live_trace.h>
#include <tandem/stream.h>

#define SCHEME "tandem://"

static const char *const name_choices[] = { "lttng", "ftrace", NULL };

static const struct param_rule rules[] = {
	{ "url", PARAM_TEXT, false, 0, 0, NULL },
	{ "inputs", PARAM_TEXT | PARAM_TEXTS, false, 0, 0, NULL },
	{ "secret-file", PARAM_TEXT, false, 0, 0, NULL },
	{ "names", PARAM_TEXT, false, 0, 0, name_choices },
	{ "symbols", PARAM_BOOL, false, 0, 0, NULL },
	{ "print", PARAM_BOOL, false, 0, 0, NULL },
};

/* The connection of one component. */
struct live {
	struct tdm_address address;
	struct tdm_secret secret;
	struct tdm_stream *stream;
	struct tdm_trace *trace; /* the component's machine owns it */
	const struct tdm_log *log;
	bool is_over;
};

/* Pages that have come; the reader asks. */
static enum tdm_status pump(void *user, struct tdm_error *err)
{
	struct live *live = user;
	struct tdm_stream_page page;
	struct tdm_error why = { 0 };

	if (live->is_over) {
		return TDM_END;
	}

	enum tdm_status status = tdm_stream_next_page(live->stream, &page, &why);

	if (status == TDM_OK) {
		const struct tdm_stream_facts facts = tdm_stream_get_facts(live->stream);

		status = tdm_live_trace_push(
			live->trace, page.cpu, page.bytes, facts.page_bytes, page.lost_pages, &why);
	}
	if (status == TDM_OK || status == TDM_AGAIN || status == TDM_ERR_NOMEM) {
		if (err) {
			*err = why;
		}
		return status;
	}
	/* The recorder is gone, or done: what came is still delivered. */
	live->is_over = true;
	if (status != TDM_END) {
		TDM_WARNING(live->log, "The live trace ends: %s", why.text);
	}
	return TDM_END;
}

static void close_live(void *connection)
{
	struct live *live = connection;

	tdm_stream_destroy(live->stream);
	tdm_secret_clear(&live->secret);
	free(live);
}

static enum tdm_status connect_live(
	struct live *live, const char *name, struct tdm_trace_meta *meta, struct tdm_error *err)
{
	const struct tdm_stream_options options = {
		.address = &live->address,
		.secret = live->secret.is_set ? &live->secret : NULL,
	};
	const struct tdm_stream_request request = { .machine = name };

	live->stream = tdm_stream_create(&options, &request, err);
	return live->stream ? tdm_stream_receive_texts(live->stream, meta, err) : err->status;
}

static enum tdm_status open_live(
	struct src_component *component, const bt_value *params, struct tdm_error *err)
{
	const char *const url = param_text(params, "url",
		param_text_count(params, "inputs") == 1 ? param_text_at(params, "inputs", 0) : "");
	const char *const secret_file = param_text(params, "secret-file", NULL);
	struct tdm_trace_meta meta = { 0 };
	struct live *live;
	const char *name = NULL;
	enum tdm_status status = param_check(params, rules, sizeof(rules) / sizeof(rules[0]), err);

	if (status != TDM_OK) {
		return status;
	}
	live = calloc(1, sizeof(*live));
	if (!live) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a connection");
	}
	component->connection = live;
	live->log = &component->report.log;
	status = tdm_stream_parse_url(url, &live->address, &name, err);
	if (status == TDM_OK) {
		status = tdm_address_resolve(&live->address, err);
	}
	if (status == TDM_OK && secret_file) {
		status = tdm_secret_load(secret_file, &live->secret, err);
	}
	if (status == TDM_OK) {
		status = connect_live(live, name, &meta, err);
	}
	if (status == TDM_OK) {
		const struct tdm_live_options options = {
			.name = url,
			.trace_id = tdm_stream_get_facts(live->stream).trace_id,
			.pump = pump,
			.user = live,
		};

		status = tdm_live_trace_create(&options, &meta, live->log, &live->trace, err);
	} else {
		tdm_trace_meta_release(&meta);
	}
	if (status == TDM_OK) {
		status = tdm_machines_of_trace(
			live->trace, name, live->log, &component->machines, err);
	}
	return status == TDM_OK ? tdm_stream_start(live->stream, err) : status;
}

static const struct src_kind live_kind = {
	.class_name = "source.tandem.live",
	.format = TDM_FORMAT_LIVE,
	.scheme = SCHEME,
	.rules = rules,
	.rule_count = sizeof(rules) / sizeof(rules[0]),
	.open = open_live,
	.close = close_live,
};

SRC_KIND_METHODS(live, live_kind)
