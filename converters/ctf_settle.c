/* SPDX-License-Identifier: MIT */
/*
 * ctf_settle.c - the packets of a stream file against their neighbours and their own events: what goes, where one ends, which
 * of its words are wrong.
 */
#include "ctf_packets_priv.h"
#include <inttypes.h>
#include <stdlib.h>

/* A value that is out of line with its neighbours on both sides is the wrong one; else it is the later of the two. */
static bool is_outlier(uint64_t before, uint64_t value, bool has_after, uint64_t after)
{
	return value < before || (has_after && value > after && before <= after);
}

static void settle_counters(struct ctf_look *look)
{
	struct tdm_ctf_packets *const packets = look->packets;
	uint64_t before = 0;

	for (size_t i = 0; i < packets->count; i++) {
		struct tdm_ctf_packet *const packet = &packets->of[i];
		const bool has_after = i + 1 < packets->count;
		const uint64_t value = ctf_word_of(packet, TDM_CTF_DISCARDED, before);
		const uint64_t after =
			has_after ? ctf_word_of(&packets->of[i + 1], TDM_CTF_DISCARDED, value)
				  : value;

		if (is_outlier(before, value, has_after, after) &&
			ctf_set_word(packet, TDM_CTF_DISCARDED, before)) {
			CTF_TELL(look,
				"%s at 0x%" PRIx64 ": it says that %" PRIu64
				" events were discarded, the packet before it %" PRIu64
				": set to that",
				look->path, packet->offset, value, before);
			packets->is_changed = true;
			packets->damaged_packets++;
		}
		before = ctf_word_of(packet, TDM_CTF_DISCARDED, before);
	}
}

static void drop(struct ctf_look *look, struct tdm_ctf_packet *packet, const char *why)
{
	CTF_TELL(look, "%s at 0x%" PRIx64 ": %s: %" PRIu64 " bytes are left out", look->path,
		packet->offset, why, packet->bytes);
	look->packets->lost_bytes += packet->bytes;
	look->packets->damaged_packets++;
	look->packets->is_changed = true;
	packet->bytes = 0;
}

/* Packets whose times are out of line go: nothing tells where their events belong. */
static void settle_begins(struct ctf_look *look)
{
	struct tdm_ctf_packets *const packets = look->packets;
	uint64_t before = 0;

	for (size_t i = 0; i < packets->count; i++) {
		struct tdm_ctf_packet *const packet = &packets->of[i];
		const bool has_after = i + 1 < packets->count;
		const uint64_t begin = ctf_word_of(packet, TDM_CTF_BEGIN, before);
		const uint64_t after =
			has_after ? ctf_word_of(&packets->of[i + 1], TDM_CTF_BEGIN, begin) : begin;

		if (begin > look->reading->last_value ||
			is_outlier(before, begin, has_after, after)) {
			drop(look, packet, "its time is out of line with the packets around it");
		} else {
			before = begin;
		}
	}
}

static void compact(struct tdm_ctf_packets *packets)
{
	size_t kept = 0;

	for (size_t i = 0; i < packets->count; i++) {
		if (packets->of[i].bytes) {
			packets->of[kept++] = packets->of[i];
		}
	}
	packets->count = kept;
}

/* ---- events ---- */

/* The last byte of the packet that is not zero, in bits: what follows may be padding. */
static uint64_t used_bits(const uint8_t *bytes, uint64_t from_bits, uint64_t to_bits)
{
	uint64_t at = to_bits / 8;

	while (at > from_bits / 8 && !bytes[at - 1]) {
		at--;
	}
	return at * 8 < from_bits ? from_bits : at * 8;
}

/* Ends a packet behind its last good event. @return False where its words cannot tell that. */
static bool cut(struct tdm_ctf_packet *packet, uint64_t good_bits)
{
	if (ctf_set_word(packet, TDM_CTF_CONTENT_SIZE, good_bits)) {
		return true;
	}
	if (ctf_has_word(packet, TDM_CTF_CONTENT_SIZE) || good_bits % 8) {
		return false;
	}
	packet->bytes = good_bits / 8;
	return ctf_set_word(packet, TDM_CTF_PACKET_SIZE, good_bits) ||
	       !ctf_has_word(packet, TDM_CTF_PACKET_SIZE);
}

