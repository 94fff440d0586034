/* SPDX-License-Identifier: MIT */
/*
 * patch.h - rewriting the system call sites of loaded code, so that hooks see each call.
 *
 * libtandem-patch.so offers this; it is linked with libc alone and runs before every other
 * constructor of the process, when there is one thread. It must not call into the text that it
 * rewrites: it makes its own system calls.
 */
#ifndef TDM_PATCH_H
#define TDM_PATCH_H

#include <stdint.h>

/*
 * What a stub says of its site; it lies in the stub area and is read-only. The trampoline knows the
 * offsets.
 */
struct tdm_site {
	uint64_t back;      /* where the program goes on after the call */
	uint64_t bare;      /* where the call is made without any hook */
	uint64_t bare_post; /* where it is made without a frame, then tdm_patch_post is entered */
	uint64_t address;   /* of the syscall instruction, for messages */
	uint64_t nr;        /* the only number of this site, or TDM_SITE_ANY */
};

#define TDM_SITE_ANY UINT64_MAX

/*
 * The registers of one call, on the stack of its thread, below the red zone. The trampoline knows the
 * offsets. The hooks may change args, nr and ret.
 */
struct tdm_frame {
	uint64_t args[6]; /* rdi rsi rdx r10 r8 r9 */
	uint64_t nr;      /* rax before */
	int64_t ret;      /* rax after */
	const struct tdm_site *site;
	uint64_t back; /* also the return address that unwinders find */
	uint64_t sp;   /* of the program */
	uint64_t bp;
	uint64_t flags; /* as lahf and seto leave them */
	uint64_t scratch;
	const void *row; /* the first hook's, for the others */
	/* A set of signals that goes to the kernel in place of the program's, and the argument that pointed there. */
	uint64_t sent[4];
	uint64_t kept;
};

/* What the first hook decides. */
enum tdm_hook_plan {
	TDM_PLAN_BARE = 0,   /* as if there were no hook */
	TDM_PLAN_RECORD = 1, /* entry hook, call, exit hook; the vector registers are saved */
	TDM_PLAN_CALL = 2    /* the call from the trampoline, no hook */
};

/* What the entry hook decides. */
enum tdm_entry_plan {
	TDM_ENTRY_CALL = 0, /* the call, then the exit hook */
	TDM_ENTRY_POST =
		1, /* the call without a frame (it may return twice or on another stack), then
			       the post hook in the caller */
	TDM_ENTRY_SKIP = 2 /* no call: ret is set */
};

struct tdm_patch_hooks {
	/* Must use general registers only: the vector registers are still the program's. */
	unsigned int (*plan)(struct tdm_frame *frame);
	unsigned int (*entry)(struct tdm_frame *frame);
	void (*exit)(struct tdm_frame *frame);
	void (*post)(struct tdm_frame *frame);
};

enum tdm_patch_state {
	TDM_PATCH_NONE = 0,
	TDM_PATCH_DONE = 1,
	TDM_PATCH_REFUSED = 2 /* the kernel or a policy does not let us: error says which */
};

/* Which vector registers the trampoline keeps: those that the CPU has and the kernel switches. */
enum tdm_patch_vectors {
	TDM_VECTORS_SSE = 0,    /* xmm0-15 */
	TDM_VECTORS_AVX = 1,    /* ymm0-15 */
	TDM_VECTORS_AVX512 = 2, /* zmm0-31, k0-7 */
};

struct tdm_patch_report {
	uint32_t state; /* enum tdm_patch_state */
	int32_t error;  /* errno of the refusal */
	uint32_t sites_found, sites_patched;
	uint32_t moved, hopped; /* of the patched ones: those of class B by way */
	uint32_t threads;       /* at patch time: more than one leaves class B alone */
	uint64_t restorer;      /* libc's return from signal handlers, 0 when it was not found */
	uint64_t left[16];      /* addresses of the first sites left alone */
};

/* What libtandem-patch.so offers to others. */
#pragma GCC visibility push(default)

extern struct tdm_patch_report tdm_patch_report;

/* enum tdm_patch_vectors: found out before the first hook; read-only afterwards (a test tries all it may). */
extern uint32_t tdm_patch_vectors;

/**
 * Turns the hooks on, or off with NULL.
 *
 * @param hooks  Kept; must stay valid for the life of the process.
 */
void tdm_patch_set_hooks(const struct tdm_patch_hooks *hooks);

/**
 * Gives a site that nobody patched a stub, so that a call which may return twice can be made from a
 * signal handler: jump to its bare_post.
 *
 * @return The site, kept for ever and shared by all calls with this @p back; NULL when memory ends.
 */
const struct tdm_site *tdm_patch_site_for(uint64_t back);
/* In a forked child: another thread of the parent's may have been in the above. */
void tdm_patch_forked(void);

/* Where the syscall instructions of the trampolines lie. */
void tdm_patch_text_range(uint64_t *start, uint64_t *length_bytes);
/* Set as soon as the text is patched, where the object that has them is loaded: they see the calls of
   other objects' constructors. */
extern const struct tdm_patch_hooks tdm_patch_early_hooks __attribute__((weak));
/* The trampolines. */
void tdm_patch_enter(void);
void tdm_patch_post(void);
/* Leaves a signal frame of the program that lies at sp: rt_sigreturn from inside our text. */
_Noreturn void tdm_patch_sigreturn(uint64_t sp);
/* The restorer of our own SIGSYS handler. */
void tdm_patch_restorer(void);

/* One system call from inside our text. Returns what the kernel returns: -errno on failure. */
long tdm_patch_syscall(long nr, long a, long b, long c, long d, long e, long f);

#pragma GCC visibility pop

#endif
