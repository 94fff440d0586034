/* SPDX-License-Identifier: MIT */
#include "stream_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tap.h>

enum {
	DEFAULT_TIMEOUT_MS = 10000,
	INSTANCE_MS =
		60000, /* an agent makes its instance before it answers; a busy emulated guest took over 10 s */
	TEXTS_MAX_BYTES = TDM_META_MAX_BYTES + (8 << 20)
};

static enum tdm_status put_machine(
	struct tdm_buffer *open, const char *machine, struct tdm_error *err)
{
	const bool failed = tdm_open_put(open, TDM_PURPOSE_STREAM, 0) != TDM_OK ||
			    tdm_record_add(open, TDM_STREAM_KEY_MACHINE, machine) != TDM_OK;

	return failed ? tdm_fail(err, TDM_ERR_NOMEM, "no memory for a request") : TDM_OK;
}

static enum tdm_status put_request(
	struct tdm_buffer *open, const struct tdm_stream_request *request, struct tdm_error *err)
{
	char number[16];
	bool failed = tdm_open_put(open, TDM_PURPOSE_STREAM, 0) != TDM_OK;

	if (request->event_count > TDM_STREAM_MAX_EVENTS) {
		return tdm_fail(err, TDM_ERR_RANGE, "%zu events are asked for, at most %d can be",
			request->event_count, TDM_STREAM_MAX_EVENTS);
	}
	for (size_t i = 0; i < request->event_count; i++) {
		const struct tdm_stream_event *event = &request->events[i];

		if (strlen(event->pattern) > TDM_VALUE_MAX ||
			(event->filter && strlen(event->filter) > TDM_VALUE_MAX)) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"an event or filter of over %d bytes cannot be asked for",
				TDM_VALUE_MAX);
		}
		failed |= tdm_record_add(open, TDM_STREAM_KEY_EVENT, event->pattern) != TDM_OK;
		failed |= tdm_record_add(open, TDM_STREAM_KEY_FILTER,
				  event->filter ? event->filter : "-") != TDM_OK;
	}
	failed |= tdm_record_add(open, TDM_STREAM_KEY_CLOCK, request->clock) != TDM_OK;
	snprintf(number, sizeof(number), "%" PRIu32, request->buffer_kib);
	failed |= tdm_record_add(open, TDM_STREAM_KEY_BUFFER, number) != TDM_OK;
	failed |= tdm_record_add(open, TDM_STREAM_KEY_KALLSYMS, request->kallsyms ? "1" : "0") !=
		  TDM_OK;
	failed |= tdm_record_add(open, TDM_STREAM_KEY_MAY_MISS, request->may_miss ? "1" : "0") !=
		  TDM_OK;
	failed |= tdm_record_add(open, TDM_STREAM_KEY_LIVE, request->live ? "1" : "0") != TDM_OK;
	failed |= tdm_record_add(open, TDM_STREAM_KEY_PLAIN, request->plain ? "1" : "0") != TDM_OK;
	return failed ? tdm_fail(err, TDM_ERR_NOMEM, "no memory for a request") : TDM_OK;
}

/* Keeps what the agent says of patterns that it does not record. */
static enum tdm_status take_left_out(
	struct tdm_stream *stream, const struct tdm_opened *opened, struct tdm_error *err)
{
	static const char *const keys[] = { TDM_TAP_NOT_ALLOWED, TDM_TAP_PARTLY_ALLOWED,
		TDM_TAP_NO_MATCH };
	char pattern[TDM_VALUE_MAX + 1];

	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		for (unsigned int i = 0; i < TDM_STREAM_MAX_EVENTS; i++) {
			if (!tdm_record_find(
				    opened->text, opened->text_bytes, keys[k], i, pattern)) {
				break;
			}
			if (tdm_record_add(&stream->left_out, keys[k], pattern) != TDM_OK) {
				return tdm_fail(err, TDM_ERR_NOMEM, "no memory for an answer");
			}
		}
	}
	stream->info.left_out = &stream->left_out;
	return TDM_OK;
}

