/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/trace_meta.h>

enum {
	NAME_MAX_BYTES = 255,
	PACK_VERSION = 1,
	CPU_MAX_COUNT = 1 << 16,
	PAGE_MAX_BYTES = 1 << 24
};

static const char pack_magic[4] = { 'T', 'N', 'D', 'M' };

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++) {
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	}
	return hash;
}

/* The slot of a CPU's text, or the free one where it would be. */
static uint32_t *stat_place(
	const struct tdm_trace_meta *meta, uint32_t *places, size_t room, const char *name)
{
	size_t at = hash_name(name) & (room - 1);

	while (places[at] && strcmp(meta->texts[places[at] - 1].name, name) != 0) {
		at = (at + 1) & (room - 1);
	}
	return &places[at];
}

static bool grow_stats(struct tdm_trace_meta *meta)
{
	const size_t room = meta->stat_room ? meta->stat_room * 2 : 64;
	uint32_t *const places = calloc(room, sizeof(*places));

	if (!places) {
		return false;
	}
	for (size_t i = 0; i < meta->stat_room; i++) {
		const uint32_t place = meta->stat_places[i];

		if (place) {
			*stat_place(meta, places, room, meta->texts[place - 1].name) = place;
		}
	}
	free(meta->stat_places);
	meta->stat_places = places;
	meta->stat_room = room;
	return true;
}

/* Where it is noted which text a new one takes the place of; NULL: of none, or no memory. */
static uint32_t *place_of(struct tdm_trace_meta *meta, enum tdm_meta_kind kind, const char *name)
{
	if (kind == TDM_META_EVENT_FORMAT) {
		return NULL;
	}
	if (kind != TDM_META_CPUSTAT) {
		return &meta->place_of[kind];
	}
	if (2 * (meta->stat_count + 1) > meta->stat_room && !grow_stats(meta)) {
		return NULL;
	}
	return stat_place(meta, meta->stat_places, meta->stat_room, name);
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

	uint32_t *const place = place_of(meta, kind, name);
	struct tdm_meta_text *slot = place && *place ? &meta->texts[*place - 1] : NULL;
	const size_t others_bytes = meta->total_bytes - (slot ? slot->text.size : 0);

	if (text_bytes > TDM_META_MAX_BYTES - others_bytes ||
		(!slot && meta->text_count >= TDM_META_MAX_TEXTS)) {
		return tdm_fail(err, TDM_ERR_NOMEM,
			"metadata of over %d bytes or %d texts is not taken", TDM_META_MAX_BYTES,
			TDM_META_MAX_TEXTS);
	}
	if (!place && kind != TDM_META_EVENT_FORMAT) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for metadata");
	}
	if (!slot) {
		slot = append_text(meta, kind, name);
		if (!slot) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for metadata");
		}
		if (place) {
			*place = (uint32_t)meta->text_count;
			meta->stat_count += kind == TDM_META_CPUSTAT;
		}
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

static void pack_u32(struct tdm_buffer *out, uint32_t value, bool *failed)
{
	const uint8_t bytes[] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
		(uint8_t)(value >> 24) };

	*failed |= tdm_buffer_append(out, bytes, sizeof(bytes)) != TDM_OK;
}

enum tdm_status tdm_trace_meta_pack(const struct tdm_trace_meta *meta, struct tdm_buffer *out)
{
	const uint8_t version_and_order[] = { PACK_VERSION, 0, meta->big_endian, 0 };
	bool failed = tdm_buffer_append(out, pack_magic, sizeof(pack_magic)) != TDM_OK;

	failed |= tdm_buffer_append(out, version_and_order, sizeof(version_and_order)) != TDM_OK;
	pack_u32(out, meta->cpu_count, &failed);
	pack_u32(out, meta->page_bytes, &failed);
	pack_u32(out, meta->long_bytes, &failed);
	pack_u32(out, (uint32_t)meta->text_count, &failed);
	for (size_t i = 0; i < meta->text_count; i++) {
		const struct tdm_meta_text *text = &meta->texts[i];
		const uint64_t size_bytes = text->text.size;

		pack_u32(out, (uint32_t)text->kind, &failed);
		pack_u32(out, (uint32_t)strlen(text->name), &failed);
		pack_u32(out, (uint32_t)size_bytes, &failed);
		pack_u32(out, (uint32_t)(size_bytes >> 32), &failed);
		failed |= tdm_buffer_append(out, text->name, strlen(text->name)) != TDM_OK;
		failed |= tdm_buffer_append(out, text->text.bytes, text->text.size) != TDM_OK;
	}
	return failed ? TDM_ERR_NOMEM : TDM_OK;
}

static enum tdm_status unpack_text(
	struct tdm_cursor *in, struct tdm_trace_meta *meta, struct tdm_error *err)
{
	const uint64_t at = tdm_cursor_offset(in);
	const uint32_t kind = tdm_cursor_u32(in);
	const uint32_t name_bytes = tdm_cursor_u32(in);
	const uint64_t text_bytes = tdm_cursor_u64(in);
	const struct tdm_cursor name_part = tdm_cursor_take(in, name_bytes);
	const struct tdm_cursor text_part = tdm_cursor_take(in, text_bytes);
	char name[NAME_MAX_BYTES + 1];

	if (in->failed || name_bytes > NAME_MAX_BYTES) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"metadata text at %" PRIu64 ": name of %" PRIu32 " and text of %" PRIu64
			" bytes pass the end",
			at, name_bytes, text_bytes);
	}
	memcpy(name, name_part.bytes, name_bytes);
	name[name_bytes] = '\0';
	if (kind >= TDM_META_KIND_END) {
		/* A newer peer may have more to tell. */
		return TDM_OK;
	}
	return tdm_trace_meta_add(
		meta, (enum tdm_meta_kind)kind, name, text_part.bytes, (size_t)text_bytes, err);
}

enum tdm_status tdm_trace_meta_unpack(
	struct tdm_cursor *in, struct tdm_trace_meta *meta, struct tdm_error *err)
{
	const bool magic_fits = tdm_cursor_expect(in, pack_magic, sizeof(pack_magic));
	const uint16_t version = tdm_cursor_u16(in);

	meta->big_endian = tdm_cursor_u8(in);
	tdm_cursor_skip(in, 1);
	meta->cpu_count = tdm_cursor_u32(in);
	meta->page_bytes = tdm_cursor_u32(in);
	meta->long_bytes = tdm_cursor_u32(in);

	const uint32_t text_count = tdm_cursor_u32(in);

	if (in->failed || !magic_fits || version != PACK_VERSION) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"metadata: version %u, wanted %d behind \"TNDM\"", version, PACK_VERSION);
	}
	if (meta->cpu_count > CPU_MAX_COUNT || meta->page_bytes > PAGE_MAX_BYTES ||
		(meta->long_bytes != 4 && meta->long_bytes != 8)) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"metadata: %" PRIu32 " CPUs, pages of %" PRIu32 " bytes, longs of %" PRIu32
			" bytes cannot be",
			meta->cpu_count, meta->page_bytes, meta->long_bytes);
	}

	enum tdm_status status = TDM_OK;

	for (uint32_t i = 0; i < text_count && status == TDM_OK; i++) {
		status = unpack_text(in, meta, err);
	}
	return status;
}

void tdm_trace_meta_release(struct tdm_trace_meta *meta)
{
	for (size_t i = 0; i < meta->text_count; i++) {
		free(meta->texts[i].name);
		tdm_buffer_release(&meta->texts[i].text);
	}
	free(meta->texts);
	free(meta->stat_places);
	*meta = (struct tdm_trace_meta){ 0 };
}
