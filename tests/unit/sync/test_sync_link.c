/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tandem/sync_link.h>
#include <tandem/wire.h>
#include <unistd.h>

static const struct tdm_secret sesame = { .is_set = true, .key = { 1, 2, 3 } };
static const struct tdm_secret wrong = { .is_set = true, .key = { 9, 9, 9 } };

/* Two links on one socket pair, with a tap between them where the test wants to change bytes. */
struct wires {
	struct tdm_link *client, *server;
	int client_tap, server_tap; /* -1: they are connected directly */
};

static struct wires connect_links(const struct tdm_secret *client_secret,
	const struct tdm_secret *server_secret, bool wants_proof, bool tapped)
{
	const struct tdm_link_options client_options = { .secret = client_secret };
	const struct tdm_link_options server_options = { .secret = server_secret,
		.wants_proof = wants_proof };
	struct wires wires = { .client_tap = -1, .server_tap = -1 };
	int one[2], two[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, one), 0);
	if (tapped) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, two), 0);
		wires.client_tap = one[1];
		wires.server_tap = two[1];
	} else {
		two[0] = one[1];
	}
	wires.client = tdm_link_create(one[0], TDM_ROLE_CLIENT, &client_options, NULL);
	wires.server = tdm_link_create(two[0], TDM_ROLE_SERVER, &server_options, NULL);
	assert_non_null(wires.client);
	assert_non_null(wires.server);
	return wires;
}

static void release(struct wires *wires)
{
	tdm_link_destroy(wires->client);
	tdm_link_destroy(wires->server);
	if (wires->client_tap >= 0) {
		close(wires->client_tap);
		close(wires->server_tap);
	}
}

static size_t pass(int from, int to, uint8_t *seen, size_t room)
{
	uint8_t bytes[4096];
	const ssize_t got = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got <= 0) {
		return 0;
	}
	if (seen && (size_t)got <= room) {
		memcpy(seen, bytes, (size_t)got);
	}
	assert_int_equal(send(to, bytes, (size_t)got, 0), got);
	return (size_t)got;
}

/* Lets both ends talk until neither has anything to say. The last results of each. */
static void settle(struct wires *wires, enum tdm_status *client, enum tdm_status *server,
	struct tdm_error *client_err, struct tdm_error *server_err)
{
	struct tdm_frame frame;

	*client = *server = TDM_AGAIN;
	for (int i = 0; i < 6; i++) {
		if (wires->client_tap >= 0) {
			pass(wires->client_tap, wires->server_tap, NULL, 0);
			pass(wires->server_tap, wires->client_tap, NULL, 0);
		}
		if (*server == TDM_AGAIN) {
			tdm_link_fill(wires->server, server_err);
			*server = tdm_link_next(wires->server, &frame, server_err);
		}
		if (*client == TDM_AGAIN) {
			tdm_link_fill(wires->client, client_err);
			*client = tdm_link_next(wires->client, &frame, client_err);
		}
	}
}

static void both_prove_the_same_secret(void **state)
{
	struct wires wires = connect_links(&sesame, &sesame, true, false);
	struct tdm_error client_err, server_err;
	enum tdm_status client, server;
	uint8_t a[TDM_KEY_BYTES], b[TDM_KEY_BYTES];

	(void)state;
	settle(&wires, &client, &server, &client_err, &server_err);
	assert_true(tdm_link_is_ready(wires.client) && tdm_link_is_proven(wires.client));
	assert_true(tdm_link_is_ready(wires.server) && tdm_link_is_proven(wires.server));
	tdm_link_derive(wires.client, TDM_ROLE_SERVER, "data", a);
	tdm_link_derive(wires.server, TDM_ROLE_SERVER, "data", b);
	assert_memory_equal(a, b, sizeof(a));
	release(&wires);
}

static void a_wrong_secret_ends_both_with_one_reason(void **state)
{
	struct wires wires = connect_links(&wrong, &sesame, true, false);
	struct tdm_error client_err, server_err;
	enum tdm_status client, server;

	(void)state;
	settle(&wires, &client, &server, &client_err, &server_err);
	assert_int_equal(server, TDM_ERR_PEER);
	assert_string_equal(server_err.text, "wrong secret");
	assert_int_equal(client, TDM_ERR_PEER);
	assert_string_equal(client_err.text, "peer says: wrong secret");
	assert_false(tdm_link_is_ready(wires.server));
	release(&wires);
}

