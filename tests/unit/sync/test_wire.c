/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <string.h>
#include <tandem/wire.h>

static const struct tdm_message full = { .type = TDM_MESSAGE_REPLY,
	.flags = TDM_MESSAGE_HAS_RAW | TDM_MESSAGE_STAMPED,
	.session = 0x01020304,
	.epoch = 5,
	.sequence = 0x1112131415161718,
	.h1 = 100,
	.g2 = 200,
	.g3 = 300,
	.g2_raw = 400,
	.g3_raw = 500,
	.received_ns = 600,
	.sent_ns = 700,
	.sent_sequence = 0x15161717,
	.cpu = 3,
	.clocks = TDM_MESSAGE_HAS_RAW << 8 | 2,
	.frequency = -65536 };

static void a_message_survives_the_wire(void **state)
{
	uint8_t bytes[TDM_MESSAGE_BYTES];
	struct tdm_message got;

	(void)state;
	memset(&got, 0, sizeof(got));
	tdm_message_put(bytes, &full);
	assert_int_equal(tdm_message_get(bytes, sizeof(bytes), &got, NULL), TDM_OK);
	assert_int_equal(got.type, full.type);
	assert_int_equal(got.flags, full.flags);
	assert_int_equal(got.session, full.session);
	assert_int_equal(got.epoch, full.epoch);
	assert_true(got.sequence == full.sequence);
	assert_true(got.h1 == 100 && got.g2 == 200 && got.g3 == 300);
	assert_true(got.g2_raw == 400 && got.g3_raw == 500);
	assert_true(got.received_ns == 600 && got.sent_ns == 700);
	assert_int_equal(got.sent_sequence, full.sent_sequence);
	assert_int_equal(got.cpu, 3);
	assert_int_equal(got.clocks, full.clocks);
	assert_int_equal(got.frequency, -65536);
}

static void fields_stand_where_the_document_says(void **state)
{
	uint8_t bytes[TDM_MESSAGE_BYTES];

	(void)state;
	tdm_message_put(bytes, &full);
	assert_memory_equal(
		bytes, "TNDX\1\2\5\0\4\3\2\1\5\0\0\0\x18\x17\x16\x15\x14\x13\x12\x11", 24);
	assert_int_equal(bytes[24], 100);
	assert_int_equal(bytes[32], 200);
	assert_int_equal(bytes[40], 300 - 256);
	assert_int_equal(bytes[48], 400 - 256);
	assert_int_equal(bytes[56], 500 - 256);
	assert_int_equal(bytes[64], 600 - 512);
	assert_int_equal(bytes[72], 700 - 512);
	assert_int_equal(bytes[80], 0x17);
	assert_int_equal(bytes[84], 3);
	assert_int_equal(bytes[86], 2);
	assert_memory_equal(bytes + 88, "\0\0\xff\xff", 4);
}

