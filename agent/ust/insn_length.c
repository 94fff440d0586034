/* SPDX-License-Identifier: MIT */
#include "insn_length.h"

enum shape {
	BAD = 0,
	PLAIN = 1,    /* opcode only */
	MODRM = 2,    /* + ModRM */
	IMM8 = 4,     /* + 8-bit immediate */
	IMMZ = 8,     /* + 32-bit immediate, 16 with an operand size prefix */
	CONTROL = 16, /* changes the instruction pointer */
	LEAVES = 32,  /* and never falls through */
	GROUP3 = 64,  /* F6/F7: an immediate only for /0 and /1 */
	GROUP5 = 128  /* FF: /2 to /5 are calls and jumps */
};

#define X4(v) v, v, v, v
#define X8(v) X4(v), X4(v)
/* The eight rows of arithmetic: Eb,Gb Ev,Gv Gb,Eb Gv,Ev AL,Ib eAX,Iz and two that 64-bit mode lost. */
#define ARITH X4(MODRM), PLAIN | IMM8, PLAIN | IMMZ, BAD, BAD

static const uint8_t one_byte[256] = {
	/* 00 */ ARITH,
	ARITH,
	ARITH,
	ARITH,
	ARITH,
	ARITH,
	ARITH,
	ARITH,
	/* 40: REX is taken before */ X8(BAD),
	X8(BAD),
	/* 50: push, pop */ X8(PLAIN),
	X8(PLAIN),
	/* 60 */ BAD,
	BAD,
	BAD,
	MODRM,
	BAD,
	BAD,
	BAD,
	BAD,
	/* 68 */ PLAIN | IMMZ,
	MODRM | IMMZ,
	PLAIN | IMM8,
	MODRM | IMM8,
	BAD,
	BAD,
	BAD,
	BAD,
	/* 70: jcc rel8 */ X8(PLAIN | IMM8 | CONTROL),
	X8(PLAIN | IMM8 | CONTROL),
	/* 80 */ MODRM | IMM8,
	MODRM | IMMZ,
	BAD,
	MODRM | IMM8,
	X4(MODRM),
	/* 88 */ X4(MODRM),
	BAD,
	MODRM,
	BAD,
	MODRM,
	/* 90: nop, xchg, cdqe, cqo */ X8(PLAIN),
	PLAIN,
	PLAIN,
	BAD,
	BAD,
	BAD,
	BAD,
	BAD,
	BAD,
	/* A0 */ BAD,
	BAD,
	BAD,
	BAD,
	X4(PLAIN),
	/* A8 */ PLAIN | IMM8,
	PLAIN | IMMZ,
	PLAIN,
	PLAIN,
	X4(PLAIN),
	/* B0 */ X8(PLAIN | IMM8),
	/* B8: 64-bit immediates are seen by REX.W */ X8(PLAIN | IMMZ),
	/* C0 */ MODRM | IMM8,
	MODRM | IMM8,
	BAD,
	PLAIN | CONTROL | LEAVES,
	BAD,
	BAD,
	MODRM | IMM8,
	MODRM | IMMZ,
	/* C8 */ BAD,
	PLAIN,
	BAD,
	BAD,
	PLAIN | CONTROL,
	BAD,
	BAD,
	BAD,
	/* D0 */ X4(MODRM),
	BAD,
	BAD,
	BAD,
	BAD,
	/* D8: x87 */ X8(BAD),
	/* E0 */ X4(PLAIN | IMM8 | CONTROL),
	BAD,
	BAD,
	BAD,
	BAD,
	/* E8 */ PLAIN | IMMZ | CONTROL,
	PLAIN | IMMZ | CONTROL | LEAVES,
	BAD,
	PLAIN | IMM8 | CONTROL | LEAVES,
	BAD,
	BAD,
	BAD,
	BAD,
	/* F0 */ BAD,
	BAD,
	BAD,
	BAD,
	PLAIN | CONTROL | LEAVES,
	BAD,
	MODRM | GROUP3,
	MODRM | GROUP3,
	/* F8 */ PLAIN,
	PLAIN,
	BAD,
	BAD,
	PLAIN,
	PLAIN,
	MODRM,
	MODRM | GROUP5,
};