static void no_secret_is_no_proof(void **state)
{
	struct wires wires = connect_links(NULL, &sesame, true, false);
	struct tdm_error client_err, server_err;
	enum tdm_status client, server;

	(void)state;
	settle(&wires, &client, &server, &client_err, &server_err);
	assert_int_equal(client, TDM_ERR_PEER);
	assert_int_equal(server, TDM_ERR_PEER);
	assert_false(tdm_link_is_ready(wires.server));
	release(&wires);
}

static void a_client_with_a_secret_does_not_talk_to_a_server_without(void **state)
{
	struct wires wires = connect_links(&sesame, NULL, false, false);
	struct tdm_error client_err, server_err;
	enum tdm_status client, server;

	(void)state;
	settle(&wires, &client, &server, &client_err, &server_err);
	assert_int_equal(client, TDM_ERR_PEER);
	assert_false(tdm_link_is_ready(wires.client));
	release(&wires);
}

static void without_secrets_frames_pass_bare(void **state)
{
	struct wires wires = connect_links(NULL, NULL, false, false);
	struct tdm_error client_err, server_err;
	enum tdm_status client, server;
	struct tdm_frame frame;

	(void)state;
	settle(&wires, &client, &server, &client_err, &server_err);
	assert_true(tdm_link_is_ready(wires.client) && !tdm_link_is_proven(wires.client));
	assert_int_equal(tdm_link_send(wires.client, TDM_FRAME_OPEN, "hello", 5,
				 tdm_deadline_ns(100), &client_err),
		TDM_OK);
	assert_int_equal(tdm_link_fill(wires.server, NULL), TDM_OK);
	assert_int_equal(tdm_link_next(wires.server, &frame, NULL), TDM_OK);
	assert_int_equal(frame.flags, 0);
	assert_int_equal(frame.size_bytes, 5);
	release(&wires);
}

/* One frame from the client as it stands on the wire, its links ready. */
static size_t record_frame(struct wires *wires, uint8_t *bytes, size_t room)
{
	struct tdm_error client_err, server_err;
	enum tdm_status client, server;

	settle(wires, &client, &server, &client_err, &server_err);
	assert_true(tdm_link_is_proven(wires->server));
	assert_int_equal(
		tdm_link_send(wires->client, TDM_FRAME_QUERY, "abc", 3, tdm_deadline_ns(100), NULL),
		TDM_OK);

	const ssize_t got = recv(wires->client_tap, bytes, room, MSG_DONTWAIT);

	assert_int_equal(got, TDM_FRAME_HEADER_BYTES + 3 + TDM_TAG_BYTES);
	return (size_t)got;
}

static enum tdm_status deliver(struct wires *wires, const uint8_t *bytes, size_t size)
{
	struct tdm_frame frame;

	assert_int_equal(send(wires->server_tap, bytes, size, 0), size);
	assert_int_equal(tdm_link_fill(wires->server, NULL), TDM_OK);
	return tdm_link_next(wires->server, &frame, NULL);
}

static void a_frame_is_taken_once_and_a_replayed_one_is_not(void **state)
{
	struct wires wires = connect_links(&sesame, &sesame, true, true);
	uint8_t bytes[256];

	(void)state;

	const size_t size = record_frame(&wires, bytes, sizeof(bytes));

	assert_int_equal(deliver(&wires, bytes, size), TDM_OK);
	assert_int_equal(deliver(&wires, bytes, size), TDM_ERR_PEER);
	release(&wires);
}

static void every_changed_byte_of_a_frame_is_seen(void **state)
{
	uint8_t bytes[256];

	(void)state;
	for (size_t i = 0; i < TDM_FRAME_HEADER_BYTES + 3 + TDM_TAG_BYTES; i++) {
		struct wires wires = connect_links(&sesame, &sesame, true, true);
		const size_t size = record_frame(&wires, bytes, sizeof(bytes));

		/* Its length changed: more is waited for, or something else is cut off. */
		if (i >= 12 && i < 16) {
			release(&wires);
			continue;
		}
		bytes[i] ^= 4;
		assert_int_not_equal(deliver(&wires, bytes, size), TDM_OK);
		release(&wires);
	}
}

