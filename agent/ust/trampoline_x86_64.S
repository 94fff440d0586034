/* SPDX-License-Identifier: MIT */
/*
 * trampoline_x86_64.S - what a patched system call site jumps to.
 *
 * At a site the arguments are in rdi rsi rdx r10 r8 r9 and the number in rax; the kernel clobbers
 * rax, rcx and r11 only, and compilers rely on it. A stub arrives here with the address of its
 * struct tdm_site in rcx, so rcx and r11 are free and everything else, the red zone and the flags
 * included, is the program's.
 *
 * All of it lies between tdm_patch_text_start and tdm_patch_text_end: the range from which Syscall
 * User Dispatch lets calls pass.
 */
/* enum tdm_patch_vectors */
#define TDM_VECTORS_AVX	1

#define SITE_BACK	0
#define SITE_BARE	8
#define SITE_BARE_POST	16

/* struct tdm_frame */
#define F_DI	0
#define F_SI	8
#define F_DX	16
#define F_10	24
#define F_8	32
#define F_9	40
#define F_NR	48
#define F_RET	56
#define F_SITE	64
#define F_BACK	72
#define F_SP	80
#define F_BP	88
#define F_FLAGS	96
#define F_SIZE	160
#define RED_ZONE 128
/* From rbp to the program's stack pointer. */
#define ABOVE	(F_SIZE + RED_ZONE)

	.text
	.globl tdm_patch_text_start, tdm_patch_text_end
	.hidden tdm_patch_text_start, tdm_patch_text_end
	.hidden tdm_patch_target
	/* Set once, before any hook. */
	.globl tdm_patch_vectors
tdm_patch_text_start:

/* Where tdm_patch_target leads while no hook is set. */
	.globl tdm_patch_bare
	.hidden tdm_patch_bare
	.type tdm_patch_bare, @function
tdm_patch_bare:
	jmp *SITE_BARE(%rcx)
	.size tdm_patch_bare, .-tdm_patch_bare

	.globl tdm_patch_enter
	.type tdm_patch_enter, @function
	.p2align 4
tdm_patch_enter:
	jmp *tdm_patch_target(%rip)
	.size tdm_patch_enter, .-tdm_patch_enter

/*
 * Builds the frame. Unwinders see the site as the caller: its stack pointer is the frame's end, its
 * address is in the frame.
 */
.macro BUILD_FRAME
	mov	%rsp, %r11
	.cfi_def_cfa r11, 0
	lea	-ABOVE(%rsp), %rsp
	mov	%rbp, F_BP(%rsp)
	mov	%rsp, %rbp
	.cfi_def_cfa rbp, ABOVE
	.cfi_offset rbp, F_BP - ABOVE
	mov	%rdi, F_DI(%rbp)
	mov	%rsi, F_SI(%rbp)
	mov	%rdx, F_DX(%rbp)
	mov	%r10, F_10(%rbp)
	mov	%r8, F_8(%rbp)
	mov	%r9, F_9(%rbp)
	mov	%rcx, F_SITE(%rbp)
	mov	%r11, F_SP(%rbp)
	mov	SITE_BACK(%rcx), %rcx
	mov	%rcx, F_BACK(%rbp)
	.cfi_offset rip, F_BACK - ABOVE
	mov	%rax, %rcx
	lahf
	seto	%al
	mov	%rax, F_FLAGS(%rbp)
	mov	%rcx, %rax
.endm

.macro RESTORE_FLAGS
	mov	F_FLAGS(%rbp), %rax
	add	$127, %al
	sahf
.endm

.macro LOAD_ARGS
	mov	F_DI(%rbp), %rdi
	mov	F_SI(%rbp), %rsi
	mov	F_DX(%rbp), %rdx
	mov	F_10(%rbp), %r10
	mov	F_8(%rbp), %r8
	mov	F_9(%rbp), %r9
.endm

#define ALL_16 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define HIGH_16 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
#define MASKS 0, 1, 2, 3, 4, 5, 6, 7

/*
 * The vector registers of the program, as wide as the CPU has them: the hooks run code for SSE, but the
 * C library's string functions use all there is. xsavec and xrstor would do it too, in 130 ns a pair.
 * Upper parts that are all zero are left in the state in which the CPU knows it: a program for SSE would
 * run slower after a load of the whole register. (16 to 31 have no such state.)
 */
