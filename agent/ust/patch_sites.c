/* SPDX-License-Identifier: MIT */
#include "insn_length.h"
#include "patch_priv.h"
#include <emmintrin.h>
#include <string.h>

#define JUMP_BYTES 5
/* Numbers from here on are no system calls of x86_64: the bytes only look like a site. */
#define NR_LIMIT 1024
/* Farther than a short jump reaches. */
#define SHORT_BYTES 132

/*
 * Does an instruction begin at this address? Decoding from a wrong byte falls into step with the true
 * instructions after a few of them, so walks from many bytes before vote; a walk that meets an
 * instruction that the decoder does not know has no vote.
 */
static bool is_boundary(const uint8_t *text, size_t size_bytes, const uint8_t *address)
{
	const uint8_t *const end = text + size_bytes;

	unsigned int hits = 0;
	unsigned int passes = 0;

	for (size_t back = 24; back < 24 + 20; back++) {
		const uint8_t *at = address - back;

		if ((size_t)(address - text) < back) {
			break;
		}
		while (at < address) {
			const struct tdm_insn insn = tdm_insn_decode(at, (size_t)(end - at));

			if (insn.length_bytes == 0) {
				break;
			}
			at += insn.length_bytes;
		}
		hits += at == address;
		passes += at > address;
	}
	return hits >= 4 && hits > 4 * passes;
}

/*
 * Where the long jumps of the text lead, one bit for each byte. Every byte is tried as the beginning of a
 * jump: chance bytes set a few bits too many, and then a site is taken over another way. The whole text is
 * looked at because compilers put cold parts of a function far away.
 */
#define TARGET_BYTES (8u << 20)
static uint64_t targets[TARGET_BYTES / 64];

static void note_targets(const uint8_t *text, size_t size_bytes)
{
	memset(targets, 0, (size_bytes + 63) / 64 * sizeof(targets[0]));
	for (size_t at = 0; at + 5 <= size_bytes; at++) {
		const uint8_t op = text[at];
		int32_t distance;

		/* e8, e9, and 0f 8x, which is looked at from its second byte: the end is the same. */
		if (op != 0xe9 && op != 0xe8 &&
			((op & 0xf0) != 0x80 || at == 0 || text[at - 1] != 0x0f)) {
			continue;
		}
		memcpy(&distance, text + at + 1, sizeof(distance));

		const int64_t target = (int64_t)at + 5 + distance;

		if (target >= 0 && (uint64_t)target < size_bytes) {
			targets[target / 64] |= UINT64_C(1) << (target % 64);
		}
	}
}

/* Does anything jump to target? Short jumps by chance are so many that they must begin an instruction too. */
static bool is_jump_target(const uint8_t *text, size_t size_bytes, const uint8_t *target)
{
	const size_t offset = (size_t)(target - text);
	const uint8_t *from = offset > SHORT_BYTES ? target - SHORT_BYTES : text;
	const uint8_t *const to =
		size_bytes - offset > SHORT_BYTES ? target + SHORT_BYTES : text + size_bytes;

	if (targets[offset / 64] >> (offset % 64) & 1) {
		return true;
	}
	for (; from + 2 <= to; from++) {
		const uint8_t op = from[0];

		/* jcc, jmp, loop and jrcxz with 8 bits. */
		if (((op & 0xf0) == 0x70 || op == 0xeb || (op & 0xfc) == 0xe0) &&
			from + 2 + (int8_t)from[1] == target &&
			is_boundary(text, size_bytes, from)) {
			return true;
		}
	}
	return false;
}

/* Can what follows the syscall move to the stub? */
static bool plan_next(const uint8_t *text, size_t size_bytes, struct tdm_site_plan *plan)
{
	uint8_t *at = plan->call + 2;
	const uint8_t *const end = text + size_bytes;

	while (at < plan->call + JUMP_BYTES) {
		const struct tdm_insn insn = tdm_insn_decode(at, (size_t)(end - at));

		if (insn.length_bytes == 0 || insn.is_control) {
			return false;
		}
		if (is_jump_target(text, size_bytes, at)) {
			return false;
		}
		at += insn.length_bytes;
	}
	plan->way = TDM_WAY_NEXT;
	plan->patch_at = plan->call;
	plan->resume = at;
	plan->moved_bytes = (uint8_t)(at - plan->call - 2);
	return true;
}

