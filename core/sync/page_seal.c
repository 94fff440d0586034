/* SPDX-License-Identifier: MIT */
#include <sodium.h>
#include <stdlib.h>
#include <tandem/page_seal.h>

_Static_assert(TDM_SEAL_HEADER_BYTES == crypto_secretstream_xchacha20poly1305_HEADERBYTES,
	"header of the library");
_Static_assert(
	TDM_SEAL_EXTRA_BYTES == crypto_secretstream_xchacha20poly1305_ABYTES, "tag of the library");
_Static_assert(
	TDM_KEY_BYTES == crypto_secretstream_xchacha20poly1305_KEYBYTES, "key of the library");

struct tdm_seal {
	crypto_secretstream_xchacha20poly1305_state state;
};

struct tdm_seal *tdm_seal_create(
	const uint8_t key[TDM_KEY_BYTES], uint8_t header[TDM_SEAL_HEADER_BYTES])
{
	struct tdm_seal *seal = malloc(sizeof(*seal));

	if (seal) {
		crypto_secretstream_xchacha20poly1305_init_push(&seal->state, header, key);
	}
	return seal;
}

struct tdm_seal *tdm_seal_open(
	const uint8_t key[TDM_KEY_BYTES], const uint8_t header[TDM_SEAL_HEADER_BYTES])
{
	struct tdm_seal *seal = malloc(sizeof(*seal));

	if (seal &&
		crypto_secretstream_xchacha20poly1305_init_pull(&seal->state, header, key) != 0) {
		free(seal);
		return NULL;
	}
	return seal;
}

void tdm_seal_destroy(struct tdm_seal *seal)
{
	if (seal) {
		sodium_memzero(seal, sizeof(*seal));
		free(seal);
	}
}

size_t tdm_seal_put(
	struct tdm_seal *seal, const void *plain, size_t plain_bytes, bool last, uint8_t *record)
{
	const uint32_t length = (uint32_t)plain_bytes + TDM_SEAL_EXTRA_BYTES;

	for (unsigned int i = 0; i < TDM_SEAL_LENGTH_BYTES; i++) {
		record[i] = (uint8_t)(length >> (8 * i));
	}
	crypto_secretstream_xchacha20poly1305_push(&seal->state, record + TDM_SEAL_LENGTH_BYTES,
		NULL, plain, plain_bytes, NULL, 0,
		last ? crypto_secretstream_xchacha20poly1305_TAG_FINAL
		     : crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
	return TDM_SEAL_LENGTH_BYTES + length;
}

enum tdm_status tdm_seal_get(struct tdm_seal *seal, const void *sealed, size_t sealed_bytes,
	uint8_t *plain, bool *last, struct tdm_error *err)
{
	unsigned char tag = 0;

	if (sealed_bytes < TDM_SEAL_EXTRA_BYTES ||
		crypto_secretstream_xchacha20poly1305_pull(
			&seal->state, plain, NULL, &tag, sealed, sealed_bytes, NULL, 0) != 0) {
		return tdm_fail(err, TDM_ERR_PEER,
			"a record of %zu bytes of pages is not what the agent sealed",
			sealed_bytes);
	}
	*last = tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
	return TDM_OK;
}