.macro SAVE_VECTORS
	and	$-64, %rsp
	cmpl	$TDM_VECTORS_AVX, .Lvectors(%rip)
	jb	.Lsave_sse\@
	ja	.Lsave_avx512\@
	sub	$(16 * 32 + 64), %rsp
	.irp n, ALL_16
	vmovaps	%ymm\n, (\n * 32)(%rsp)
	.endr
	.irp n, 2, 4, 6, 8, 10, 12, 14
	vorps	%ymm\n, %ymm0, %ymm0
	.endr
	.irp n, 3, 5, 7, 9, 11, 13, 15
	vorps	%ymm\n, %ymm1, %ymm1
	.endr
	vorps	%ymm1, %ymm0, %ymm0
	vmovaps	%ymm0, (16 * 32)(%rsp)
	vzeroupper
	jmp	.Lsaved\@
.Lsave_avx512\@:
	sub	$(32 * 64 + 64 + 64), %rsp
	.irp n, ALL_16
	vmovdqa64 %zmm\n, (\n * 64)(%rsp)
	.endr
	.irp n, HIGH_16
	vmovdqa64 %zmm\n, (\n * 64)(%rsp)
	.endr
	.irp n, MASKS
	kmovq	%k\n, (32 * 64 + 64 + \n * 8)(%rsp)
	.endr
	.irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vporq	%zmm\n, %zmm0, %zmm0
	.endr
	vmovdqa64 %zmm0, (32 * 64)(%rsp)
	vzeroupper
	jmp	.Lsaved\@
.Lsave_sse\@:
	sub	$256, %rsp
	.irp n, ALL_16
	movaps	%xmm\n, (\n * 16)(%rsp)
	.endr
.Lsaved\@:
.endm

.macro LOAD_VECTORS
	cmpl	$TDM_VECTORS_AVX, .Lvectors(%rip)
	jb	.Lload_sse\@
	ja	.Lload_avx512\@
	mov	(16 * 32 + 16)(%rsp), %rax
	or	(16 * 32 + 24)(%rsp), %rax
	jnz	.Lload_avx\@
	vzeroupper
	.irp n, ALL_16
	movaps	(\n * 32)(%rsp), %xmm\n
	.endr
	jmp	.Lloaded\@
.Lload_avx\@:
	.irp n, ALL_16
	vmovaps	(\n * 32)(%rsp), %ymm\n
	.endr
	jmp	.Lloaded\@
.Lload_avx512\@:
	.irp n, HIGH_16
	vmovdqa64 (\n * 64)(%rsp), %zmm\n
	.endr
	.irp n, MASKS
	kmovq	(32 * 64 + 64 + \n * 8)(%rsp), %k\n
	.endr
	mov	(32 * 64 + 16)(%rsp), %rax
	.irp n, 3, 4, 5, 6, 7
	or	(32 * 64 + \n * 8)(%rsp), %rax
	.endr
	jnz	.Lload_zmm\@
	vzeroupper
	.irp n, ALL_16
	movaps	(\n * 64)(%rsp), %xmm\n
	.endr
	jmp	.Lloaded\@
.Lload_zmm\@:
	.irp n, ALL_16
	vmovdqa64 (\n * 64)(%rsp), %zmm\n
	.endr
	jmp	.Lloaded\@
.Lload_sse\@:
	.irp n, ALL_16
	movaps	(\n * 16)(%rsp), %xmm\n
	.endr
.Lloaded\@:
.endm

/*
 * The frame lies below the program's red zone, so a signal may overwrite it once rsp is the
 * program's again: everything is in registers by then.
 */
.macro LEAVE_TO slot
	mov	\slot, %rcx
	mov	F_SP(%rbp), %r11
	mov	F_BP(%rbp), %rbp
	.cfi_restore rbp
	.cfi_def_cfa r11, 0
	.cfi_register rip, rcx
	mov	%r11, %rsp
	.cfi_def_cfa rsp, 0
	jmp	*%rcx
.endm

	.globl tdm_patch_record
	.hidden tdm_patch_record
	.type tdm_patch_record, @function
	.p2align 5
tdm_patch_record:
	.cfi_startproc
	.cfi_def_cfa rsp, 0
	.cfi_register rip, rcx
	BUILD_FRAME
	mov	%rax, F_NR(%rbp)
	and	$-16, %rsp
	cld
	mov	%rbp, %rdi
	call	*tdm_patch_hooks + 0(%rip)
	cmp	$1, %eax
	jb	.Lrecord_bare
	ja	.Lrecord_call

	SAVE_VECTORS
	mov	%rbp, %rdi
	call	*tdm_patch_hooks + 8(%rip)
	cmp	$1, %eax
	je	.Lrecord_post
	ja	.Lrecord_skip
	LOAD_ARGS
	mov	F_NR(%rbp), %rax
	syscall
	mov	%rax, F_RET(%rbp)
