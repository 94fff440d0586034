/* SPDX-License-Identifier: MIT */
#include "decode/ring_page_priv.h"
#include "tdm_cmocka.h"
#include "tracedat_builder.h"
#include <stdlib.h>
#include <string.h>

static const struct dat_layout layouts[] = {
	{ 7, false, 8, 4096, "none" },
	{ 7, true, 8, 4096, "none" },
	{ 7, false, 4, 4096, "none" },
	{ 7, true, 4, 65536, "none" },
};

enum {
	LAYOUTS = sizeof(layouts) / sizeof(layouts[0]),
	SLOTS = 4096
};

static struct tdm_slot slots[SLOTS];

static struct ring_layout ring_of(const struct dat_layout *layout)
{
	return (struct ring_layout){
		.big_endian = layout->big_endian,
		.commit_bytes = (uint8_t)layout->long_bytes,
		.header_bytes = (uint16_t)(8 + layout->long_bytes),
	};
}

/* Begins and walks one page; the number of records. */
static size_t walk(const struct dat_pages *pages, size_t size, struct ring_page *page,
	struct ring_fault *fault)
{
	const struct ring_layout ring = ring_of(pages->layout);

	if (!ring_page_begin(&ring, pages->bytes.bytes, size, page, fault)) {
		return 0;
	}
	return ring_page_walk(&ring, page, slots, SLOTS, fault);
}

static void every_kind_of_record_is_read_in_every_layout(void **state)
{
	(void)state;
	for (size_t i = 0; i < LAYOUTS; i++) {
		struct dat_pages pages = { .layout = &layouts[i] };
		struct ring_page page;
		struct ring_fault fault;
		const uint8_t large[200] = { layouts[i].big_endian ? 0 : 9,
			layouts[i].big_endian ? 9 : 0 };

		page_begin(&pages, 1000);
		page_tick(&pages, 0, 1, 5);                         /* 1000 */
		page_tick(&pages, 7, 2, 6);                         /* 1007 */
		page_extend(&pages, (1ull << 35) + 3);              /* no record */
		page_tick(&pages, 1, 3, 7);                         /* 2^35 + 1011 */
		page_discarded(&pages, 10, 12);                     /* its delta counts */
		page_record(&pages, 1, large, sizeof(large), true); /* 2^35 + 1022 */
		page_record(&pages, 0, large, 5, false);
		page_stamp(&pages, (1ull << 40) + 17);
		page_tick(&pages, 2, 4, 8); /* 2^40 + 19 */
		page_null(&pages);
		page_end(&pages);
		assert_int_equal(walk(&pages, pages.bytes.size, &page, &fault), 6);
		assert_null(fault.text);
		assert_true(slots[0].raw_time == 1000);
		assert_true(slots[1].raw_time == 1007);
		assert_true(slots[2].raw_time == (1ull << 35) + 1011);
		assert_true(slots[3].raw_time == (1ull << 35) + 1022);
		assert_int_equal(slots[3].payload_bytes, 200);
		assert_int_equal(slots[3].event_id, 9);
		assert_memory_equal(slots[3].payload, large, sizeof(large));
		assert_int_equal(slots[4].payload_bytes, 8);
		assert_true(slots[5].raw_time == (1ull << 40) + 19);
		assert_int_equal(slots[5].event_id, 10);
		tdm_buffer_release(&pages.bytes);
	}
}

static void an_absolute_stamp_keeps_the_top_five_bits(void **state)
{
	struct dat_pages pages = { .layout = &layouts[0] };
	const uint64_t top = 0xf8ull << 56;
	struct ring_page page;
	struct ring_fault fault;

	(void)state;
	page_begin(&pages, top + 100);
	page_stamp(&pages, 200);
	page_tick(&pages, 5, 1, 1);
	page_end(&pages);
	assert_int_equal(walk(&pages, pages.bytes.size, &page, &fault), 1);
	assert_true(slots[0].raw_time == top + 205);
	tdm_buffer_release(&pages.bytes);
}

static void lost_events_belong_to_the_page_even_behind_a_time_extend(void **state)
{
	(void)state;
	for (size_t i = 0; i < LAYOUTS; i++) {
		for (uint64_t count = 0; count <= 77; count += 77) {
			struct dat_pages pages = { .layout = &layouts[i] };
			struct ring_page page;
			struct ring_fault fault;

			page_begin(&pages, 1);
			pages.lost = true;
			pages.lost_count = count;
			page_extend(&pages, 1 << 28);
			page_tick(&pages, 0, 1, 1);
			page_end(&pages);
			assert_int_equal(walk(&pages, pages.bytes.size, &page, &fault), 1);
			assert_true(page.lost);
			assert_true(page.lost_count == count);
			tdm_buffer_release(&pages.bytes);
		}
	}
}

/* A page of ticks in which one word is changed. */
static size_t walk_changed(size_t at, uint32_t value, struct ring_fault *fault)
{
	struct dat_pages pages = { .layout = &layouts[0] };
	struct ring_page page;

	page_begin(&pages, 1000);
	page_tick(&pages, 0, 1, 1);
	page_tick(&pages, 1, 1, 2);
	page_discarded(&pages, 1, 8);
	page_tick(&pages, 1, 1, 3);
	page_end(&pages);
	dat_patch_u32(&pages.bytes, &layouts[0], at, value);

	const size_t count = walk(&pages, pages.bytes.size, &page, fault);

	tdm_buffer_release(&pages.bytes);
	return count;
}