static void a_frame_left_out_is_seen_at_the_next(void **state)
{
	struct wires wires = connect_links(&sesame, &sesame, true, true);
	uint8_t bytes[256];

	(void)state;
	record_frame(&wires, bytes, sizeof(bytes));

	const size_t size = record_frame(&wires, bytes, sizeof(bytes));

	assert_int_equal(deliver(&wires, bytes, size), TDM_ERR_PEER);
	release(&wires);
}

static void a_clients_proof_sent_back_to_it_proves_nothing(void **state)
{
	struct wires wires = connect_links(&sesame, &sesame, true, true);
	uint8_t hello[256], proof[256];
	struct tdm_frame frame;
	struct tdm_error err;

	(void)state;
	/* The attacker has no secret: it greets with the client's own HELLO and returns the client's AUTH. */
	const ssize_t hello_bytes = recv(wires.client_tap, hello, sizeof(hello), 0);

	assert_int_equal(send(wires.client_tap, hello, (size_t)hello_bytes, 0), hello_bytes);
	tdm_link_fill(wires.client, NULL);
	assert_int_equal(tdm_link_next(wires.client, &frame, &err), TDM_AGAIN);

	const ssize_t proof_bytes = recv(wires.client_tap, proof, sizeof(proof), MSG_DONTWAIT);

	assert_int_equal(proof_bytes, TDM_FRAME_HEADER_BYTES + TDM_PROOF_BYTES);
	assert_int_equal(send(wires.client_tap, proof, (size_t)proof_bytes, 0), proof_bytes);
	tdm_link_fill(wires.client, NULL);
	assert_int_equal(tdm_link_next(wires.client, &frame, &err), TDM_ERR_PEER);
	assert_false(tdm_link_is_ready(wires.client));
	release(&wires);
}

static void a_recorded_handshake_does_not_open_a_second_time(void **state)
{
	struct wires first = connect_links(&sesame, &sesame, true, true);
	struct wires second = connect_links(&sesame, &sesame, true, true);
	uint8_t hello[256], proof[256];
	struct tdm_frame frame;

	(void)state;
	const size_t hello_bytes = pass(first.client_tap, first.server_tap, hello, sizeof(hello));

	pass(first.server_tap, first.client_tap, NULL, 0);
	tdm_link_fill(first.client, NULL);
	tdm_link_next(first.client, &frame, NULL);

	const size_t proof_bytes = pass(first.client_tap, first.server_tap, proof, sizeof(proof));

	assert_int_equal(send(second.server_tap, hello, hello_bytes, 0), hello_bytes);
	assert_int_equal(send(second.server_tap, proof, proof_bytes, 0), proof_bytes);
	tdm_link_fill(second.server, NULL);
	assert_int_equal(tdm_link_next(second.server, &frame, NULL), TDM_ERR_PEER);
	release(&first);
	release(&second);
}

static void a_frame_out_of_order_ends_the_connection(void **state)
{
	static const uint16_t types[] = { TDM_FRAME_OPEN, TDM_FRAME_AUTH, TDM_FRAME_EXCHANGE, 999 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct wires wires = connect_links(&sesame, &sesame, true, true);
		uint8_t header[TDM_FRAME_HEADER_BYTES];

		tdm_frame_put_header(header, types[i], 0, 0);
		assert_int_equal(deliver(&wires, header, sizeof(header)), TDM_ERR_PEER);
		release(&wires);
	}
}

static void a_stranger_gets_no_more_memory_than_a_greeting(void **state)
{
	struct wires wires = connect_links(NULL, NULL, false, true);
	uint8_t header[TDM_FRAME_HEADER_BYTES];

	(void)state;
	tdm_frame_put_header(header, TDM_FRAME_HELLO, 0, 4096);
	assert_int_equal(deliver(&wires, header, sizeof(header)), TDM_ERR_PEER);
	release(&wires);
}

static void close_is_told_from_a_connection_that_broke(void **state)
{
	struct wires wires = connect_links(NULL, NULL, false, false);
	struct tdm_error client_err, server_err;
	enum tdm_status client, server;
	struct tdm_frame frame;

	(void)state;
	settle(&wires, &client, &server, &client_err, &server_err);
	tdm_link_destroy(wires.client);
	wires.client = NULL;
	assert_int_equal(
		tdm_link_receive(wires.server, &frame, tdm_deadline_ns(1000), -1, &server_err),
		TDM_END);
	release(&wires);

	wires = connect_links(NULL, NULL, false, true);
	settle(&wires, &client, &server, &client_err, &server_err);
	close(wires.server_tap);
	wires.server_tap = dup(wires.client_tap);
	assert_int_equal(
		tdm_link_receive(wires.server, &frame, tdm_deadline_ns(1000), -1, &server_err),
		TDM_ERR_PEER);
	release(&wires);
}