.Lrecord_skip:
	mov	%rbp, %rdi
	call	*tdm_patch_hooks + 16(%rip)
	LOAD_VECTORS
	LOAD_ARGS
	RESTORE_FLAGS
	mov	F_RET(%rbp), %rax
	.cfi_remember_state
	LEAVE_TO F_BACK(%rbp)
	.cfi_restore_state

.Lrecord_call:
	LOAD_ARGS
	RESTORE_FLAGS
	mov	F_NR(%rbp), %rax
	syscall
	.cfi_remember_state
	LEAVE_TO F_BACK(%rbp)
	.cfi_restore_state

.Lrecord_post:
	LOAD_VECTORS
	LOAD_ARGS
	RESTORE_FLAGS
	mov	F_NR(%rbp), %rax
	mov	F_SITE(%rbp), %rcx
	.cfi_remember_state
	LEAVE_TO SITE_BARE_POST(%rcx)
	.cfi_restore_state

.Lrecord_bare:
	LOAD_ARGS
	RESTORE_FLAGS
	mov	F_NR(%rbp), %rax
	mov	F_SITE(%rbp), %rcx
	LEAVE_TO SITE_BARE(%rcx)
	.cfi_endproc
	.size tdm_patch_record, .-tdm_patch_record

/*
 * After a call that was made without a frame: rcx has the site, rax the result. A child, which may
 * stand on a new stack or share its parent's, goes on at once: jrcxz looks at no flag.
 */
	.globl tdm_patch_post
	.type tdm_patch_post, @function
	.p2align 5
tdm_patch_post:
	.cfi_startproc
	.cfi_def_cfa rsp, 0
	.cfi_undefined rip
	mov	%rcx, %r11
	mov	%rax, %rcx
	jrcxz	.Lpost_child
	jmp	.Lpost_parent
.Lpost_child:
	jmp	*SITE_BACK(%r11)
.Lpost_parent:
	mov	%r11, %rcx
	BUILD_FRAME
	mov	%rax, F_RET(%rbp)
	and	$-16, %rsp
	cld
	SAVE_VECTORS
	mov	%rbp, %rdi
	call	*tdm_patch_hooks + 24(%rip)
	LOAD_VECTORS
	LOAD_ARGS
	RESTORE_FLAGS
	mov	F_RET(%rbp), %rax
	LEAVE_TO F_BACK(%rbp)
	.cfi_endproc
	.size tdm_patch_post, .-tdm_patch_post

	.globl tdm_patch_syscall
	.type tdm_patch_syscall, @function
	.p2align 4
tdm_patch_syscall:
	.cfi_startproc
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	mov	8(%rsp), %r9
	syscall
	ret
	.cfi_endproc
	.size tdm_patch_syscall, .-tdm_patch_syscall

	.globl tdm_patch_sigreturn
	.type tdm_patch_sigreturn, @function
tdm_patch_sigreturn:
	.cfi_startproc
	.cfi_undefined rip
	mov	%rdi, %rsp
	mov	$15, %eax
	syscall
	hlt
	.cfi_endproc
	.size tdm_patch_sigreturn, .-tdm_patch_sigreturn

	/* A nop before it: unwinders look one byte before a return address. */
	nop
	.globl tdm_patch_restorer
	.type tdm_patch_restorer, @function
tdm_patch_restorer:
	mov	$15, %rax
	syscall
	hlt
	.size tdm_patch_restorer, .-tdm_patch_restorer

tdm_patch_text_end:

	/* A page of text that nothing runs, to learn whether changed text may run again. */
	.p2align 12
	.globl tdm_patch_trial
	.hidden tdm_patch_trial
tdm_patch_trial:
	.skip 4096, 0xcc

	.data
	.p2align 3
	.type tdm_patch_target, @object
tdm_patch_target:
	.quad tdm_patch_bare
	.size tdm_patch_target, 8
	.globl tdm_patch_target

	.type tdm_patch_vectors, @object
tdm_patch_vectors:
.Lvectors:
	.long 0
	.size tdm_patch_vectors, 4

	.bss
	.p2align 6
	.globl tdm_patch_hooks
	.hidden tdm_patch_hooks
	.type tdm_patch_hooks, @object
tdm_patch_hooks:
	.skip 32
	.size tdm_patch_hooks, 32

	.section .note.GNU-stack, "", @progbits