/* Reads the answer; every number is checked before it is used. */
static enum tdm_status take_answer(
	struct tdm_stream *stream, const struct tdm_opened *opened, struct tdm_error *err)
{
	uint64_t cpus = 0, page_bytes = 0, sealed = 0;
	const bool complete = tdm_record_find_number(opened->text, opened->text_bytes,
				      TDM_STREAM_KEY_TRACE_ID, 0, &stream->info.trace_id) &&
			      tdm_record_find_number(opened->text, opened->text_bytes,
				      TDM_STREAM_KEY_CPUS, 0, &cpus) &&
			      tdm_record_find_number(opened->text, opened->text_bytes,
				      TDM_STREAM_KEY_PAGE, 0, &page_bytes) &&
			      tdm_record_find_number(opened->text, opened->text_bytes,
				      TDM_STREAM_KEY_SEALED, 0, &sealed) &&
			      tdm_record_find(opened->text, opened->text_bytes,
				      TDM_STREAM_KEY_TOKEN, 0, stream->token);

	if (!complete || cpus == 0 || cpus > TDM_STREAM_MAX_CPUS || page_bytes < 4096 ||
		page_bytes > TDM_SEAL_PLAIN_MAX_BYTES || (page_bytes & (page_bytes - 1))) {
		return tdm_fail(err, TDM_ERR_PEER,
			"the agent's answer names %" PRIu64 " CPUs and pages of %" PRIu64
			" bytes: that cannot be",
			cpus, page_bytes);
	}
	stream->info.cpu_count = (uint32_t)cpus;
	stream->info.page_bytes = (uint32_t)page_bytes;
	stream->info.sealed = sealed != 0;
	return TDM_OK;
}

struct tdm_stream *tdm_stream_create(const struct tdm_stream_options *options,
	const struct tdm_stream_request *request, struct tdm_error *err)
{
	struct tdm_stream *stream = calloc(1, sizeof(*stream));
	struct tdm_buffer open = { 0 };
	struct tdm_opened opened;

	if (!stream) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a stream");
		return NULL;
	}
	stream->address = *options->address;
	stream->link_options = (struct tdm_link_options){ .secret = options->secret,
		.capabilities = TDM_CAN_STREAM,
		.stop_fd = options->stop_fd };
	stream->timeout_ms = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS;

	enum tdm_status status = request->machine ? put_machine(&open, request->machine, err)
						  : put_request(&open, request, err);

	if (status == TDM_OK) {
		status = tdm_link_open(&stream->address, &stream->link_options, &open,
			tdm_deadline_ns(stream->timeout_ms), INSTANCE_MS, &stream->link, &opened,
			err);
	}
	if (status == TDM_OK) {
		status = take_answer(stream, &opened, err);
	}
	if (status == TDM_OK) {
		status = take_left_out(stream, &opened, err);
	}
	tdm_buffer_release(&open);
	if (status != TDM_OK) {
		tdm_stream_destroy(stream);
		return NULL;
	}
	return stream;
}

void tdm_stream_destroy(struct tdm_stream *stream)
{
	if (stream) {
		tdm_link_destroy(stream->link);
		tdm_buffer_release(&stream->left_out);
		free(stream);
	}
}

struct tdm_stream_facts tdm_stream_get_facts(const struct tdm_stream *stream)
{
	return stream->info;
}

int tdm_stream_fd(const struct tdm_stream *stream)
{
	return tdm_link_fd(stream->link);
}

/* Waits for a frame of a type. */
static enum tdm_status expect_frame(struct tdm_stream *stream, enum tdm_stream_frame type,
	struct tdm_frame *frame, struct tdm_error *err)
{
	const enum tdm_status status =
		tdm_link_receive(stream->link, frame, tdm_deadline_ns(stream->timeout_ms), -1, err);

	if (status == TDM_AGAIN) {
		return tdm_fail(err, TDM_ERR_PEER, "the agent is silent for %" PRIu32 " ms",
			stream->timeout_ms);
	}
	if (status == TDM_END) {
		return tdm_fail(err, TDM_ERR_PEER, "the agent ended the stream");
	}
	if (status == TDM_OK && frame->type != type) {
		return tdm_fail(err, TDM_ERR_PEER, "the agent sent frame type %u, wanted %d",
			frame->type, type);
	}
	return status;
}

enum tdm_status tdm_stream_receive_texts(
	struct tdm_stream *stream, struct tdm_trace_meta *meta, struct tdm_error *err)
{
	struct tdm_buffer bytes = { .cap = TEXTS_MAX_BYTES };
	struct tdm_frame frame;
	enum tdm_status status;

