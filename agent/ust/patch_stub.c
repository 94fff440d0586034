/* SPDX-License-Identifier: MIT */
#include "insn_length.h"
#include "patch_priv.h"
#include <string.h>

static uint8_t *put(uint8_t *at, const void *bytes, size_t count)
{
	memcpy(at, bytes, count);
	return at + count;
}

/* lea site(%rip),%rcx; movabs target,%r11; jmp *%r11 */
static uint8_t *put_leave(uint8_t *at, const uint8_t *site, const void *target)
{
	const int32_t distance = (int32_t)(site - (at + 7));
	const uint64_t address = (uint64_t)(uintptr_t)target;

	at = put(at, "\x48\x8d\x0d", 3);
	at = put(at, &distance, 4);
	at = put(at, "\x49\xbb", 2);
	at = put(at, &address, 8);
	return put(at, "\x41\xff\xe3", 3);
}

/* jmp rel32 */
static uint8_t *put_jump(uint8_t *at, const uint8_t *target)
{
	const int32_t distance = (int32_t)(target - (at + 5));

	at = put(at, "\xe9", 1);
	return put(at, &distance, 4);
}

/* Copies instructions, with what they refer to by distance. */
static uint8_t *put_moved(uint8_t *at, const uint8_t *from, const uint8_t *end)
{
	while (from < end) {
		const struct tdm_insn insn = tdm_insn_decode(from, (size_t)(end - from));

		memcpy(at, from, insn.length_bytes);
		if (insn.rip_disp_at) {
			int32_t distance;

			memcpy(&distance, from + insn.rip_disp_at, 4);

			const int64_t moved = (int64_t)distance + (from - at);

			if (moved != (int32_t)moved) {
				return NULL;
			}
			distance = (int32_t)moved;
			memcpy(at + insn.rip_disp_at, &distance, 4);
		}
		at += insn.length_bytes;
		from += insn.length_bytes;
	}
	return at;
}

int tdm_stub_write(uint8_t *stub, const struct tdm_site_plan *plan)
{
	uint8_t *const site_at = stub + TDM_STUB_SITE;
	struct tdm_site site = {
		.address = (uint64_t)(uintptr_t)plan->call,
		.nr = plan->way == TDM_WAY_MOV ? plan->nr : TDM_SITE_ANY,
	};
	uint8_t *at = stub;

	if (plan->way == TDM_WAY_MOV) {
		at = put(at, "\xb8", 1);
		at = put(at, &plan->nr, 4);
	} else if (plan->way == TDM_WAY_LOOP) {
		at = put(at, plan->patch_at, 4);
	} else if (plan->way == TDM_WAY_BEFORE) {
		at = put_moved(at, plan->patch_at, plan->call);
		if (!at) {
			return -1;
		}
	}
	at = put_leave(at, site_at, (const void *)tdm_patch_enter);

	site.bare_post = (uint64_t)(uintptr_t)at;
	at = put(at, "\x0f\x05", 2);
	at = put_leave(at, site_at, (const void *)tdm_patch_post);

	if (plan->way == TDM_WAY_MOV || plan->way == TDM_WAY_BEFORE) {
		site.bare = (uint64_t)(uintptr_t)plan->call;
		site.back = (uint64_t)(uintptr_t)plan->resume;
	} else {
		site.bare = (uint64_t)(uintptr_t)at;
		at = put(at, "\x0f\x05", 2);
		site.back = (uint64_t)(uintptr_t)at;
		at = put_moved(at, plan->call + 2, plan->call + 2 + plan->moved_bytes);
		if (!at) {
			return -1;
		}
		at = put_jump(at, plan->resume);
		if (plan->way == TDM_WAY_HOP || plan->way == TDM_WAY_LOOP || !plan->moved_bytes) {
			/* Nothing moved: the site's own address serves unwinders better. */
			site.back = (uint64_t)(uintptr_t)plan->resume;
		}
	}
	memcpy(site_at, &site, sizeof(site));
	return 0;
}