static void pass_packet(struct ctf_look *look, struct tdm_ctf_packet *packet, uint64_t limit)
{
	struct tdm_ctf_packets *const packets = look->packets;
	const bool is_resized = packet->words[TDM_CTF_PACKET_SIZE].is_changed ||
				packet->content_bits != ctf_word_of(packet, TDM_CTF_CONTENT_SIZE,
								packet->content_bits);
	const uint64_t begin = ctf_word_of(packet, TDM_CTF_BEGIN, 0);
	uint64_t end = ctf_word_of(packet, TDM_CTF_END, UINT64_MAX);
	uint64_t until = packet->content_bits;
	const struct tdm_ctf_events *events = NULL;
	struct tdm_ctf_packet head;
	struct tdm_ctf_passed passed;
	uint64_t lost_bits;

	if (!ctf_look_load(look, packet->offset, packet->bytes)) {
		drop(look, packet, "it cannot be read");
		return;
	}
	if (is_resized) {
		until = used_bits(look->bytes, packet->first_event_bits, until);
	}
	/* Once more over the head: events may refer to its values. */
	(void)ctf_look_head(look, &head, true, &events);
	look->walk.end_bits = packet->content_bits;
	look->walk.clock = begin;
	tdm_ctf_events_pass(look->events, &look->walk, until, begin, end, limit, &passed);
	packet->event_count = passed.count;
	lost_bits = until > passed.good_bits ? until - passed.good_bits : 0;
	if (passed.fault || is_resized) {
		if (passed.fault) {
			CTF_TELL(look,
				"%s at 0x%" PRIx64 ": %s: the last %" PRIu64
				" bytes of the packet at 0x%" PRIx64
				" are left out, its first %" PRIu64 " events stay",
				look->path, packet->offset + passed.good_bits / 8, passed.fault,
				(lost_bits + 7) / 8, packet->offset, passed.count);
			packets->lost_bytes += (lost_bits + 7) / 8;
		} else {
			CTF_TELL(look,
				"%s at 0x%" PRIx64 ": the packet's sizes are wrong: set right",
				look->path, packet->offset);
		}
		packets->damaged_packets++;
		packets->is_changed = true;
		if (passed.count && !cut(packet, passed.good_bits)) {
			drop(look, packet, "it does not tell where its events end");
			return;
		}
		if (!passed.count) {
			packet->bytes = 0;
			return;
		}
	}
	if (ctf_has_word(packet, TDM_CTF_END) && (end < passed.last || end > limit)) {
		/* Some tracers write an event behind the end that they have told: no damage, but told. */
		CTF_TELL(look, "%s at 0x%" PRIx64 ": its end is %s: set right", look->path,
			packet->offset,
			end > limit ? "behind the next packet's beginning"
				    : "before its last event");
		(void)ctf_set_word(packet, TDM_CTF_END, passed.last);
		packets->is_changed |= packet->words[TDM_CTF_END].is_changed;
	}
}

/* Empty packets go; one at the file's end that tells of a loss stays, as nobody stops reading at that. */
static void drop_empty(struct ctf_look *look)
{
	struct tdm_ctf_packets *const packets = look->packets;

	for (size_t i = 0; i < packets->count; i++) {
		struct tdm_ctf_packet *const packet = &packets->of[i];
		const uint64_t before =
			i ? ctf_word_of(&packets->of[i - 1], TDM_CTF_DISCARDED, 0) : 0;
		const bool tells_loss = i + 1 == packets->count &&
					ctf_word_of(packet, TDM_CTF_DISCARDED, 0) > before;

		if (packet->bytes && !packet->event_count && !tells_loss) {
			packet->bytes = 0;
			packets->empty_packets++;
			packets->is_changed = true;
		}
	}
}

/* Numbers without the gaps of packets that were empty; those of lost ones stay, so that readers tell of them. */
static void renumber(struct tdm_ctf_packets *packets, uint64_t *numbers)
{
	uint64_t number = 0;
	size_t last = SIZE_MAX;
	uint64_t removed = 0;

	for (size_t i = 0; i < packets->count; i++) {
		struct tdm_ctf_packet *const packet = &packets->of[i];
		const uint64_t own = ctf_word_of(packet, TDM_CTF_NUMBER, 0);

		numbers[i] = own;
		if (!packet->bytes) {
			removed++;
			continue;
		}
		if (last == SIZE_MAX) {
			number = own;
		} else {
			/* A gap of more than any recording has is a wrong number. */
			const uint64_t gap = own - numbers[last];

			number += gap > removed && gap < (1u << 30) ? gap - removed : 1;
		}
		last = i;
		removed = 0;
		if (ctf_has_word(packet, TDM_CTF_NUMBER) && number != own) {
			(void)ctf_set_word(packet, TDM_CTF_NUMBER, number);
			packets->is_changed |= packet->words[TDM_CTF_NUMBER].is_changed;
		}
	}
}

static enum tdm_status pass_events(struct ctf_look *look)
{
	struct tdm_ctf_packets *const packets = look->packets;
	uint64_t *const numbers = calloc(packets->count + 1, sizeof(*numbers));

	if (!numbers) {
		return TDM_ERR_NOMEM;
	}
	for (size_t i = 0; i < packets->count; i++) {
		const uint64_t limit = i + 1 < packets->count
					       ? ctf_word_of(&packets->of[i + 1], TDM_CTF_BEGIN,
							 look->reading->last_value)
					       : look->reading->last_value;

		pass_packet(look, &packets->of[i], limit);
		packets->event_count += packets->of[i].event_count;
	}
	drop_empty(look);
	renumber(packets, numbers);
	compact(packets);
	free(numbers);
	return TDM_OK;
}

enum tdm_status ctf_settle(struct ctf_look *look)
{
	settle_begins(look);
	compact(look->packets);
	settle_counters(look);
	return pass_events(look);
}
