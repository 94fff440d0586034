/* SPDX-License-Identifier: MIT */
/*
 * page_seal.h - ring-buffer pages over an untrusted network: authenticated, encrypted, and their end marked.
 *
 * On the wire: a 24-byte header once, then records of a u32 length (little endian) and so many bytes, each one message
 * of libsodium's secretstream (XChaCha20-Poly1305). The last one carries the final tag: a cut is told from an end.
 */
#ifndef TANDEM_PAGE_SEAL_H
#define TANDEM_PAGE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>
#include <tandem/wire.h>

enum {
	TDM_SEAL_HEADER_BYTES = 24,
	TDM_SEAL_EXTRA_BYTES = 17,
	TDM_SEAL_LENGTH_BYTES = 4,
	TDM_SEAL_PLAIN_MAX_BYTES = 1 << 18, /* of one record */
	TDM_SEAL_RECORD_MAX_BYTES =
		TDM_SEAL_LENGTH_BYTES + TDM_SEAL_PLAIN_MAX_BYTES + TDM_SEAL_EXTRA_BYTES
};

struct tdm_seal; /* one direction of one connection */

/** The sending end; @p header receives what goes out first. NULL without memory. */
struct tdm_seal *tdm_seal_create(
	const uint8_t key[TDM_KEY_BYTES], uint8_t header[TDM_SEAL_HEADER_BYTES]);

/** The receiving end. NULL without memory or for a header that is none. */
struct tdm_seal *tdm_seal_open(
	const uint8_t key[TDM_KEY_BYTES], const uint8_t header[TDM_SEAL_HEADER_BYTES]);
void tdm_seal_destroy(struct tdm_seal *seal);

/**
 * Makes one record, its length in front.
 *
 * @param plain  At most TDM_SEAL_PLAIN_MAX_BYTES; may be empty for the last one.
 * @param record Receives it: plain_bytes + TDM_SEAL_EXTRA_BYTES + TDM_SEAL_LENGTH_BYTES.
 * @return Its size.
 */
size_t tdm_seal_put(
	struct tdm_seal *seal, const void *plain, size_t plain_bytes, bool last, uint8_t *record);

/**
 * Opens what stood behind a length.
 *
 * @param plain  Receives sealed_bytes less TDM_SEAL_EXTRA_BYTES.
 * @param last   Receives whether it was the last.
 * @retval TDM_ERR_PEER  Not what the other end sealed, or not in this place.
 */
enum tdm_status tdm_seal_get(struct tdm_seal *seal, const void *sealed, size_t sealed_bytes,
	uint8_t *plain, bool *last, struct tdm_error *err);

#endif
