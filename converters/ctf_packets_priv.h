/* SPDX-License-Identifier: MIT */
/*
 * ctf_packets_priv.h - a stream file while its packets are found and settled.
 */
#ifndef TANDEM_CTF_PACKETS_PRIV_H
#define TANDEM_CTF_PACKETS_PRIV_H

#include "ctf_packets.h"
#include <tandem/input_file.h>

#define CTF_TOLD_MAX 5u /* lines for one file */

/* One file while it is looked at. */
struct ctf_look {
	const struct tdm_ctf_reading *reading;
	const char *path;
	struct tdm_input_file *file;
	const struct tdm_log *log;
	uint8_t *bytes;
	size_t room;
	size_t got; /* of the packet at hand */
	unsigned int told;
	const struct tdm_ctf_events *events; /* of the file's first packet: all are of one class */
	struct ctf_walk walk;
	struct tdm_ctf_packets *packets;
	size_t packet_room;
};

#define CTF_TELL(look, ...)                                    \
	do {                                                   \
		if ((look)->told++ < CTF_TOLD_MAX) {           \
			TDM_WARNING((look)->log, __VA_ARGS__); \
		}                                              \
	} while (0)

/* False where the packet has no such word, or none that is wide enough. */
static inline bool ctf_set_word(
	struct tdm_ctf_packet *packet, enum tdm_ctf_word which, uint64_t value)
{
	struct tdm_ctf_head_word *const word = &packet->words[which];

	if (!word->type || (word->type->size_bits < 64 && value >> word->type->size_bits)) {
		return false;
	}
	word->is_changed |= word->value != value;
	word->value = value;
	return true;
}

static inline bool ctf_has_word(const struct tdm_ctf_packet *packet, enum tdm_ctf_word which)
{
	return packet->words[which].type != NULL;
}

static inline uint64_t ctf_word_of(
	const struct tdm_ctf_packet *packet, enum tdm_ctf_word which, uint64_t otherwise)
{
	return ctf_has_word(packet, which) ? packet->words[which].value : otherwise;
}

/* Reads from the file. @return Whether all @p wanted bytes, or all up to its end, are there. */
bool ctf_look_load(struct ctf_look *look, uint64_t offset, uint64_t wanted);

/*
 * Walks over the head of a packet whose bytes are loaded: look->walk then stands at the first event. Sizes are not looked
 * at yet. @return NULL, or what is wrong with it.
 */
const char *ctf_look_head(struct ctf_look *look, struct tdm_ctf_packet *packet, bool is_due,
	const struct tdm_ctf_events **events);

/* ctf_settle.c: what the packets' neighbours and their events say of them. */
enum tdm_status ctf_settle(struct ctf_look *look);

#endif
