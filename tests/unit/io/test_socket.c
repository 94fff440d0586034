/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <tandem/socket.h>
#include <tandem/stamps.h>
#include <unistd.h>

struct pair {
	int listener, client, server;
	struct tdm_peer peer;
};

static struct pair make_pair(const char *text)
{
	struct pair pair;
	struct tdm_address address;
	struct tdm_error err;

	assert_int_equal(tdm_address_parse(text, TDM_ADDRESS_LISTEN, &address, &err), TDM_OK);
	assert_int_equal(tdm_socket_listen(&address, &pair.listener, &err), TDM_OK);
	assert_int_equal(
		tdm_socket_connect(&address, tdm_deadline_ns(2000), -1, &pair.client, &err),
		TDM_OK);
	while (tdm_socket_accept(pair.listener, &pair.server, &pair.peer, &err) == TDM_AGAIN) {
		tdm_socket_wait(pair.listener, TDM_WAIT_READ, -1, tdm_deadline_ns(1000));
	}
	return pair;
}

static void close_pair(struct pair *pair)
{
	close(pair->listener);
	close(pair->client);
	close(pair->server);
}

static int no_delay(int fd)
{
	int on = 0;
	socklen_t size = sizeof(on);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
	return on;
}

static void nagle_is_off_on_every_tcp_socket(void **state)
{
	static const char *const addresses[] = { "tcp:127.0.0.1:0", "tcp:[::1]:0" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct pair pair = make_pair(addresses[i]);

		assert_int_not_equal(no_delay(pair.client), 0);
		assert_int_not_equal(no_delay(pair.server), 0);
		assert_true(tdm_socket_is_undelayed(pair.server));
		assert_true(pair.peer.is_loopback);

		const int off = 0;

		setsockopt(pair.server, IPPROTO_TCP, TCP_NODELAY, &off, sizeof(off));
		assert_false(tdm_socket_is_undelayed(pair.server));
		close_pair(&pair);
	}
}

static void a_unix_peer_is_known_by_its_uid(void **state)
{
	char text[100];

	(void)state;
	snprintf(text, sizeof(text), "unix:/tmp/tandem-test-%d.sock", (int)getpid());

	struct pair pair = make_pair(text);

	assert_int_equal(pair.peer.uid, getuid());
	close_pair(&pair);
	unlink(text + 5);
}

static void a_path_left_behind_is_replaced_and_one_in_use_is_not(void **state)
{
	char text[100];
	struct tdm_address address;
	struct tdm_error err;
	int first, second;

	(void)state;
	snprintf(text, sizeof(text), "unix:/tmp/tandem-stale-%d.sock", (int)getpid());
	assert_int_equal(tdm_address_parse(text, TDM_ADDRESS_LISTEN, &address, &err), TDM_OK);
	assert_int_equal(tdm_socket_listen(&address, &first, &err), TDM_OK);
	assert_int_equal(tdm_socket_listen(&address, &second, &err), TDM_ERR_IO);
	close(first);
	assert_int_equal(tdm_socket_listen(&address, &second, &err), TDM_OK);
	close(second);
	unlink(text + 5);
}

static void a_peer_that_takes_nothing_ends_the_send_at_the_deadline(void **state)
{
	static uint8_t bytes[32 << 20];
	struct pair pair = make_pair("tcp:127.0.0.1:0");
	struct tdm_error err;

	(void)state;
	assert_int_equal(
		tdm_socket_send(pair.client, bytes, sizeof(bytes), tdm_deadline_ns(100), &err),
		TDM_ERR_PEER);
	assert_non_null(strstr(err.text, "takes no data"));
	close_pair(&pair);
}

static void a_peer_that_is_gone_is_told_from_one_that_is_silent(void **state)
{
	struct pair pair = make_pair("tcp:127.0.0.1:0");
	uint8_t byte;
	size_t got;

	(void)state;
	assert_int_equal(tdm_socket_receive(pair.client, &byte, 1, &got, NULL), TDM_AGAIN);
	tdm_socket_finish(pair.server);
	tdm_socket_wait(pair.client, TDM_WAIT_READ, -1, tdm_deadline_ns(1000));
	assert_int_equal(tdm_socket_receive(pair.client, &byte, 1, &got, NULL), TDM_END);
	close_pair(&pair);
}