static void every_flipped_bit_of_a_message_is_seen(void **state)
{
	uint8_t bytes[TDM_MESSAGE_BYTES];
	struct tdm_message got;

	(void)state;
	tdm_message_put(bytes, &full);
	for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(tdm_message_get(bytes, sizeof(bytes), &got, NULL), TDM_ERR_PEER);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void another_size_or_a_huge_reading_is_refused(void **state)
{
	uint8_t bytes[TDM_MESSAGE_BYTES + 1] = { 0 };
	struct tdm_message got, huge = full;

	(void)state;
	tdm_message_put(bytes, &full);
	assert_int_equal(tdm_message_get(bytes, TDM_MESSAGE_BYTES - 1, &got, NULL), TDM_ERR_PEER);
	assert_int_equal(tdm_message_get(bytes, TDM_MESSAGE_BYTES + 1, &got, NULL), TDM_ERR_PEER);
	huge.g3_raw = TDM_READING_MAX;
	tdm_message_put(bytes, &huge);
	assert_int_equal(tdm_message_get(bytes, TDM_MESSAGE_BYTES, &got, NULL), TDM_ERR_PEER);
	huge.g3_raw = TDM_READING_MAX - 1;
	tdm_message_put(bytes, &huge);
	assert_int_equal(tdm_message_get(bytes, TDM_MESSAGE_BYTES, &got, NULL), TDM_OK);
}

static void the_checksum_is_castagnolis(void **state)
{
	uint8_t bytes[32];

	(void)state;
	assert_int_equal(tdm_crc32c("123456789", 9), 0xe3069283);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(tdm_crc32c(bytes, sizeof(bytes)), 0x8a9136aa); /* RFC 3720, B.4 */
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(tdm_crc32c(bytes, sizeof(bytes)), 0x62a8ab43);
}

static void hello_is_taken_longer_but_not_shorter(void **state)
{
	struct tdm_hello hello = { .capabilities = 5, .flags = 2, .program = "tandem 9" };
	struct tdm_hello got;
	uint8_t bytes[TDM_HELLO_BYTES + 10] = { 0 };

	(void)state;
	memset(hello.nonce, 7, sizeof(hello.nonce));
	tdm_hello_put(bytes, &hello);
	assert_int_equal(tdm_hello_get(bytes, sizeof(bytes), &got, NULL), TDM_OK);
	assert_int_equal(got.capabilities, 5);
	assert_string_equal(got.program, "tandem 9");
	assert_int_equal(tdm_hello_get(bytes, TDM_HELLO_BYTES - 1, &got, NULL), TDM_ERR_PEER);
}

static void open_carries_lines_and_unknown_ones_do_no_harm(void **state)
{
	struct tdm_buffer body = { 0 };
	struct tdm_open open;
	char value[TDM_VALUE_MAX + 1];
	uint64_t number;

	(void)state;
	tdm_open_put(&body, TDM_PURPOSE_STREAM, 77);
	tdm_record_add(&body, "future", "whatever");
	tdm_record_add(&body, "clock", "mono\nevent evil");
	tdm_record_add(&body, "event", "sched:*");
	tdm_record_add(&body, "event", "kvm:*");
	tdm_record_add(&body, "buffer-kib", "18446744073709551615");
	tdm_record_add(&body, "cpu", "18446744073709551616");
	assert_int_equal(tdm_open_get(body.bytes, body.size, &open, NULL), TDM_OK);
	assert_int_equal(open.session, 77);
	assert_int_equal(open.purpose, TDM_PURPOSE_STREAM);
	assert_true(tdm_record_find(open.text, open.text_bytes, "clock", 0, value));
	assert_string_equal(value, "mono");
	assert_true(tdm_record_find(open.text, open.text_bytes, "event", 1, value));
	assert_string_equal(value, "kvm:*");
	assert_false(tdm_record_find(open.text, open.text_bytes, "event", 2, value));
	assert_true(tdm_record_find_number(open.text, open.text_bytes, "buffer-kib", 0, &number));
	assert_true(number == UINT64_MAX);
	assert_false(tdm_record_find_number(open.text, open.text_bytes, "cpu", 0, &number));
	assert_false(tdm_record_find_number(open.text, open.text_bytes, "clock", 0, &number));
	tdm_buffer_release(&body);
}

static void an_open_that_is_cut_or_of_unknown_purpose_is_refused(void **state)
{
	static const uint8_t unknown[8] = { 9 };
	struct tdm_open open;

	(void)state;
	assert_int_equal(tdm_open_get(unknown, 7, &open, NULL), TDM_ERR_PEER);
	assert_int_equal(tdm_open_get(unknown, 8, &open, NULL), TDM_ERR_UNSUPPORTED);
}

static void a_peers_text_cannot_control_a_terminal(void **state)
{
	char text[8];

	(void)state;
	tdm_text_clean(text, sizeof(text), (const uint8_t *)"\x1b[2J\nabcdef", 11);
	assert_string_equal(text, "?[2J?ab");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_survives_the_wire),
		cmocka_unit_test(fields_stand_where_the_document_says),
		cmocka_unit_test(every_flipped_bit_of_a_message_is_seen),
		cmocka_unit_test(another_size_or_a_huge_reading_is_refused),
		cmocka_unit_test(the_checksum_is_castagnolis),
		cmocka_unit_test(hello_is_taken_longer_but_not_shorter),
		cmocka_unit_test(open_carries_lines_and_unknown_ones_do_no_harm),
		cmocka_unit_test(an_open_that_is_cut_or_of_unknown_purpose_is_refused),
		cmocka_unit_test(a_peers_text_cannot_control_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
