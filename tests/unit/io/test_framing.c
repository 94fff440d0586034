/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdlib.h>
#include <string.h>
#include <tandem/framing.h>

/* Receives bytes in pieces of a given size; returns how many frames came out. */
static size_t feed(struct tdm_frame_reader *reader, const uint8_t *bytes, size_t size, size_t piece,
	size_t *body_bytes, enum tdm_status *last, struct tdm_error *err)
{
	size_t frames = 0;

	*body_bytes = 0;
	for (size_t at = 0; at < size;) {
		size_t room;
		uint8_t *to = tdm_frame_room(reader, &room);
		size_t count = size - at < piece ? size - at : piece;

		assert_true(room > 0);
		count = count < room ? count : room;
		memcpy(to, bytes + at, count);
		tdm_frame_received(reader, count);
		at += count;

		struct tdm_frame frame;

		while ((*last = tdm_frame_next(reader, &frame, err)) == TDM_OK) {
			frames++;
			*body_bytes += frame.size_bytes;
			for (uint32_t i = 0; i < frame.size_bytes; i++) {
				assert_int_equal(frame.body[i], (uint8_t)frame.type);
			}
		}
		if (*last != TDM_AGAIN) {
			break;
		}
	}
	return frames;
}

static void frames_come_out_whole_however_the_bytes_are_cut(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 96, 1000, 4096, 3 };
	static const size_t pieces[] = { 1, 7, 16, 17, 1000, 100000 };
	uint8_t stream[16384];
	size_t size = 0;

	(void)state;
	for (uint16_t i = 0; i < 6; i++) {
		tdm_frame_put_header(stream + size, (uint16_t)(i + 1), 0, sizes[i]);
		memset(stream + size + TDM_FRAME_HEADER_BYTES, i + 1, sizes[i]);
		size += TDM_FRAME_HEADER_BYTES + sizes[i];
	}
	for (size_t i = 0; i < 6; i++) {
		struct tdm_frame_reader reader;
		enum tdm_status last;
		size_t body_bytes;

		assert_int_equal(tdm_frame_reader_init(&reader, 4096), TDM_OK);
		assert_int_equal(
			feed(&reader, stream, size, pieces[i], &body_bytes, &last, NULL), 6);
		assert_int_equal(body_bytes, 5196);
		assert_int_equal(last, TDM_AGAIN);
		tdm_frame_reader_release(&reader);
	}
}

static void a_frame_over_the_limit_is_refused_by_its_header(void **state)
{
	uint8_t header[TDM_FRAME_HEADER_BYTES];
	struct tdm_frame_reader reader;
	struct tdm_error err;
	enum tdm_status last;
	size_t body_bytes;

	(void)state;
	assert_int_equal(tdm_frame_reader_init(&reader, 100), TDM_OK);
	tdm_frame_put_header(header, 9, 0, 101);
	feed(&reader, header, sizeof(header), 16, &body_bytes, &last, &err);
	assert_int_equal(last, TDM_ERR_PEER);
	assert_non_null(strstr(err.text, "type 9 has 101 bytes"));
	tdm_frame_reader_release(&reader);
}

static void garbage_is_refused_by_its_first_byte(void **state)
{
	struct tdm_frame_reader reader;
	enum tdm_status last;
	size_t body_bytes;

	(void)state;
	assert_int_equal(tdm_frame_reader_init(&reader, 100), TDM_OK);
	feed(&reader, (const uint8_t *)"G", 1, 1, &body_bytes, &last, NULL);
	assert_int_equal(last, TDM_ERR_PEER);
	tdm_frame_reader_release(&reader);
}

static void another_minor_version_is_taken_and_another_major_is_not(void **state)
{
	uint8_t header[TDM_FRAME_HEADER_BYTES];
	struct tdm_frame_reader reader;
	struct tdm_error err;
	enum tdm_status last;
	size_t body_bytes;

	(void)state;
	assert_int_equal(tdm_frame_reader_init(&reader, 100), TDM_OK);
	tdm_frame_put_header(header, 9, 0, 0);
	header[5] = 200;
	assert_int_equal(feed(&reader, header, 16, 16, &body_bytes, &last, &err), 1);
	header[4] = 2;
	assert_int_equal(feed(&reader, header, 16, 16, &body_bytes, &last, &err), 0);
	assert_int_equal(last, TDM_ERR_UNSUPPORTED);
	tdm_frame_reader_release(&reader);
}

static void bytes_survive_a_greater_limit(void **state)
{
	uint8_t bytes[TDM_FRAME_HEADER_BYTES + 500];
	struct tdm_frame_reader reader;
	enum tdm_status last;
	size_t body_bytes;

	(void)state;
	assert_int_equal(tdm_frame_reader_init(&reader, 100), TDM_OK);
	tdm_frame_put_header(bytes, 5, 0, 500);
	memset(bytes + 16, 5, 500);
	assert_int_equal(feed(&reader, bytes, 10, 10, &body_bytes, &last, NULL), 0);
	assert_int_equal(tdm_frame_reader_resize(&reader, 500), TDM_OK);
	assert_int_equal(
		feed(&reader, bytes + 10, sizeof(bytes) - 10, 90, &body_bytes, &last, NULL), 1);
	assert_int_equal(body_bytes, 500);
	tdm_frame_reader_release(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_out_whole_however_the_bytes_are_cut),
		cmocka_unit_test(a_frame_over_the_limit_is_refused_by_its_header),
		cmocka_unit_test(garbage_is_refused_by_its_first_byte),
		cmocka_unit_test(another_minor_version_is_taken_and_another_major_is_not),
		cmocka_unit_test(bytes_survive_a_greater_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