static void damage_ends_the_page_and_keeps_the_records_before(void **state)
{
	struct ring_fault fault;
	/* Header 16 bytes, two ticks of 20, then the discarded record. */
	const size_t second = 16 + 20, discarded = 16 + 40;

	(void)state;
	assert_int_equal(walk_changed(0, 1000, &fault), 3);
	assert_null(fault.text);
	/* A discarded record of length -4 made the reference reader hang. */
	assert_int_equal(walk_changed(discarded + 4, (uint32_t)-4, &fault), 2);
	assert_non_null(fault.text);
	assert_int_equal(fault.at, discarded);
	assert_int_equal(walk_changed(discarded + 4, 0, &fault), 2);
	assert_non_null(fault.text);
	/* A record of 112 bytes where 76 are left. */
	assert_int_equal(walk_changed(second, 28, &fault), 1);
	assert_non_null(fault.text);
	/* Commit: all ones with both flags, and just more than fits. */
	assert_int_equal(walk_changed(8, 0xc7ffffff, &fault), 0);
	assert_non_null(fault.text);
	assert_int_equal(walk_changed(8, 4081, &fault), 0);
	assert_non_null(fault.text);
	assert_int_equal(fault.want, 4080);
	/* The lost count behind a full page: the loss stands, its number is not known. */
	assert_int_equal(walk_changed(8, 0xc0000000u | 4080, &fault), 3);
	/* 3 bytes that are no record. */
	assert_int_equal(walk_changed(8, 43, &fault), 2);
	assert_non_null(fault.text);
}

static void a_page_cut_at_any_byte_is_survived(void **state)
{
	(void)state;
	for (size_t size = 0; size <= 100; size++) {
		struct dat_pages pages = { .layout = &layouts[0] };
		struct ring_page page;
		struct ring_fault fault;

		page_begin(&pages, 1000);
		page_tick(&pages, 0, 1, 1);
		page_extend(&pages, 12345678901);
		page_tick(&pages, 1, 1, 2);
		page_end(&pages);
		pages.bytes.bytes = realloc(pages.bytes.bytes, size ? size : 1);

		const size_t count = walk(&pages, size, &page, &fault);

		assert_int_equal(count, size < 16 + 48 ? 0 : 2);
		assert_true((fault.text != NULL) == (size < 16 + 48));
		free(pages.bytes.bytes);
	}
}

static void random_bytes_never_lead_outside(void **state)
{
	uint32_t seed = 12345;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint8_t *bytes = malloc(256);
		const struct ring_layout ring = ring_of(&layouts[round % LAYOUTS]);
		struct ring_page page;
		struct ring_fault fault;

		for (size_t i = 0; i < 256; i++) {
			seed = seed * 1664525 + 1013904223;
			bytes[i] = (uint8_t)(seed >> 24);
		}
		/* A size that fits, so that the walk begins. */
		bytes[ring.big_endian ? ring.header_bytes - 1 : 8] = 240;
		memset(bytes + (ring.big_endian ? ring.header_bytes - 4 : 9), 0, 3);
		if (ring_page_begin(&ring, bytes, 256, &page, &fault)) {
			const size_t count = ring_page_walk(&ring, &page, slots, SLOTS, &fault);

			for (size_t i = 0; i < count; i++) {
				assert_true(
					slots[i].payload >= bytes &&
					slots[i].payload + slots[i].payload_bytes <= bytes + 256);
			}
		}
		free(bytes);
	}
}

static void a_walk_in_small_steps_gives_the_same_records(void **state)
{
	struct dat_pages pages = { .layout = &layouts[0] };
	const struct ring_layout ring = ring_of(&layouts[0]);
	struct ring_page page;
	struct ring_fault fault;
	size_t total = 0, count;

	(void)state;
	pages_of_ticks(&pages, 1, 200, 5000);
	assert_true(ring_page_begin(&ring, pages.bytes.bytes, pages.bytes.size, &page, &fault));
	while ((count = ring_page_walk(&ring, &page, slots, 7, &fault))) {
		for (size_t i = 0; i < count; i++) {
			assert_true(slots[i].raw_time == 5000 + total);
			total++;
		}
	}
	assert_int_equal(total, 200);
	assert_null(fault.text);
	tdm_buffer_release(&pages.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_record_is_read_in_every_layout),
		cmocka_unit_test(an_absolute_stamp_keeps_the_top_five_bits),
		cmocka_unit_test(lost_events_belong_to_the_page_even_behind_a_time_extend),
		cmocka_unit_test(damage_ends_the_page_and_keeps_the_records_before),
		cmocka_unit_test(a_page_cut_at_any_byte_is_survived),
		cmocka_unit_test(random_bytes_never_lead_outside),
		cmocka_unit_test(a_walk_in_small_steps_gives_the_same_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
