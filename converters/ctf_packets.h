/* SPDX-License-Identifier: MIT */
/*
 * ctf_packets.h - the packets of a stream file that somebody else wrote: which there are, what of each can be read, and
 * which words of it must be changed so that a reader reads all of that and nothing else.
 *
 * A file that is whole comes out as it is. Of a damaged one what is between two readable packets is left out, a packet ends
 * behind its last event that makes sense, and its own words (sizes, times, counters) are set right by its neighbours'.
 */
#ifndef TANDEM_CTF_PACKETS_H
#define TANDEM_CTF_PACKETS_H

#include "ctf_events.h"
#include <tandem/log.h>

/* Words of a packet's head that may have to be changed. */
enum tdm_ctf_word {
	TDM_CTF_PACKET_SIZE,
	TDM_CTF_CONTENT_SIZE,
	TDM_CTF_BEGIN,
	TDM_CTF_END,
	TDM_CTF_DISCARDED,
	TDM_CTF_NUMBER,     /* packet_seq_num */
	TDM_CTF_MAGIC_WORD, /* the header's, as the next */
	TDM_CTF_STREAM_ID,
	TDM_CTF_WORD_COUNT
};

struct tdm_ctf_head_word {
	const struct tsdl_type *type; /* NULL: the packet has none such */
	uint64_t at_bits;             /* from its start */
	uint64_t value;               /* as it is to be */
	bool is_changed;
};

struct tdm_ctf_packet {
	uint64_t offset, bytes; /* in the file; bytes: to be copied */
	uint64_t event_count;
	uint64_t first_event_bits;
	uint64_t content_bits;
	uint64_t uuid_at_bits; /* where the header's uuid is wrong; 0: it is not */
	struct tdm_ctf_head_word words[TDM_CTF_WORD_COUNT];
};

/* One trace whose files are looked at. */
struct tdm_ctf_reading {
	const struct tsdl_metadata *metadata;
	struct tdm_ctf_events *events; /* one a stream class */
	uint8_t uuid[16];
	bool has_uuid;
	uint64_t last_value; /* of the clock, that readers' 63 bits of nanoseconds hold */
};

/* What became of one file. */
struct tdm_ctf_packets {
	struct tdm_ctf_packet *of; /* owned; in the file's order */
	size_t count;
	bool is_changed;          /* other than the file: something left out or set right */
	uint64_t empty_packets;   /* left out */
	uint64_t damaged_packets; /* left out, in part or whole, or set right */
	uint64_t lost_bytes;      /* that make no sense: left out */
	uint64_t event_count;
};

/** @p reading is to be released in either case. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_reading_begin(
	const struct tsdl_metadata *metadata, struct tdm_ctf_reading *reading);
void tdm_ctf_reading_end(struct tdm_ctf_reading *reading);

/**
 * Looks at a file. What cannot be read is told on @p log with its offset, the first few times.
 *
 * @param packets  To be released in either case.
 * @retval TDM_ERR_IO, TDM_ERR_NOMEM
 */
enum tdm_status tdm_ctf_packets_find(const struct tdm_ctf_reading *reading, const char *path,
	const struct tdm_log *log, struct tdm_ctf_packets *packets, struct tdm_error *err);
void tdm_ctf_packets_release(struct tdm_ctf_packets *packets);

/** Puts a word where it belongs in the bytes of a packet. */
void tdm_ctf_word_store(uint8_t *packet, const struct tdm_ctf_head_word *word);

#endif
