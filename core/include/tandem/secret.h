/* SPDX-License-Identifier: MIT */
/*
 * secret.h - the shared secret, and what both ends of a connection derive from it.
 */
#ifndef TANDEM_SECRET_H
#define TANDEM_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>
#include <tandem/wire.h>

struct tdm_secret {
	bool is_set;
	uint8_t key[TDM_KEY_BYTES]; /* a hash of the secret; zeroed by tdm_secret_clear() */
};

/**
 * Reads a secret from a file: its content less trailing newlines.
 *
 * @retval TDM_ERR_RANGE  Others can read the file, or it is empty or longer than 4096 bytes.
 * @retval TDM_ERR_IO     It cannot be read.
 */
enum tdm_status tdm_secret_load(const char *path, struct tdm_secret *secret, struct tdm_error *err);
void tdm_secret_clear(struct tdm_secret *secret);

/* Who a side is: bound into its proof and keys, so that neither can be sent back to its maker. */
enum tdm_role {
	TDM_ROLE_CLIENT, /* connects */
	TDM_ROLE_SERVER  /* accepts */
};

/* Keys of one connection, from the secret and both HELLOs. */
struct tdm_session_keys {
	uint8_t base[TDM_KEY_BYTES];
};

/** Derives them; equal at both ends only where secret and both HELLO bodies are. */
void tdm_session_keys_make(struct tdm_session_keys *keys, const struct tdm_secret *secret,
	const uint8_t client_hello[TDM_HELLO_BYTES], const uint8_t server_hello[TDM_HELLO_BYTES]);

/** The proof that @p role sends. */
void tdm_session_proof(
	const struct tdm_session_keys *keys, enum tdm_role role, uint8_t proof[TDM_PROOF_BYTES]);

/** Compares in constant time. */
bool tdm_session_proof_is(
	const struct tdm_session_keys *keys, enum tdm_role role, const uint8_t *proof, size_t size);

/** A key for one use, by its label (at most 15 bytes) and the role of the sender. */
void tdm_session_derive(const struct tdm_session_keys *keys, enum tdm_role sender,
	const char *label, uint8_t key[TDM_KEY_BYTES]);

/** Random bytes, never predictable. */
void tdm_random(void *to, size_t size);

#endif
