/* SPDX-License-Identifier: MIT */
/*
 * copy_plan.h - how the bytes of one event class become the payload of a CTF event: few runs of bytes, made once.
 *
 * CTF fields are written without padding and in the byte order of the input, so neighbours in the record are copied
 * as one run. Text becomes a CTF string, an array of a length that the record decides a CTF sequence.
 */
#ifndef TANDEM_COPY_PLAN_H
#define TANDEM_COPY_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tandem/buffer.h>
#include <tandem/cursor.h>
#include <tandem/names.h>
#include <tandem/trace.h>

enum tdm_copy_kind {
	TDM_COPY_4,     /* four bytes at from_bytes */
	TDM_COPY_8,     /* eight */
	TDM_COPY_WORDS, /* size_bytes, a multiple of eight, few */
	TDM_COPY_RUN,   /* size_bytes */
	TDM_COPY_PRIO4, /* an integer of four bytes, 100 less */
	TDM_COPY_COMM,  /* text in a char[16] */
	/* The rest goes through tdm_copy_step(). */
	TDM_COPY_PRIO,   /* an integer of any size, 100 less */
	TDM_COPY_TEXT,   /* text anywhere */
	TDM_COPY_LIST,   /* a sequence: its length, then its elements */
	TDM_COPY_RWBS,   /* text of block flags -> u32 */
	TDM_COPY_PRINTK, /* address of a format text -> the text */
	TDM_COPY_WIDE, /* 16-byte integers of a big-endian machine: halves swapped, the low one goes first */
};

struct tdm_copy_step {
	enum tdm_copy_kind kind;
	uint32_t from_bytes, size_bytes;
	const struct tdm_field *field; /* of TEXT, LIST, RWBS */
};

struct tdm_copy_plan {
	const struct tdm_shown_class *shown;
	uint32_t least_bytes; /* of a record: what the steps read without asking */
	uint32_t most_bytes;  /* that all steps but TEXT and LIST write */
	uint32_t step_count;
	struct tdm_copy_step *steps; /* owned */
};

/* What a run of a plan needs beside the record. */
struct tdm_copy_state {
	bool big_endian;
	struct tdm_trace *trace;   /* for PRINTK; borrowed */
	uint64_t bad_locators;     /* fields that lay outside their record: written empty */
	struct tdm_buffer scratch; /* for text that is no plain ASCII; owned, to be released */
};

/** Makes the plan of a class. @p plan is to be released. @retval TDM_ERR_NOMEM  Nothing to release. */
enum tdm_status tdm_copy_plan_make(
	const struct tdm_shown_class *shown, bool big_endian, struct tdm_copy_plan *plan);
void tdm_copy_plan_release(struct tdm_copy_plan *plan);

/** Whether a field becomes a sequence: an array of a length that the record decides. */
bool tdm_copy_is_list(const struct tdm_shown_field *shown);

/** Bytes of the length before a sequence: 2 behind a locator, which has no more, 4 for trailing arrays. */
unsigned int tdm_copy_length_bytes(const struct tdm_field *field);

/** One step of the slow kinds. @return The end of what it wrote, or NULL where @p limit is in the way. */
uint8_t *tdm_copy_step(const struct tdm_copy_step *step, struct tdm_copy_state *state,
	const uint8_t *payload, uint32_t payload_bytes, uint8_t *out, const uint8_t *limit);

/** Writes text and its NUL: valid UTF-8 as it is, other bytes as \xNN. NULL where @p limit is in the way. */
uint8_t *tdm_copy_text(struct tdm_copy_state *state, const uint8_t *text, size_t text_bytes,
	uint8_t *out, const uint8_t *limit);

/* Text of a char[16], all of which may be read; 65 bytes may be written. */
uint8_t *tdm_copy_comm_slowly(
	struct tdm_copy_state *state, const uint8_t *text, uint8_t *out, const uint8_t *limit);

#ifdef __SSE2__
#include <emmintrin.h>

static inline uint8_t *tdm_copy_comm(
	struct tdm_copy_state *state, const uint8_t *text, uint8_t *out, const uint8_t *limit)
{
	const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
	const unsigned int zeros =
		(unsigned int)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
	const unsigned int high = (unsigned int)_mm_movemask_epi8(bytes);
	const unsigned int length = zeros ? (unsigned int)__builtin_ctz(zeros) : 16u;

	if (__builtin_expect(high & ((1u << length) - 1u), 0)) {
		return tdm_copy_comm_slowly(state, text, out, limit);
	}
	_mm_storeu_si128((__m128i *)(void *)out, bytes);
	out[length] = '\0';
	return out + length + 1;
}
#else
static inline uint8_t *tdm_copy_comm(
	struct tdm_copy_state *state, const uint8_t *text, uint8_t *out, const uint8_t *limit)
{
	return tdm_copy_comm_slowly(state, text, out, limit);
}
#endif

/**
 * Writes the payload of one event.
 *
 * @param payload  A record of at least plan->least_bytes.
 * @param out      With room for plan->most_bytes + 64 at least.
 * @param limit    Nothing is written from here on.
 * @return The end of what was written, or NULL where it would pass @p limit.
 */
static inline uint8_t *tdm_copy_plan_run(const struct tdm_copy_plan *plan,
	struct tdm_copy_state *state, const uint8_t *payload, uint32_t payload_bytes, uint8_t *out,
	const uint8_t *limit)
{
	const struct tdm_copy_step *step = plan->steps;
	const struct tdm_copy_step *const end = step + plan->step_count;

	for (; step != end; step++) {
		const uint8_t *const from = payload + step->from_bytes;

		switch (step->kind) {
		case TDM_COPY_4:
			memcpy(out, from, 4);
			out += 4;
			break;
		case TDM_COPY_8:
			memcpy(out, from, 8);
			out += 8;
			break;
		case TDM_COPY_WORDS:
			/* Arguments of system calls: a call of memcpy() would take longer. */
			for (uint32_t at = 0; at < step->size_bytes; at += 8) {
				memcpy(out + at, from + at, 8);
			}
			out += step->size_bytes;
			break;
		case TDM_COPY_RUN:
			memcpy(out, from, step->size_bytes);
			out += step->size_bytes;
			break;
		case TDM_COPY_PRIO4: {
			uint32_t prio = tdm_load_u32(from, state->big_endian) - 100u;

			prio = state->big_endian ? __builtin_bswap32(prio) : prio;
			memcpy(out, &prio, 4);
			out += 4;
			break;
		}
		case TDM_COPY_COMM:
			if (__builtin_expect((size_t)(limit - out) < 65, 0)) {
				return NULL;
			}
			out = tdm_copy_comm(state, from, out, limit);
			break;
		case TDM_COPY_PRIO:
		case TDM_COPY_TEXT:
		case TDM_COPY_LIST:
		case TDM_COPY_RWBS:
		case TDM_COPY_WIDE:
		case TDM_COPY_PRINTK:
			out = tdm_copy_step(step, state, payload, payload_bytes, out, limit);
			if (!out) {
				return NULL;
			}
			break;
		}
	}
	return out;
}

#endif
