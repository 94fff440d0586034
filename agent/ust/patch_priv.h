/* SPDX-License-Identifier: MIT */
/*
 * patch_priv.h - what the files of libtandem-patch.so share.
 */
#ifndef TDM_PATCH_PRIV_H
#define TDM_PATCH_PRIV_H

#include "patch.h"
#include <stdbool.h>
#include <stddef.h>

/* How a site is taken over. */
enum tdm_site_way {
	TDM_WAY_NONE = 0,
	TDM_WAY_RESTORER, /* the return from signal handlers, which debuggers know by its bytes: never patched */
	TDM_WAY_MOV,  /* class A: the mov of the number becomes the jump, the syscall stays */
	TDM_WAY_NEXT, /* class B: the syscall and what follows it become the jump */
	TDM_WAY_HOP,  /* class B: the syscall becomes a short jump into padding that has the jump */
	TDM_WAY_BEFORE, /* class B: what stands before the syscall becomes the jump, the syscall stays */
	TDM_WAY_LOOP /* class B: exit in a loop: its whole body becomes the jump */
};

struct tdm_site_plan {
	uint8_t *call;     /* the syscall instruction */
	uint8_t *patch_at; /* where the jump goes */
	uint8_t *hop;      /* TDM_WAY_HOP: the padding */
	uint8_t *resume;   /* where the program goes on after what was moved */
	uint32_t nr;       /* TDM_WAY_MOV */
	uint8_t way;
	uint8_t moved_bytes; /* instructions after the syscall that move to the stub */
};

#define TDM_SITES_MAX 2048

/* One executable segment and its plans: count of them, from first on. */
struct tdm_text {
	uint8_t *start;
	size_t size_bytes;
	size_t count;
	size_t first;
	bool is_private; /* its pages with sites are this process's own already */
};

/**
 * Makes a text writable and its pages with sites private.
 *
 * @param is_fresh  Nobody has changed the text: its pages are dropped first, which saves a flush for each.
 * @return 0, or the errno of the refusal.
 */
int tdm_text_make_private(struct tdm_text *text, const struct tdm_site_plan *sites, bool is_fresh);
/** Makes it executable again. */
void tdm_text_close(const struct tdm_text *text);

/** Reads the plans of these texts from a file of tdm_sites_store(). False: there is none, or it is of others. */
bool tdm_sites_load(const char *path, struct tdm_text *texts, size_t text_count,
	struct tdm_site_plan *plans, size_t room);
/** Writes them before the texts are changed. Failing is nothing to tell. */
void tdm_sites_store(const char *path, const struct tdm_text *texts, size_t text_count,
	const struct tdm_site_plan *plans);

/**
 * Finds the system call sites of one text segment and how each can be taken over.
 *
 * @param text, size_bytes  The segment, readable. Not written.
 * @param in_place_only     Leave class B alone: other threads may stand in such a site.
 * @param plans, room       Receives the plans, those with TDM_WAY_NONE included.
 * @return How many, at most @p room.
 */
size_t tdm_sites_find(uint8_t *text, size_t size_bytes, bool in_place_only,
	struct tdm_site_plan *plans, size_t room);

/**
 * Writes the stub of one site.
 *
 * @param stub  TDM_STUB_BYTES, writable, within 2 GiB of the site.
 * @return 0, or -1 when an instruction that must move cannot reach what it refers to.
 */
int tdm_stub_write(uint8_t *stub, const struct tdm_site_plan *plan);

#define TDM_STUB_BYTES 128
#define TDM_STUB_SITE  88 /* where the struct tdm_site lies in it */

extern const char tdm_patch_text_start[] __attribute__((visibility("hidden")));
extern const char tdm_patch_text_end[] __attribute__((visibility("hidden")));
extern void *tdm_patch_target __attribute__((visibility("hidden")));
extern struct tdm_patch_hooks tdm_patch_hooks __attribute__((visibility("hidden")));
extern const char tdm_patch_bare[] __attribute__((visibility("hidden")));
extern const char tdm_patch_record[] __attribute__((visibility("hidden")));

#endif
