/* SPDX-License-Identifier: MIT */
#include "perfdata_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_STRING = 4096
};

/* A string is a u32 length and that many bytes, padded with NULs. The caller owns it; NULL where there is none. */
static char *read_string(struct tdm_cursor *in)
{
	const uint32_t length = tdm_cursor_u32(in);
	const struct tdm_cursor text = tdm_cursor_take(in, length);

	if (text.failed || !length) {
		return NULL;
	}
	return strndup((const char *)text.bytes, text.size < MAX_STRING ? text.size : MAX_STRING);
}

static void keep_string(char **place, struct tdm_cursor *in)
{
	char *text = read_string(in);

	if (text) {
		free(*place);
		*place = text;
	}
}

static void read_clock_data(struct perfdata *pd, struct tdm_cursor *in)
{
	const uint32_t version = tdm_cursor_u32(in);
	const uint32_t clock = tdm_cursor_u32(in);
	const uint64_t wall_ns = tdm_cursor_u64(in);
	const uint64_t clock_ns = tdm_cursor_u64(in);

	if (in->failed || version != 1) {
		trace_fault(&pd->trace, 0,
			"the CLOCK_DATA feature is of version %" PRIu32
			", wanted 1: its wall clock is not used",
			version);
		return;
	}
	pd->has_clock_data = true;
	pd->clock_data_clock = (int32_t)clock;
	pd->wall_offset_ns = (int64_t)(wall_ns - clock_ns);
}

/* EVENT_DESC repeats the attributes, with the name as the user wrote it and the ids. */
static void read_event_desc(struct perfdata *pd, struct tdm_cursor *in)
{
	const uint32_t count = tdm_cursor_u32(in);
	const uint32_t attr_bytes = tdm_cursor_u32(in);

	for (uint32_t i = 0; i < count && !in->failed; i++) {
		tdm_cursor_skip(in, attr_bytes);

		const uint32_t id_count = tdm_cursor_u32(in);
		char *name = read_string(in);
		struct tdm_cursor ids = tdm_cursor_take(in, 8 * (uint64_t)id_count);
		size_t attr_index = i;

		if (id_count && !ids.failed) {
			struct tdm_cursor first = ids;
			const struct perfdata_id *id =
				perfdata_ids_find(&pd->ids, tdm_cursor_u64(&first));

			attr_index = id ? id->attr_index : i;
		}
		if (attr_index >= pd->attr_count || in->failed) {
			free(name);
			continue;
		}
		if (name && !pd->attrs[attr_index].name) {
			pd->attrs[attr_index].name = name;
		} else {
			free(name);
		}
		perfdata_ids_add(pd, &ids, id_count, attr_index, NULL);
	}
}

static void read_cpu_counts(struct perfdata *pd, struct tdm_cursor *in)
{
	/* Which of the two is "online" differs between perf's text and its code; the machine has the greater number. */
	const uint32_t one = tdm_cursor_u32(in);
	const uint32_t other = tdm_cursor_u32(in);

	if (!in->failed) {
		pd->cpu_number = one > other ? one : other;
	}
}

void perfdata_feature_read(struct perfdata *pd, unsigned int feature, struct tdm_cursor *in)
{
	switch (feature) {
	case PERF_FEATURE_TRACING_DATA:
		if (!pd->has_tracing) {
			const size_t size = tdm_cursor_left(in);
			const struct tdm_cursor block = tdm_cursor_take(in, size);

			pd->has_tracing =
				tdm_buffer_append(&pd->tracing, block.bytes, block.size) == TDM_OK;
		}
		break;
	case PERF_FEATURE_HOSTNAME:
		keep_string(&pd->hostname, in);
		break;
	case PERF_FEATURE_OSRELEASE:
		keep_string(&pd->release, in);
		break;
	case PERF_FEATURE_VERSION:
		keep_string(&pd->version, in);
		break;
	case PERF_FEATURE_ARCH:
		keep_string(&pd->arch, in);
		break;
	case PERF_FEATURE_NRCPUS:
		read_cpu_counts(pd, in);
		break;
	case PERF_FEATURE_EVENT_DESC:
		read_event_desc(pd, in);
		break;
	case PERF_FEATURE_CLOCK_DATA:
		read_clock_data(pd, in);
		break;
	default:
		break;
	}
}
