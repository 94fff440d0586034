/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/secret.h>
#include <unistd.h>

static char path[64];

static void write_secret(const void *bytes, size_t size, mode_t mode)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void trailing_newlines_are_no_part_of_the_secret(void **state)
{
	struct tdm_secret plain, with_newlines, other;

	(void)state;
	write_secret("sesame", 6, 0600);
	assert_int_equal(tdm_secret_load(path, &plain, NULL), TDM_OK);
	write_secret("sesame\r\n\n", 9, 0400);
	assert_int_equal(tdm_secret_load(path, &with_newlines, NULL), TDM_OK);
	write_secret("sesame ", 7, 0600);
	assert_int_equal(tdm_secret_load(path, &other, NULL), TDM_OK);
	assert_memory_equal(plain.key, with_newlines.key, TDM_KEY_BYTES);
	assert_memory_not_equal(plain.key, other.key, TDM_KEY_BYTES);
}

static void a_file_that_others_can_read_is_refused(void **state)
{
	static const mode_t modes[] = { 0640, 0604, 0644, 0660, 0610 };
	struct tdm_secret secret;
	struct tdm_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		write_secret("sesame", 6, modes[i]);
		assert_int_equal(tdm_secret_load(path, &secret, &err), TDM_ERR_RANGE);
		assert_false(secret.is_set);
		assert_non_null(strstr(err.text, path));
	}
}

static void an_empty_or_endless_secret_is_refused(void **state)
{
	static const char zeros[5000];
	struct tdm_secret secret;

	(void)state;
	write_secret("\n\n", 2, 0600);
	assert_int_equal(tdm_secret_load(path, &secret, NULL), TDM_ERR_RANGE);
	write_secret(zeros, 4096, 0600);
	assert_int_equal(tdm_secret_load(path, &secret, NULL), TDM_OK);
	write_secret(zeros, 4097, 0600);
	assert_int_equal(tdm_secret_load(path, &secret, NULL), TDM_ERR_RANGE);
	assert_int_equal(tdm_secret_load("/dev/zero", &secret, NULL), TDM_ERR_RANGE);
	assert_int_equal(tdm_secret_load("/nonexistent", &secret, NULL), TDM_ERR_IO);
}

static void a_proof_holds_for_one_role_one_secret_and_one_pair_of_greetings(void **state)
{
	uint8_t client[TDM_HELLO_BYTES], server[TDM_HELLO_BYTES], proof[TDM_PROOF_BYTES];
	struct tdm_secret secret = { .is_set = true, .key = { 1 } };
	struct tdm_secret other = { .is_set = true, .key = { 2 } };
	struct tdm_session_keys keys, wrong, swapped, later;

	(void)state;
	memset(client, 1, sizeof(client));
	memset(server, 2, sizeof(server));
	tdm_session_keys_make(&keys, &secret, client, server);
	tdm_session_keys_make(&wrong, &other, client, server);
	tdm_session_keys_make(&swapped, &secret, server, client);
	server[0] = 9;
	tdm_session_keys_make(&later, &secret, client, server);
	tdm_session_proof(&keys, TDM_ROLE_CLIENT, proof);
	assert_true(tdm_session_proof_is(&keys, TDM_ROLE_CLIENT, proof, sizeof(proof)));
	assert_false(tdm_session_proof_is(&keys, TDM_ROLE_SERVER, proof, sizeof(proof)));
	assert_false(tdm_session_proof_is(&keys, TDM_ROLE_CLIENT, proof, sizeof(proof) - 1));
	assert_false(tdm_session_proof_is(&wrong, TDM_ROLE_CLIENT, proof, sizeof(proof)));
	assert_false(tdm_session_proof_is(&swapped, TDM_ROLE_CLIENT, proof, sizeof(proof)));
	assert_false(tdm_session_proof_is(&later, TDM_ROLE_CLIENT, proof, sizeof(proof)));
}

static void keys_differ_by_use_and_by_direction(void **state)
{
	struct tdm_session_keys keys = { .base = { 3 } };
	uint8_t a[TDM_KEY_BYTES], b[TDM_KEY_BYTES], c[TDM_KEY_BYTES];

	(void)state;
	tdm_session_derive(&keys, TDM_ROLE_CLIENT, "frames", a);
	tdm_session_derive(&keys, TDM_ROLE_SERVER, "frames", b);
	tdm_session_derive(&keys, TDM_ROLE_CLIENT, "datagrams", c);
	assert_memory_not_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, c, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trailing_newlines_are_no_part_of_the_secret),
		cmocka_unit_test(a_file_that_others_can_read_is_refused),
		cmocka_unit_test(an_empty_or_endless_secret_is_refused),
		cmocka_unit_test(a_proof_holds_for_one_role_one_secret_and_one_pair_of_greetings),
		cmocka_unit_test(keys_differ_by_use_and_by_direction),
	};

	snprintf(path, sizeof(path), "/tmp/tandem-secret-%d", (int)getpid());

	const int failures = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(path);
	return failures;
}