static void waiting_ends_at_the_deadline(void **state)
{
	struct wires wires = connect_links(NULL, NULL, false, true);
	struct tdm_frame frame;
	const uint64_t began_ns = tdm_now_ns();

	(void)state;
	assert_int_equal(
		tdm_link_receive(wires.client, &frame, tdm_deadline_ns(50), -1, NULL), TDM_AGAIN);
	assert_true(tdm_now_ns() - began_ns >= 50000000);
	release(&wires);
}

enum {
	DESERTIONS = 300
};

/* Takes clients, greets them, and leaves at once: its close may come in one piece with its greeting. */
static void *desert(void *user)
{
	const int listener = *(const int *)user;

	for (int i = 0; i < DESERTIONS; i++) {
		const struct tdm_link_options options = { .secret = NULL };
		struct tdm_frame frame;
		struct tdm_peer peer;
		int fd;

		if (tdm_socket_wait(listener, TDM_WAIT_READ, -1, tdm_deadline_ns(10000)) !=
				TDM_OK ||
			tdm_socket_accept(listener, &fd, &peer, NULL) != TDM_OK) {
			return NULL;
		}
		struct tdm_link *link = tdm_link_create(fd, TDM_ROLE_SERVER, &options, NULL);

		while (link && !tdm_link_is_ready(link) &&
			tdm_link_receive(link, &frame, tdm_deadline_ns(10000), -1, NULL) ==
				TDM_OK) {
		}
		tdm_link_destroy(link);
	}
	return NULL;
}

static void a_service_that_leaves_at_its_greeting_is_a_fault_and_no_end(void **state)
{
	const struct tdm_link_options options = { .secret = NULL };
	struct tdm_buffer open = { .cap = 4096 };
	struct tdm_address address;
	char folder[] = "/tmp/test_sync_link.XXXXXX", text[64];
	pthread_t thread;
	int listener;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(text, sizeof(text), "unix:%s/s", folder);
	assert_int_equal(tdm_address_parse(text, TDM_ADDRESS_LISTEN, &address, NULL), TDM_OK);
	assert_int_equal(tdm_socket_listen(&address, &listener, NULL), TDM_OK);
	assert_int_equal(tdm_open_put(&open, TDM_PURPOSE_CORRECTIONS, 0), TDM_OK);
	assert_int_equal(pthread_create(&thread, NULL, desert, &listener), 0);
	for (int i = 0; i < DESERTIONS; i++) {
		struct tdm_link *link = NULL;
		struct tdm_error err = { .status = TDM_OK };

		assert_int_equal(tdm_link_open(&address, &options, &open, tdm_deadline_ns(10000), 0,
					 &link, NULL, &err),
			TDM_ERR_PEER);
		assert_null(link);
		assert_true(strlen(err.text) > strlen(text));
	}
	pthread_join(thread, NULL);
	tdm_buffer_release(&open);
	close(listener);
	unlink(text + strlen("unix:"));
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_prove_the_same_secret),
		cmocka_unit_test(a_wrong_secret_ends_both_with_one_reason),
		cmocka_unit_test(no_secret_is_no_proof),
		cmocka_unit_test(a_client_with_a_secret_does_not_talk_to_a_server_without),
		cmocka_unit_test(without_secrets_frames_pass_bare),
		cmocka_unit_test(a_frame_is_taken_once_and_a_replayed_one_is_not),
		cmocka_unit_test(every_changed_byte_of_a_frame_is_seen),
		cmocka_unit_test(a_frame_left_out_is_seen_at_the_next),
		cmocka_unit_test(a_clients_proof_sent_back_to_it_proves_nothing),
		cmocka_unit_test(a_recorded_handshake_does_not_open_a_second_time),
		cmocka_unit_test(a_frame_out_of_order_ends_the_connection),
		cmocka_unit_test(a_stranger_gets_no_more_memory_than_a_greeting),
		cmocka_unit_test(close_is_told_from_a_connection_that_broke),
		cmocka_unit_test(waiting_ends_at_the_deadline),
		cmocka_unit_test(a_service_that_leaves_at_its_greeting_is_a_fault_and_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