	while ((status = expect_frame(stream, TDM_STREAM_TEXTS, &frame, err)) == TDM_OK &&
		frame.size_bytes) {
		if (tdm_buffer_append(&bytes, frame.body, frame.size_bytes) != TDM_OK) {
			status = tdm_fail(err, TDM_ERR_NOMEM,
				"the agent sends over %d bytes of texts", TEXTS_MAX_BYTES);
			break;
		}
	}
	if (status == TDM_OK) {
		struct tdm_cursor in = tdm_cursor_over(bytes.bytes, bytes.size, 0, false);

		status = tdm_trace_meta_unpack(&in, meta, err);
	}
	if (status == TDM_OK && (meta->cpu_count != stream->info.cpu_count ||
					meta->page_bytes != stream->info.page_bytes)) {
		status = tdm_fail(err, TDM_ERR_PEER,
			"the agent's texts are of %" PRIu32 " CPUs and pages of %" PRIu32
			" bytes, it had said %" PRIu32 " and %" PRIu32,
			meta->cpu_count, meta->page_bytes, stream->info.cpu_count,
			stream->info.page_bytes);
	}
	tdm_buffer_release(&bytes);
	return status;
}

static enum tdm_status send_frame(
	struct tdm_stream *stream, enum tdm_stream_frame type, struct tdm_error *err)
{
	return tdm_link_send(stream->link, (enum tdm_frame_type)type, NULL, 0,
		tdm_deadline_ns(stream->timeout_ms), err);
}

enum tdm_status tdm_stream_start(struct tdm_stream *stream, struct tdm_error *err)
{
	struct tdm_frame frame;
	const enum tdm_status status = send_frame(stream, TDM_STREAM_START, err);

	return status == TDM_OK ? expect_frame(stream, TDM_STREAM_STARTED, &frame, err) : status;
}

enum tdm_status tdm_stream_stop(struct tdm_stream *stream, struct tdm_error *err)
{
	return send_frame(stream, TDM_STREAM_STOP, err);
}

/* Each text that came at the end takes the place of the one from the beginning. */
static enum tdm_status merge_texts(
	struct tdm_trace_meta *meta, const struct tdm_trace_meta *late, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < late->text_count && status == TDM_OK; i++) {
		const struct tdm_meta_text *text = &late->texts[i];

		status = tdm_trace_meta_add(
			meta, text->kind, text->name, text->text.bytes, text->text.size, err);
	}
	return status;
}

enum tdm_status tdm_stream_receive_end(struct tdm_stream *stream, struct tdm_trace_meta *meta,
	struct tdm_stream_end *end, struct tdm_error *err)
{
	struct tdm_trace_meta late = { 0 };
	struct tdm_frame frame;
	enum tdm_status status = expect_frame(stream, TDM_STREAM_END, &frame, err);

	*end = (struct tdm_stream_end){ 0 };
	if (status == TDM_OK) {
		const char *text = (const char *)frame.body;

		tdm_record_find_number(text, frame.size_bytes, "overrun", 0, &end->overrun_events);
		tdm_record_find_number(text, frame.size_bytes, "dropped", 0, &end->dropped_events);
		tdm_record_find_number(text, frame.size_bytes, "sent-bytes", 0, &end->sent_bytes);
		status = tdm_stream_receive_texts(stream, &late, err);
	}
	if (status == TDM_OK) {
		status = merge_texts(meta, &late, err);
	}
	tdm_trace_meta_release(&late);
	return status;
}

enum tdm_status tdm_stream_next_page(
	struct tdm_stream *stream, struct tdm_stream_page *page, struct tdm_error *err)
{
	enum {
		FIXED_BYTES = 8
	};
	struct tdm_frame frame;
	enum tdm_status status = tdm_link_next(stream->link, &frame, err);

	if (status == TDM_AGAIN) {
		status = tdm_link_fill(stream->link, err);
		if (status == TDM_END) {
			return tdm_fail(err, TDM_ERR_PEER, "the recorder went away");
		}
		if (status == TDM_OK) {
			status = tdm_link_next(stream->link, &frame, err);
		}
	}
	if (status != TDM_OK) {
		return status;
	}
	if (frame.type == TDM_STREAM_END) {
		return TDM_END;
	}
	if (frame.type != TDM_STREAM_PAGE ||
		frame.size_bytes != FIXED_BYTES + stream->info.page_bytes) {
		return tdm_fail(err, TDM_ERR_PEER,
			"the recorder sent a frame of type %u with %" PRIu32
			" bytes, wanted a page of %" PRIu32,
			frame.type, frame.size_bytes, stream->info.page_bytes);
	}
	page->cpu = tdm_load_u32(frame.body, false);
	page->lost_pages = tdm_load_u32(frame.body + 4, false);
	page->bytes = frame.body + FIXED_BYTES;
	return TDM_OK;
}