static uint8_t two_byte(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f) {
		return PLAIN | IMMZ | CONTROL; /* jcc rel32 */
	}
	if (op >= 0x40 && op <= 0x4f) {
		return MODRM; /* cmovcc */
	}
	if (op >= 0x90 && op <= 0x9f) {
		return MODRM; /* setcc */
	}
	switch (op) {
	case 0x05: /* syscall */
		return PLAIN | CONTROL;
	case 0x0b: /* ud2 */
		return PLAIN | CONTROL | LEAVES;
	case 0x10:
	case 0x11:
	case 0x16:
	case 0x18:
	case 0x1e: /* endbr64 is one of its forms */
	case 0x1f: /* nop */
	case 0x28:
	case 0x29:
	case 0x57:
	case 0x6c:
	case 0x6e:
	case 0x6f:
	case 0x7e:
	case 0x7f:
	case 0xa3:
	case 0xab:
	case 0xaf:
	case 0xb0:
	case 0xb1:
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf:
	case 0xc0:
	case 0xc1:
	case 0xd6:
	case 0xef:
		return MODRM;
	case 0x70:
	case 0xba:
	case 0xc6:
		return MODRM | IMM8;
	case 0xa2: /* cpuid */
		return PLAIN;
	default:
		return BAD;
	}
}

struct tdm_insn tdm_insn_decode(const uint8_t *code, size_t room)
{
	const struct tdm_insn unknown = { 0 };
	struct tdm_insn insn = { 0 };
	size_t at = 0;
	int narrow = 0;
	int wide = 0;

	/* Prefixes: operand size, lock, repeat, segments (fs, gs, and the cs that pads nops). */
	while (at < room &&
		(code[at] == 0x66 || code[at] == 0xf0 || code[at] == 0xf2 || code[at] == 0xf3 ||
			code[at] == 0x2e || code[at] == 0x64 || code[at] == 0x65)) {
		narrow |= code[at] == 0x66;
		at++;
	}
	if (at < room && (code[at] & 0xf0) == 0x40) {
		wide = code[at] & 8;
		at++;
	}
	if (at >= room) {
		return unknown;
	}

	uint8_t op = code[at++];
	uint8_t shape;
	const int is_group11 = (op & 0xfe) == 0xc6;

	if (op == 0x0f) {
		if (at >= room) {
			return unknown;
		}
		op = code[at++];
		shape = two_byte(op);
	} else {
		shape = one_byte[op];
		if (wide && op >= 0xb8 && op <= 0xbf) {
			at += 4; /* mov r64, imm64: four more than IMMZ adds */
		}
	}
	if (shape == BAD) {
		return unknown;
	}
	if (shape & (MODRM | GROUP3 | GROUP5)) {
		if (at >= room) {
			return unknown;
		}

		const uint8_t modrm = code[at++];
		const unsigned int mod = modrm >> 6;
		const unsigned int rm = modrm & 7;
		const unsigned int reg = (modrm >> 3) & 7;

		if (is_group11 && reg != 0) {
			return unknown; /* xabort and xbegin, which jump */
		}
		if (mod != 3) {
			if (rm == 4) {
				if (at >= room) {
					return unknown;
				}
				if ((code[at++] & 7) == 5 && mod == 0) {
					at += 4;
				}
			} else if (rm == 5 && mod == 0) {
				insn.rip_disp_at = (uint8_t)at;
				at += 4;
			}
			at += mod == 1 ? 1 : mod == 2 ? 4 : 0;
		}
		if ((shape & GROUP3) && reg < 2) {
			at += op == 0xf6 ? 1 : narrow ? 2 : 4;
		}
		if (op == 0xff && (shape & GROUP5) && reg >= 2 && reg <= 5) {
			shape |= CONTROL;
			if (reg >= 4) {
				shape |= LEAVES;
			}
		}
	}
	if (shape & IMM8) {
		at += 1;
	}
	if (shape & IMMZ) {
		at += narrow && !(shape & CONTROL) ? 2 : 4;
	}
	if (at > room || at > 15) {
		return unknown;
	}
	insn.length_bytes = (uint8_t)at;
	insn.is_control = (shape & CONTROL) != 0;
	insn.is_unconditional = (shape & LEAVES) != 0;
	return insn;
}
