/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <ctf_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <unistd.h>

static void a_header_is_short_while_time_is_near(void **state)
{
	const struct tdm_ctf_layout compact = { .compact = true };
	const struct tdm_ctf_layout large = { .compact = false };
	uint8_t bytes[32];

	(void)state;
	assert_int_equal(tdm_ctf_event_header(&compact, bytes, 30, 1000, 999) - bytes, 4);
	assert_int_equal(tdm_load_u32(bytes, false), 1000u << 5 | 30);
	assert_int_equal(tdm_ctf_event_header(&compact, bytes, 30, 1u << 27, 0) - bytes, 13);
	assert_int_equal(bytes[0], 31);
	assert_int_equal(tdm_load_u64(bytes + 5, false), 1u << 27);
	assert_int_equal(tdm_ctf_event_header(&large, bytes, 500, UINT32_MAX, 0) - bytes, 6);
	assert_int_equal(
		tdm_ctf_event_header(&large, bytes, 500, UINT64_C(1) << 32, 0) - bytes, 14);
	assert_int_equal(tdm_load_u16(bytes, false), UINT16_MAX);
}

static void put_events(struct tdm_ctf_stream *stream, unsigned int count, uint64_t time)
{
	struct tdm_error err = { 0 };

	for (unsigned int i = 0; i < count; i++) {
		if (stream->at >= stream->full) {
			assert_int_equal(tdm_ctf_stream_flush(stream, &err), TDM_OK);
		}
		tdm_ctf_stream_begin_event(stream, time + i);
		stream->at = tdm_ctf_event_header(
			stream->layout, stream->at, 1, time + i, stream->last_time);
		memset(stream->at, (int)i, 1000);
		stream->at += 1000;
		stream->last_time = time + i;
	}
}

/* A packet put at the start of a file that has several, with too little and with enough room reserved. */
static void a_packet_can_be_put_at_the_start(void **state)
{
	static const uint64_t reserves[] = { 0, 10, 8192 };
	const struct tdm_ctf_layout layout = { .compact = true };
	char path[] = "/tmp/tandem-test-XXXXXX";
	const int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof(reserves) / sizeof(reserves[0]); i++) {
		struct tdm_ctf_stream stream;
		struct tdm_error err = { 0 };
		uint8_t content[500] = { 7 };
		static uint8_t file[2 << 20];
		uint64_t at = 0;
		unsigned int packets = 0;

		unlink(path);
		assert_int_equal(
			tdm_ctf_stream_init(&stream, &layout, path, 3, reserves[i]), TDM_OK);
		put_events(&stream, 600, 5000);
		assert_int_equal(tdm_ctf_stream_finish(&stream, &err), TDM_OK);
		assert_int_equal(
			tdm_ctf_stream_put_head(&stream, content, sizeof(content), 4999, &err),
			TDM_OK);

		FILE *const read = fopen(path, "rb");
		const size_t size = fread(file, 1, sizeof(file), read);

		fclose(read);
		for (; at < size; packets++) {
			const uint64_t begin =
				tdm_load_u64(file + at + TDM_CTF_PACKET_HEADER_BYTES, false);

			assert_int_equal(tdm_load_u32(file + at, false), TDM_CTF_MAGIC);
			assert_int_equal(
				tdm_load_u32(file + at + TDM_CTF_PACKET_HEAD_BYTES - 4, false), 3);
			assert_true(packets == 0 ? begin == 4999 : begin >= 5000);
			at += tdm_load_u64(file + at + TDM_CTF_PACKET_HEADER_BYTES + 24, false) / 8;
		}
		assert_int_equal(at, size);
		assert_int_equal(packets, 4);
		assert_int_equal(file[TDM_CTF_PACKET_HEAD_BYTES], 7);
		tdm_ctf_stream_release(&stream);
	}
	unlink(path);
}

static void a_stream_without_events_makes_no_file(void **state)
{
	const struct tdm_ctf_layout layout = { .compact = true };
	struct tdm_ctf_stream stream;
	struct tdm_error err = { 0 };

	(void)state;
	assert_int_equal(
		tdm_ctf_stream_init(&stream, &layout, "/tmp/tandem-test-none", 0, 100), TDM_OK);
	assert_int_equal(tdm_ctf_stream_finish(&stream, &err), TDM_OK);
	assert_int_equal(access("/tmp/tandem-test-none", F_OK), -1);
	tdm_ctf_stream_release(&stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_short_while_time_is_near),
		cmocka_unit_test(a_packet_can_be_put_at_the_start),
		cmocka_unit_test(a_stream_without_events_makes_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
