/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/secret.h>
#include <unistd.h>

enum {
	SECRET_MAX_BYTES = 4096,
	LABEL_BYTES = 16
};

/* Fails only where the system gives no random numbers at all: nothing can be secret then. */
static void need_sodium(void)
{
	if (sodium_init() < 0) {
		_exit(1);
	}
}

static enum tdm_status read_secret(
	int fd, const char *path, uint8_t *bytes, size_t *size, struct tdm_error *err)
{
	struct stat info;

	if (fstat(fd, &info) != 0) {
		return tdm_fail_errno(err, errno, "secret file %s", path);
	}
	if (!S_ISREG(info.st_mode)) {
		return tdm_fail(err, TDM_ERR_RANGE, "secret file %s: not a regular file", path);
	}
	if (info.st_mode & (S_IRWXG | S_IRWXO)) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"secret file %s: mode %03o lets others at it; wanted 600 (chmod go= %s)",
			path, (unsigned int)info.st_mode & 0777, path);
	}
	*size = 0;
	for (;;) {
		const ssize_t got = read(fd, bytes + *size, SECRET_MAX_BYTES + 1 - *size);

		if (got < 0) {
			return tdm_fail_errno(err, errno, "secret file %s", path);
		}
		*size += (size_t)got;
		if (got == 0 || *size > SECRET_MAX_BYTES) {
			break;
		}
	}
	while (*size > 0 && *size <= SECRET_MAX_BYTES &&
		(bytes[*size - 1] == '\n' || bytes[*size - 1] == '\r')) {
		(*size)--;
	}
	if (*size == 0 || *size > SECRET_MAX_BYTES) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"secret file %s: 1 to %d bytes are wanted, it has %s", path,
			SECRET_MAX_BYTES, *size ? "more" : "none");
	}
	return TDM_OK;
}

enum tdm_status tdm_secret_load(const char *path, struct tdm_secret *secret, struct tdm_error *err)
{
	uint8_t bytes[SECRET_MAX_BYTES + 1];
	size_t size = 0;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	memset(secret, 0, sizeof(*secret));
	need_sodium();
	if (fd < 0) {
		return tdm_fail_errno(err, errno, "secret file %s", path);
	}

	const enum tdm_status status = read_secret(fd, path, bytes, &size, err);

	close(fd);
	if (status == TDM_OK) {
		static const uint8_t domain[LABEL_BYTES] = "tandem1 secret";

		crypto_generichash(
			secret->key, sizeof(secret->key), bytes, size, domain, sizeof(domain));
		secret->is_set = true;
	}
	sodium_memzero(bytes, sizeof(bytes));
	return status;
}

void tdm_secret_clear(struct tdm_secret *secret)
{
	sodium_memzero(secret, sizeof(*secret));
}

void tdm_session_keys_make(struct tdm_session_keys *keys, const struct tdm_secret *secret,
	const uint8_t client_hello[TDM_HELLO_BYTES], const uint8_t server_hello[TDM_HELLO_BYTES])
{
	uint8_t both[2 * TDM_HELLO_BYTES];

	memcpy(both, client_hello, TDM_HELLO_BYTES);
	memcpy(both + TDM_HELLO_BYTES, server_hello, TDM_HELLO_BYTES);
	crypto_generichash(keys->base, sizeof(keys->base), both, sizeof(both), secret->key,
		sizeof(secret->key));
}

void tdm_session_derive(const struct tdm_session_keys *keys, enum tdm_role sender,
	const char *label, uint8_t key[TDM_KEY_BYTES])
{
	uint8_t input[LABEL_BYTES + 1] = { 0 };

	memcpy(input, label, strnlen(label, LABEL_BYTES - 1));
	input[LABEL_BYTES] = (uint8_t)sender;
	crypto_generichash(
		key, TDM_KEY_BYTES, input, sizeof(input), keys->base, sizeof(keys->base));
}

void tdm_session_proof(
	const struct tdm_session_keys *keys, enum tdm_role role, uint8_t proof[TDM_PROOF_BYTES])
{
	_Static_assert((int)TDM_PROOF_BYTES == (int)TDM_KEY_BYTES, "one function makes both");
	tdm_session_derive(keys, role, "proof", proof);
}

bool tdm_session_proof_is(
	const struct tdm_session_keys *keys, enum tdm_role role, const uint8_t *proof, size_t size)
{
	uint8_t wanted[TDM_PROOF_BYTES];

	tdm_session_proof(keys, role, wanted);
	return size == sizeof(wanted) && sodium_memcmp(proof, wanted, sizeof(wanted)) == 0;
}

void tdm_random(void *to, size_t size)
{
	need_sodium();
	randombytes_buf(to, size);
}