static bool is_padding(const uint8_t *at, size_t length_bytes)
{
	size_t i = 0;

	/* nop, xchg %ax,%ax and the long nops (0F 1F /0 with prefixes). */
	while (i < length_bytes && (at[i] == 0x66 || at[i] == 0x2e)) {
		i++;
	}
	return (length_bytes - i == 1 && at[i] == 0x90) ||
	       (length_bytes - i >= 3 && at[i] == 0x0f && at[i + 1] == 0x1f);
}

/*
 * Is there padding within reach of a two-byte jump? Walking forward from the syscall keeps the walk on
 * instruction boundaries; nops after an instruction that never falls through are run by nobody.
 */
static bool plan_hop(const uint8_t *text, size_t size_bytes, struct tdm_site_plan *plan)
{
	uint8_t *at = plan->call + 2;
	const uint8_t *const end = text + size_bytes;
	bool dead = false;
	uint8_t *pad = NULL;

	while (at < end && at - plan->call < 2 + 127) {
		const struct tdm_insn insn = tdm_insn_decode(at, (size_t)(end - at));

		if (insn.length_bytes == 0) {
			return false;
		}
		if (dead && is_padding(at, insn.length_bytes)) {
			if (!pad) {
				pad = at;
			}
			if (at + insn.length_bytes - pad >= JUMP_BYTES &&
				pad - plan->call <= 2 + 127 &&
				!is_jump_target(text, size_bytes, pad)) {
				/* Several sites may want one padding: the first byte tells. */
				plan->way = TDM_WAY_HOP;
				plan->patch_at = plan->call;
				plan->hop = pad;
				plan->resume = plan->call + 2;
				return true;
			}
		} else {
			pad = NULL;
			dead = insn.is_unconditional;
		}
		at += insn.length_bytes;
	}
	return false;
}

/*
 * xor %edi,%edi; mov %reg,%eax; syscall; jmp back to the xor: how glibc ends a thread. The jump proves
 * that the xor is the beginning of an instruction.
 */
static bool plan_loop(const uint8_t *text, size_t size_bytes, struct tdm_site_plan *plan)
{
	uint8_t *const head = plan->call - 4;

	if (plan->call - text < 4 || text + size_bytes - head < 8 || head[0] != 0x31 ||
		head[1] != 0xff || head[2] != 0x89 || (head[3] & 0xc7) != 0xc0 || head[6] != 0xeb ||
		(int8_t)head[7] != -8) {
		return false;
	}
	plan->way = TDM_WAY_LOOP;
	plan->patch_at = head;
	plan->resume = plan->call + 2;
	return true;
}

/* Can what stands before the syscall move to the stub? Then the syscall itself stays. */
static bool plan_before(const uint8_t *text, size_t size_bytes, struct tdm_site_plan *plan)
{
	for (size_t back = JUMP_BYTES; back <= 12; back++) {
		uint8_t *const head = plan->call - back;
		uint8_t *at = head;

		if ((size_t)(plan->call - text) < back + 64 ||
			!is_boundary(text, size_bytes, head)) {
			continue;
		}
		while (at < plan->call) {
			const struct tdm_insn insn = tdm_insn_decode(at, (size_t)(plan->call - at));

			if (insn.length_bytes == 0 || insn.is_control) {
				break;
			}
			at += insn.length_bytes;
			if (is_jump_target(text, size_bytes, at)) {
				break;
			}
		}
		if (at == plan->call) {
			plan->way = TDM_WAY_BEFORE;
			plan->patch_at = head;
			plan->resume = plan->call + 2;
			return true;
		}
	}
	return false;
}

/* The instruction after a class A site: anything that decodes, so that chance bytes are refused. */
static bool follows_well(const uint8_t *at, const uint8_t *end)
{
	return at < end && tdm_insn_decode(at, (size_t)(end - at)).length_bytes != 0;
}