enum tdm_status tdm_stream_list(
	const struct tdm_stream_options *options, struct tdm_buffer *names, struct tdm_error *err)
{
	const struct tdm_link_options link_options = {
		.secret = options->secret,
		.capabilities = TDM_CAN_STREAM,
	};
	const uint32_t timeout_ms = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
	struct tdm_buffer open = { 0 };
	struct tdm_link *link = NULL;
	struct tdm_opened opened;
	char name[TDM_VALUE_MAX + 1];
	enum tdm_status status = put_machine(&open, "*", err);

	if (status == TDM_OK) {
		status = tdm_link_open(options->address, &link_options, &open,
			tdm_deadline_ns(timeout_ms), 0, &link, &opened, err);
	}
	for (unsigned int i = 0; status == TDM_OK && tdm_record_find(opened.text, opened.text_bytes,
							     TDM_STREAM_KEY_MACHINE, i, name);
		i++) {
		status = tdm_buffer_printf(names, "%s\n", name);
	}
	tdm_link_destroy(link);
	tdm_buffer_release(&open);
	return status;
}

enum tdm_status tdm_stream_parse_url(
	const char *url, struct tdm_address *address, const char **name, struct tdm_error *err)
{
	static const char scheme[] = "tandem://";
	const size_t scheme_bytes = sizeof(scheme) - 1;
	const char *slash = strrchr(url, '/');
	char text[TDM_HOST_MAX + 32];

	if (strncmp(url, scheme, scheme_bytes) != 0 || slash < url + scheme_bytes || !slash[1]) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"\"%s\": wanted tandem://HOST[:PORT]/NAME or tandem://unix:PATH/NAME", url);
	}

	const char *from = url + scheme_bytes;

	snprintf(text, sizeof(text), "%s%.*s",
		strncmp(from, "unix:", 5) == 0 ? "" : "tcp:", (int)(slash - from), from);
	*name = slash + 1;
	return tdm_address_parse(text, TDM_ADDRESS_CONNECT, address, err);
}

static bool add_number(struct tdm_buffer *body, const char *key, uint64_t value)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, value);
	return tdm_record_add(body, key, number) == TDM_OK;
}

enum tdm_status tdm_stream_send_opened(struct tdm_link *link, const struct tdm_stream_facts *facts,
	const char *token, uint32_t timeout_ms, struct tdm_error *err)
{
	struct tdm_buffer body = { 0 };
	const bool complete = tdm_opened_put(&body, 0, 0) == TDM_OK &&
			      add_number(&body, TDM_STREAM_KEY_TRACE_ID, facts->trace_id) &&
			      add_number(&body, TDM_STREAM_KEY_CPUS, facts->cpu_count) &&
			      add_number(&body, TDM_STREAM_KEY_PAGE, facts->page_bytes) &&
			      add_number(&body, TDM_STREAM_KEY_SEALED, facts->sealed) &&
			      tdm_record_add(&body, TDM_STREAM_KEY_TOKEN, token) == TDM_OK &&
			      (!facts->left_out || tdm_buffer_append(&body, facts->left_out->bytes,
							   facts->left_out->size) == TDM_OK);
	const enum tdm_status status =
		complete ? tdm_link_send(link, TDM_FRAME_OPENED, body.bytes, body.size,
				   tdm_deadline_ns(timeout_ms), err)
			 : tdm_fail(err, TDM_ERR_NOMEM, "no memory for an answer");

	tdm_buffer_release(&body);
	return status;
}

enum tdm_status tdm_stream_send_texts(struct tdm_link *link, const struct tdm_trace_meta *meta,
	uint32_t timeout_ms, struct tdm_error *err)
{
	enum {
		PART_BYTES = TDM_FRAME_MAX_BYTES - TDM_TAG_BYTES
	};
	struct tdm_buffer packed = { 0 };
	enum tdm_status status = tdm_trace_meta_pack(meta, &packed);
	size_t sent = 0;
	size_t part;

	if (status != TDM_OK) {
		tdm_fail(err, status, "no memory for texts");
	}
	do {
		const size_t left = packed.size - sent;

		part = left < PART_BYTES ? left : PART_BYTES;
		if (status == TDM_OK) {
			status = tdm_link_send(link, (enum tdm_frame_type)TDM_STREAM_TEXTS,
				part ? packed.bytes + sent : NULL, part,
				tdm_deadline_ns(timeout_ms), err);
		}
		sent += part;
	} while (status == TDM_OK && part);
	tdm_buffer_release(&packed);
	return status;
}
