/* SPDX-License-Identifier: MIT */
/*
 * ctf_walk.h - the bits of a packet, walked type by type, with the values that are lengths, selectors or wanted kept.
 */
#ifndef TANDEM_CTF_WALK_H
#define TANDEM_CTF_WALK_H

#include "tsdl.h"

enum {
	CTF_WALK_VALUES_MAX = 256
};

struct ctf_walk_value {
	const char *name; /* of the member, as the metadata has it */
	uint64_t value;   /* sign-extended where the type is signed */
	const struct tsdl_type *type;
};

/* A place in a packet. */
struct ctf_walk {
	const uint8_t *bytes; /* of the packet; borrowed */
	uint64_t at_bits, end_bits;
	uint64_t clock; /* the last time stamp, wrapped stamps unfolded */
	struct ctf_walk_value values[CTF_WALK_VALUES_MAX];
	uint32_t value_count;
	uint32_t depth;
	uint64_t
		steps; /* elements walked since the caller set it to 0: bounds hostile arrays of nothing */
	const char *fault; /* why the last call failed */
};

/** Walks over one value of a type. @return False with walk->fault where it passes the end or makes no sense. */
bool ctf_walk_over(struct ctf_walk *walk, const struct tsdl_type *type);

/** The same for one member of a structure: its value is kept where it is a length, a selector or wanted. */
bool ctf_walk_field(struct ctf_walk *walk, const struct tsdl_field *field);

/** Takes a time stamp of some bits: fewer than 64 count on from the last one. */
void ctf_walk_clock(struct ctf_walk *walk, uint64_t value, uint32_t size_bits);

/** The newest value kept under a name, with or without an underscore in front; false where there is none. */
bool ctf_walk_find(const struct ctf_walk *walk, const char *name, uint64_t *value);

#endif