static void plan_site(
	uint8_t *text, size_t size_bytes, bool in_place_only, struct tdm_site_plan *plan)
{
	uint8_t *const call = plan->call;

	if (call - text >= 5 && call[-5] == 0xb8) {
		uint32_t nr;

		memcpy(&nr, call - 4, sizeof(nr));
		/* 48 c7 c0 0f 00 00 00 is the signal return that debuggers know; b8 needs no such look. */
		if (nr < NR_LIMIT && nr != 15 && follows_well(call + 2, text + size_bytes)) {
			plan->way = TDM_WAY_MOV;
			plan->patch_at = call - 5;
			plan->resume = call + 2;
			plan->nr = nr;
			return;
		}
	}
	if (call - text >= 7 && memcmp(call - 7, "\x48\xc7\xc0\x0f\x00\x00\x00", 7) == 0) {
		plan->way = TDM_WAY_RESTORER;
		return;
	}
	if (in_place_only || !is_boundary(text, size_bytes, call)) {
		return;
	}
	if (!plan_next(text, size_bytes, plan) && !plan_loop(text, size_bytes, plan) &&
		!plan_hop(text, size_bytes, plan)) {
		plan_before(text, size_bytes, plan);
	}
}

static bool meet(const uint8_t *a, const uint8_t *a_end, const uint8_t *b, const uint8_t *b_end)
{
	return a < b_end && b < a_end;
}

/* Farther than any plan reaches from its syscall: a short jump and the jump in its padding. */
#define FAR_BYTES 160

/*
 * Does the plan want bytes that an earlier one has? Two calls with little between them, or one padding that
 * several are near.
 */
static bool is_taken(
	const struct tdm_site_plan *plans, size_t count, const struct tdm_site_plan *plan)
{
	for (size_t i = count; i-- > 0 && plan->call - plans[i].call < 2 * FAR_BYTES;) {
		const struct tdm_site_plan *other = &plans[i];

		if (other->way <= TDM_WAY_RESTORER) {
			continue;
		}
		if (meet(plan->patch_at, plan->resume, other->patch_at, other->resume) ||
			(other->hop && meet(plan->patch_at, plan->resume, other->hop,
					       other->hop + JUMP_BYTES)) ||
			(plan->hop && meet(plan->hop, plan->hop + JUMP_BYTES, other->patch_at,
					      other->resume)) ||
			(plan->hop && other->hop &&
				meet(plan->hop, plan->hop + JUMP_BYTES, other->hop,
					other->hop + JUMP_BYTES))) {
			return true;
		}
	}
	return false;
}

/* One pair of bytes that may be a syscall; true: it is one, with or without a way to take it over. */
static bool look_at(uint8_t *text, size_t size_bytes, bool in_place_only, uint8_t *call,
	const struct tdm_site_plan *plans, size_t count, struct tdm_site_plan *plan)
{
	*plan = (struct tdm_site_plan){ .call = call };
	plan_site(text, size_bytes, in_place_only, plan);
	if (plan->way == TDM_WAY_NONE && !is_boundary(text, size_bytes, call)) {
		return false; /* bytes inside another instruction */
	}
	if (plan->way > TDM_WAY_RESTORER && is_taken(plans, count, plan)) {
		*plan = (struct tdm_site_plan){ .call = call };
	}
	return true;
}

size_t tdm_sites_find(uint8_t *text, size_t size_bytes, bool in_place_only,
	struct tdm_site_plan *plans, size_t room)
{
	const __m128i first = _mm_set1_epi8(0x0f);
	const __m128i second = _mm_set1_epi8(0x05);
	size_t count = 0;
	size_t at = 0;

	if (size_bytes > TARGET_BYTES) {
		return 0; /* no libc is so large */
	}
	if (!in_place_only) {
		note_targets(text, size_bytes);
	}
	for (; at + 17 <= size_bytes && count < room; at += 16) {
		const __m128i a = _mm_loadu_si128((const __m128i *)(text + at));
		const __m128i b = _mm_loadu_si128((const __m128i *)(text + at + 1));
		unsigned int hits = (unsigned int)_mm_movemask_epi8(
			_mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, second)));

		for (; hits && count < room; hits &= hits - 1) {
			count += look_at(text, size_bytes, in_place_only,
				text + at + __builtin_ctz(hits), plans, count, &plans[count]);
		}
	}
	for (; at + 2 <= size_bytes && count < room; at++) {
		if (text[at] == 0x0f && text[at + 1] == 0x05) {
			count += look_at(text, size_bytes, in_place_only, text + at, plans, count,
				&plans[count]);
		}
	}
	return count;
}
