/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdio.h>
#include <string.h>
#include <tandem/address.h>
#include <tandem/socket.h>

static void every_form_is_parsed_and_printed_the_same(void **state)
{
	static const char *const forms[] = { "tcp:127.0.0.1:9000", "tcp:[::1]:9000",
		"tcp:guest.example:1", "vsock:3:8990", "vsock:any:1", "unix:/run/tandem.sock" };
	struct tdm_address address;
	char text[320];

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		assert_int_equal(
			tdm_address_parse(forms[i], TDM_ADDRESS_LISTEN, &address, NULL), TDM_OK);
		tdm_address_print(&address, text, sizeof(text));
		assert_string_equal(text, forms[i]);
	}
}

static void a_port_that_is_not_written_is_8990(void **state)
{
	static const char *const forms[] = { "tcp:127.0.0.1", "tcp:[::1]", "vsock:3" };
	struct tdm_address address;

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		assert_int_equal(
			tdm_address_parse(forms[i], TDM_ADDRESS_CONNECT, &address, NULL), TDM_OK);
		assert_int_equal(address.port, 8990);
	}
}

static void what_is_no_address_is_refused_with_what_is_wanted(void **state)
{
	static const char *const forms[] = { "", "tcp", "tcp:", "tcp::1", "tcp:h:", "tcp:h:65536",
		"tcp:h:-1", "tcp:h:1x", "tcp:[::1", "tcp:[::1]x", "tcp:[]:1", "vsock:", "vsock:x:1",
		"vsock:4294967296:1", "vsock:3:4294967295", "vsock:99999999999999999999:1",
		"unix:", "udp:1.2.3.4:5", "127.0.0.1:5" };
	struct tdm_address address;

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tdm_error err = { 0 };

		if (tdm_address_parse(forms[i], TDM_ADDRESS_LISTEN, &address, &err) !=
			TDM_ERR_FORMAT) {
			fail_msg("taken: %s", forms[i]);
		}
		assert_non_null(strstr(err.text, "wanted"));
	}
}

static void a_socket_path_that_is_too_long_is_refused_not_cut(void **state)
{
	char text[200] = "unix:/";
	struct tdm_address address;
	struct tdm_error err;

	(void)state;
	memset(text + 6, 'x', 106);
	assert_int_equal(tdm_address_parse(text, TDM_ADDRESS_LISTEN, &address, &err), TDM_OK);
	text[112] = 'x';
	assert_int_equal(
		tdm_address_parse(text, TDM_ADDRESS_LISTEN, &address, &err), TDM_ERR_FORMAT);
	assert_non_null(strstr(err.text, "107"));
}

static void any_and_port_0_are_for_listening_only(void **state)
{
	struct tdm_address address;

	(void)state;
	assert_int_equal(tdm_address_parse("vsock:any:1", TDM_ADDRESS_CONNECT, &address, NULL),
		TDM_ERR_FORMAT);
	assert_int_equal(tdm_address_parse("tcp:127.0.0.1:0", TDM_ADDRESS_CONNECT, &address, NULL),
		TDM_ERR_FORMAT);
	assert_int_equal(
		tdm_address_parse("tcp:127.0.0.1:0", TDM_ADDRESS_LISTEN, &address, NULL), TDM_OK);
}

static void only_loopback_and_unix_are_local(void **state)
{
	static const struct {
		const char *text;
		bool is_local;
	} cases[] = { { "tcp:127.0.0.1:1", true }, { "tcp:127.9.9.9:1", true },
		{ "tcp:[::1]:1", true }, { "tcp:0.0.0.0:1", false }, { "tcp:[::]:1", false },
		{ "tcp:10.0.0.1:1", false }, { "vsock:any:1", false }, { "unix:/x", true } };
	struct tdm_address address;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			tdm_address_parse(cases[i].text, TDM_ADDRESS_LISTEN, &address, NULL),
			TDM_OK);
		assert_int_equal(tdm_address_is_local(&address), cases[i].is_local);
	}
}

static void a_name_becomes_a_number_and_a_number_stays(void **state)
{
	struct tdm_address address;

	(void)state;
	assert_int_equal(
		tdm_address_parse("tcp:localhost:1", TDM_ADDRESS_CONNECT, &address, NULL), TDM_OK);
	assert_int_equal(tdm_address_resolve(&address, NULL), TDM_OK);
	assert_true(tdm_address_is_local(&address));
	assert_int_equal(
		tdm_address_parse("tcp:[fe80::1]:1", TDM_ADDRESS_CONNECT, &address, NULL), TDM_OK);
	assert_int_equal(tdm_address_resolve(&address, NULL), TDM_OK);
	assert_string_equal(address.host, "fe80::1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_parsed_and_printed_the_same),
		cmocka_unit_test(a_port_that_is_not_written_is_8990),
		cmocka_unit_test(what_is_no_address_is_refused_with_what_is_wanted),
		cmocka_unit_test(a_socket_path_that_is_too_long_is_refused_not_cut),
		cmocka_unit_test(any_and_port_0_are_for_listening_only),
		cmocka_unit_test(only_loopback_and_unix_are_local),
		cmocka_unit_test(a_name_becomes_a_number_and_a_number_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
