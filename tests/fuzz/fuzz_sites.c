/* SPDX-License-Identifier: MIT */
/* Any bytes as machine code: the length decoder, the search for system calls in them, and the stubs of what it found. */
#include "insn_length.h"
#include "patch_priv.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The trampolines: stubs hold their addresses. */
void tdm_patch_enter(void)
{
}

void tdm_patch_post(void)
{
}

static void require(int is_so)
{
	if (!is_so) {
		abort();
	}
}

/* An instruction ends within its bytes and is known by them alone; with one byte less it is not known. */
static void decode(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(15);

	for (size_t at = 0; exact && at < size && at < 256; at++) {
		const struct tdm_insn insn = tdm_insn_decode(data + at, size - at);
		const size_t length = insn.length_bytes;

		require(length <= 15 && length <= size - at);
		if (length == 0) {
			continue;
		}
		require(insn.rip_disp_at == 0 || insn.rip_disp_at + 4u <= length);
		require(!insn.is_unconditional || insn.is_control);
		memcpy(exact + 15 - length, data + at, length);
		require(tdm_insn_decode(exact + 15 - length, length).length_bytes == length);
		require(tdm_insn_decode(exact + 15 - length, length - 1).length_bytes == 0);
	}
	free(exact);
}

static int inside(const uint8_t *from, const uint8_t *to, const uint8_t *text, size_t size)
{
	return from >= text && from <= to && to <= text + size;
}

static void find(const uint8_t *data, size_t size, bool in_place_only)
{
	static struct tdm_site_plan plans[64];
	uint8_t *text = malloc(size);
	uint8_t *owner = calloc(size, 1);

	if (text && owner) {
		memcpy(text, data, size);

		const size_t count = tdm_sites_find(text, size, in_place_only, plans, 64);

		require(count <= 64 && memcmp(text, data, size) == 0);
		for (size_t i = 0; i < count; i++) {
			const struct tdm_site_plan *plan = &plans[i];
			uint8_t stub[TDM_STUB_BYTES + 1];

			require(inside(plan->call, plan->call + 2, text, size) &&
				plan->call[0] == 0x0f && plan->call[1] == 0x05);
			if (plan->way <= TDM_WAY_RESTORER) {
				continue;
			}
			require(!in_place_only || plan->way == TDM_WAY_MOV);
			require(inside(plan->patch_at, plan->resume, text, size) &&
				plan->resume >= plan->call + 2);
			/* Nobody else's bytes. */
			for (const uint8_t *at = plan->patch_at; at < plan->resume; at++) {
				require(!owner[at - text]);
				owner[at - text] = 1;
			}
			for (size_t k = 0; plan->way == TDM_WAY_HOP && k < 5; k++) {
				require(inside(plan->hop, plan->hop + 5, text, size));
				require(plan->hop - (plan->call + 2) <= 127);
				require(!owner[plan->hop + k - text]);
				owner[plan->hop + k - text] = 1;
			}
			memset(stub, 0xa5, sizeof(stub));
			if (tdm_stub_write(stub, plan) == 0) {
				struct tdm_site site;

				/* Between the code and the site's words nothing is written; behind them neither. */
				require(stub[TDM_STUB_SITE - 1] == 0xa5 &&
					stub[TDM_STUB_BYTES] == 0xa5);
				memcpy(&site, stub + TDM_STUB_SITE, sizeof(site));
				require(site.address == (uint64_t)(uintptr_t)plan->call);
				require(site.bare && site.bare_post && site.back);
			}
		}
	}
	free(text);
	free(owner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > 4096) {
		return 0;
	}
	decode(data, size);
	find(data, size, false);
	find(data, size, true);
	return 0;
}