static void nobody_there_is_an_error_that_names_the_address(void **state)
{
	struct pair pair = make_pair("tcp:127.0.0.1:0");
	struct tdm_address address;
	struct sockaddr_in at;
	socklen_t size = sizeof(at);
	struct tdm_error err;
	int fd;

	(void)state;
	assert_int_equal(getsockname(pair.listener, (struct sockaddr *)&at, &size), 0);
	close_pair(&pair);
	assert_int_equal(
		tdm_address_parse("tcp:127.0.0.1", TDM_ADDRESS_CONNECT, &address, NULL), TDM_OK);
	address.port = ntohs(at.sin_port);
	assert_int_equal(
		tdm_socket_connect(&address, tdm_deadline_ns(1000), -1, &fd, &err), TDM_ERR_IO);
	assert_non_null(strstr(err.text, "tcp:127.0.0.1:"));
}

static unsigned int stamping_flags(int fd)
{
	unsigned int flags = 0;
	socklen_t size = sizeof(flags);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, &size), 0);
	return flags;
}

static void stamps_are_never_set_on_unix_sockets(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(tdm_stamps_begin(fds[0], NULL), TDM_ERR_UNSUPPORTED);
	assert_int_equal(stamping_flags(fds[0]), 0);
	close(fds[0]);
	close(fds[1]);
}

static void a_message_is_stamped_when_sent_and_when_received(void **state)
{
	struct pair pair = make_pair("tcp:127.0.0.1:0");
	uint64_t got_ns, sent_ns = 0;
	uint32_t id = 0;
	uint8_t bytes[100] = { 0 };
	size_t got;

	(void)state;
	for (int round = 0; round < 2; round++) {
		assert_int_equal(tdm_stamps_begin(pair.client, NULL), TDM_OK);
		assert_int_equal(tdm_stamps_begin(pair.server, NULL), TDM_OK);
		/* The kernel switches its key on in a work queue: give it time. */
		usleep(50000);
		assert_int_equal(tdm_stamps_send(pair.client, bytes, sizeof(bytes), NULL), TDM_OK);
		tdm_socket_wait(pair.server, TDM_WAIT_READ, -1, tdm_deadline_ns(1000));
		assert_int_equal(
			tdm_stamps_receive(pair.server, bytes, sizeof(bytes), &got, &got_ns, NULL),
			TDM_OK);
		assert_int_equal(got, sizeof(bytes));
		for (int i = 0; i < 100 && !tdm_stamps_fetch_sent(pair.client, &id, &sent_ns);
			i++) {
			usleep(1000);
		}
		assert_int_equal(id, sizeof(bytes) - 1);
		assert_true(sent_ns > 0 && got_ns > 0 && sent_ns <= got_ns);
		tdm_stamps_end(pair.client);
		tdm_stamps_end(pair.server);
		assert_int_equal(stamping_flags(pair.client), 0);
		assert_int_equal(stamping_flags(pair.server), 0);
	}
	close_pair(&pair);
}

static void datagrams_pass_beside_a_connection(void **state)
{
	struct pair pair = make_pair("tcp:[::1]:0");
	uint16_t client_port, server_port;
	int client, server;
	uint8_t bytes[8] = { 1 };
	size_t got;

	(void)state;
	assert_int_equal(
		tdm_socket_datagram_beside(pair.client, &client_port, &client, NULL), TDM_OK);
	assert_int_equal(
		tdm_socket_datagram_beside(pair.server, &server_port, &server, NULL), TDM_OK);
	assert_int_equal(
		tdm_socket_datagram_connect(client, pair.client, server_port, NULL), TDM_OK);
	assert_int_equal(
		tdm_socket_datagram_connect(server, pair.server, client_port, NULL), TDM_OK);
	assert_int_equal(
		tdm_socket_send(client, bytes, sizeof(bytes), tdm_deadline_ns(100), NULL), TDM_OK);
	tdm_socket_wait(server, TDM_WAIT_READ, -1, tdm_deadline_ns(1000));
	assert_int_equal(tdm_socket_receive(server, bytes, sizeof(bytes), &got, NULL), TDM_OK);
	assert_int_equal(got, sizeof(bytes));
	close(client);
	close(server);
	close_pair(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nagle_is_off_on_every_tcp_socket),
		cmocka_unit_test(a_unix_peer_is_known_by_its_uid),
		cmocka_unit_test(a_path_left_behind_is_replaced_and_one_in_use_is_not),
		cmocka_unit_test(a_peer_that_takes_nothing_ends_the_send_at_the_deadline),
		cmocka_unit_test(a_peer_that_is_gone_is_told_from_one_that_is_silent),
		cmocka_unit_test(nobody_there_is_an_error_that_names_the_address),
		cmocka_unit_test(stamps_are_never_set_on_unix_sockets),
		cmocka_unit_test(a_message_is_stamped_when_sent_and_when_received),
		cmocka_unit_test(datagrams_pass_beside_a_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
