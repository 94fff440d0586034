/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <tandem/trace_meta.h>

enum {
	NAME_MAX_BYTES = 255
};

/* A text that the new one takes the place of, or NULL. */
static struct tdm_meta_text *find_same(
	struct tdm_trace_meta *meta, enum tdm_meta_kind kind, const char *name)
{
	if (kind == TDM_META_EVENT_FORMAT) {
		return NULL;
	}
	for (size_t i = 0; i < meta->text_count; i++) {
		struct tdm_meta_text *text = &meta->texts[i];

		if (text->kind == kind &&
			(kind != TDM_META_CPUSTAT || strcmp(text->name, name) == 0)) {
			return text;
		}
	}
	return NULL;
}

static struct tdm_meta_text *append_text(
	struct tdm_trace_meta *meta, enum tdm_meta_kind kind, const char *name)
{
	if (meta->text_count == meta->text_room) {
		const size_t room = meta->text_room ? meta->text_room * 2 : 64;
		struct tdm_meta_text *texts = realloc(meta->texts, room * sizeof(*texts));

		if (!texts) {
			return NULL;
		}
		meta->texts = texts;
		meta->text_room = room;
	}

	struct tdm_meta_text *text = &meta->texts[meta->text_count];

	*text = (struct tdm_meta_text){ .kind = kind, .name = strdup(name) };
	if (!text->name) {
		return NULL;
	}
	meta->text_count++;
	return text;
}

enum tdm_status tdm_trace_meta_add(struct tdm_trace_meta *meta, enum tdm_meta_kind kind,
	const char *name, const void *text, size_t text_bytes, struct tdm_error *err)
{
	if (!name) {
		name = "";
	}
	if (kind < TDM_META_HEADER_PAGE || kind >= TDM_META_KIND_END) {
		return tdm_fail(err, TDM_ERR_RANGE, "metadata kind %d is unknown", (int)kind);
	}
	if (strlen(name) > NAME_MAX_BYTES) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"metadata name of %zu bytes, at most %d are taken", strlen(name),
			NAME_MAX_BYTES);
	}

	struct tdm_meta_text *slot = find_same(meta, kind, name);
	const size_t others_bytes = meta->total_bytes - (slot ? slot->text.size : 0);

	if (text_bytes > TDM_META_MAX_BYTES - others_bytes ||
		(!slot && meta->text_count >= TDM_META_MAX_TEXTS)) {
		return tdm_fail(err, TDM_ERR_NOMEM,
			"metadata of over %d bytes or %d texts is not taken", TDM_META_MAX_BYTES,
			TDM_META_MAX_TEXTS);
	}
	if (!slot) {
		slot = append_text(meta, kind, name);
	}
	if (!slot) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for metadata");
	}
	meta->total_bytes = others_bytes;
	slot->text.size = 0;
	if (tdm_buffer_append(&slot->text, text, text_bytes) != TDM_OK) {
		return tdm_fail(
			err, TDM_ERR_NOMEM, "no memory for %zu bytes of metadata", text_bytes);
	}
	meta->total_bytes += text_bytes;
	return TDM_OK;
}

const struct tdm_meta_text *tdm_trace_meta_find(
	const struct tdm_trace_meta *meta, enum tdm_meta_kind kind)
{
	for (size_t i = 0; i < meta->text_count; i++) {
		if (meta->texts[i].kind == kind) {
			return &meta->texts[i];
		}
	}
	return NULL;
}

void tdm_trace_meta_release(struct tdm_trace_meta *meta)
{
	for (size_t i = 0; i < meta->text_count; i++) {
		free(meta->texts[i].name);
		tdm_buffer_release(&meta->texts[i].text);
	}
	free(meta->texts);
	*meta = (struct tdm_trace_meta){ 0 };
}
