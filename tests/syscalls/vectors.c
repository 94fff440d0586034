/* SPDX-License-Identifier: MIT */
/*
 * vectors.c - fills the vector registers as wide as the CPU has them (ymm; zmm and the masks) around patched calls and looks
 * at them afterwards, in each way that the trampoline has of keeping them. Upper parts that are zero must stay in the state
 * in which the CPU knows it, where the CPU tells.
 */
#include <cpuid.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum way {
	SSE,
	AVX,
	AVX512
};

struct vectors {
	uint8_t wide[32][64];
	uint64_t masks[8];
};

/* rdi: before, rsi: after, rdx: six words, the registers for syscall(). */
#define AROUND(name, load, store)                                                              \
	void name(const struct vectors *before, struct vectors *after, const uint64_t *words); \
	__asm__(".text\n" #name ":\n"                                                          \
		"	push %rbx; push %rbp; push %r12\n"                                           \
		"	mov %rsi, %rbx\n" load "	mov %rdx, %r12\n"                             \
		"	mov 0(%r12), %rdi; mov 8(%r12), %rsi; mov 16(%r12), %rdx\n"                  \
		"	mov 24(%r12), %rcx; mov 32(%r12), %r8; mov 40(%r12), %r9\n"                  \
		"	call syscall@plt\n" store "	pop %r12; pop %rbp; pop %rbx\n"            \
		"	ret\n")

#define EACH_16 ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
#define EACH_32 \
	".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n"
#define EACH_8 ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n"
#define END    ".endr\n"

AROUND(around_xmm, EACH_16 "movups (\\n*64)(%rdi), %xmm\\n\n" END,
	EACH_16 "movups %xmm\\n, (\\n*64)(%rbx)\n" END);
AROUND(around_ymm, EACH_16 "vmovups (\\n*64)(%rdi), %ymm\\n\n" END,
	EACH_16 "vmovups %ymm\\n, (\\n*64)(%rbx)\n" END "vzeroupper\n");
AROUND(around_zmm,
	EACH_32 "vmovdqu64 (\\n*64)(%rdi), %zmm\\n\n" END EACH_8
		"kmovq (2048+\\n*8)(%rdi), %k\\n\n" END,
	EACH_32 "vmovdqu64 %zmm\\n, (\\n*64)(%rbx)\n" END EACH_8
		"kmovq %k\\n, (2048+\\n*8)(%rbx)\n" END "vzeroupper\n");

static uint32_t extended_control(uint32_t index)
{
	uint32_t low;
	uint32_t high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(index));
	return low;
}

static enum way widest(void)
{
	uint32_t a, b, c, d;

	__cpuid(1, a, b, c, d);
	if (!(c & bit_OSXSAVE) || !(c & bit_AVX) || (extended_control(0) & 6) != 6) {
		return SSE;
	}
	if ((extended_control(0) & 0xe0) == 0xe0 && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
		(b & bit_AVX512F) && (b & bit_AVX512BW)) {
		return AVX512;
	}
	return AVX;
}

static void fill(struct vectors *vectors, enum way way, uint8_t seed)
{
	const size_t bytes = way == SSE ? 16 : way == AVX ? 32 : 64;

	memset(vectors, 0, sizeof(*vectors));
	for (size_t i = 0; i < (way == AVX512 ? 32 : 16); i++) {
		for (size_t k = 0; k < bytes; k++) {
			vectors->wide[i][k] = (uint8_t)(seed + i * 67 + k * 3 + 1);
		}
	}
	for (size_t i = 0; way == AVX512 && i < 8; i++) {
		vectors->masks[i] = 0x0123456789abcdefull * (i + seed + 1);
	}
}

static int check(enum way registers, const char *what, const uint64_t *words)
{
	for (int round = 0; round < 200; round++) {
		struct vectors before;
		struct vectors after;

		fill(&before, registers, (uint8_t)round);
		memset(&after, 0, sizeof(after));
		(registers == SSE          ? around_xmm
			: registers == AVX ? around_ymm
					   : around_zmm)(&before, &after, words);
		if (memcmp(&before, &after, sizeof(before)) != 0) {
			for (size_t i = 0; i < 32; i++) {
				for (size_t k = 0; k < 64; k++) {
					if (before.wide[i][k] != after.wide[i][k]) {
						fprintf(stderr,
							"%s: register %zu, byte %zu: %02x became %02x\n",
							what, i, k, before.wide[i][k],
							after.wide[i][k]);
						return 1;
					}
				}
			}
			fprintf(stderr, "%s: a mask register changed\n", what);
			return 1;
		}
	}
	return 0;
}

/* A program for SSE alone: are the upper halves still known to be zero? */
static int stays_clean(const char *what, const uint64_t *words)
{
	uint32_t a, b, c, d;
	struct vectors before;
	struct vectors after;

	if (!__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a & 4)) {
		return 0;
	}
	__asm__ volatile("vzeroupper" ::: "memory");
	if (extended_control(1) & 4) {
		return 0; /* this CPU does not tell */
	}
	fill(&before, SSE, 1);
	around_xmm(&before, &after, words);
	if (extended_control(1) & 4) {
		fprintf(stderr, "%s: upper halves that were zero are no longer known to be\n",
			what);
		return 1;
	}
	return 0;
}

int main(void)
{
	static const char path[] = "/a/path/that/is/longer/than/any/vector/register/so/that/all/"
				   "string/functions/of/the/C/library/use/their/widest/loop/x";
	uint32_t *const ways = dlsym(RTLD_DEFAULT, "tdm_patch_vectors");
	const enum way most = widest();

	const struct {
		const char *what;
		uint64_t words[6];
	} calls[] = {
		{ "getuid", { SYS_getuid } },
		{ "access", { SYS_access, (uint64_t)(uintptr_t)path, F_OK } },
		{ "a call of the generic kind", { SYS_sched_get_priority_max, 1, 2, 3, 4, 5 } },
	};

	int failures = 0;

	if (!ways) {
		fprintf(stderr, "the provider is not loaded\n");
		return 2;
	}
	if (*ways != most) {
		fprintf(stderr, "the trampoline keeps way %u, this CPU has %u\n", *ways, most);
		failures++;
	}
	for (enum way way = SSE; way <= most; way++) {
		*ways = way;
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			char what[64];

			snprintf(what, sizeof(what), "%s, way %u", calls[i].what, way);
			failures += check(way, what, calls[i].words);
			failures += way >= AVX ? stays_clean(what, calls[i].words) : 0;
		}
	}
	if (failures) {
		return 1;
	}
	printf("vector registers kept: %s\n", most == SSE   ? "xmm"
					      : most == AVX ? "xmm, ymm"
							    : "xmm, ymm, zmm and masks");
	return 0;
}
