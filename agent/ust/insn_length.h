/* SPDX-License-Identifier: MIT */
/*
 * insn_length.h - where an x86-64 instruction ends, and whether it may be moved.
 */
#ifndef TDM_INSN_LENGTH_H
#define TDM_INSN_LENGTH_H

#include <stddef.h>
#include <stdint.h>

/* One decoded instruction. */
struct tdm_insn {
	uint8_t length_bytes;     /* 0: not known to the decoder */
	uint8_t rip_disp_at;      /* offset of a RIP-relative displacement, 0: there is none */
	uint8_t is_control;       /* jumps, calls, returns, halts: never moved */
	uint8_t is_unconditional; /* control never falls through: ret, jmp, hlt */
};

/**
 * Decodes the length of one instruction in 64-bit mode.
 *
 * Knows the legacy one-byte and 0F maps that compilers emit around system calls; VEX, EVEX, XOP and
 * the 0F38/0F3A maps are not known and give length 0, so that the caller leaves the site alone.
 * Source: Intel SDM volume 2, appendix A.
 *
 * @param code  The bytes. Borrowed; at most @p room are read.
 */
struct tdm_insn tdm_insn_decode(const uint8_t *code, size_t room);

#endif
