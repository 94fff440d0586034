/* SPDX-License-Identifier: MIT */
#include "agent_clock.h"
#include "host_clock.h"
#include "tdm_cmocka.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/tandem-host-clock-XXXXXX";

static void write_file(const char *name, const void *bytes, size_t size)
{
	char path[256];

	assert_true(snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path));

	const int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, size, 0), size);
	close(fd);
}

static void make_ptp(const char *name, const char *clock_name)
{
	char path[256], file[64];

	assert_true(snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path));
	mkdir(path, 0700);
	assert_true(snprintf(file, sizeof(file), "%s/clock_name", name) < (int)sizeof(file));
	write_file(file, clock_name, strlen(clock_name));
}

static void only_the_clock_of_kvms_host_is_opened(void **state)
{
	char dev[128];

	(void)state;
	snprintf(dev, sizeof(dev), "%s/dev", dir);
	mkdir(dev, 0700);
	assert_int_equal(host_clock_open("/nonexistent", dev), -1);
	make_ptp("ptp0", "some network card\n");
	write_file("dev/ptp0", "0", 1);
	assert_int_equal(host_clock_open(dir, dev), -1);
	make_ptp("ptp1", "KVM virtual PTP of another kind\n");
	write_file("dev/ptp1", "1", 1);
	assert_int_equal(host_clock_open(dir, dev), -1);
	make_ptp("ptp3", "KVM virtual PTP\n");
	assert_int_equal(host_clock_open(dir, dev), -1);
	write_file("dev/ptp3", "3", 1);

	const int fd = host_clock_open(dir, dev);
	char byte = 0;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, '3');

	/* A file is no clock. */
	struct tdm_local_clock clock = { .trace = TDM_CLOCK_MONO, .raw = TDM_CLOCK_RAW };
	struct host_pair pair;

	assert_false(host_clock_read(host_clock_id(fd), &clock, &pair));
	close(fd);
}

/* This machine's own CLOCK_REALTIME stands in for the host's. */
static void a_reading_lies_between_our_own(void **state)
{
	struct tdm_local_clock clock = { .trace = TDM_CLOCK_MONO, .raw = TDM_CLOCK_RAW };
	struct host_pair pair;

	(void)state;
	for (int i = 0; i < 100; i++) {
		const uint64_t before_ns = tdm_clock_read(TDM_CLOCK_REAL);

		assert_true(host_clock_read(CLOCK_REALTIME, &clock, &pair));
		assert_true(before_ns <= pair.host_ns);
		assert_true(pair.host_ns <= tdm_clock_read(TDM_CLOCK_REAL));
		assert_true(pair.before.raw <= pair.after.raw);
		assert_true(pair.before.trace <= pair.after.trace);
	}
}

/* The page as linux/vmclock-abi.h lays it out; what is looked at of it. */
struct page {
	uint8_t bytes[4096];
};

static void put(struct page *page, size_t at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		page->bytes[at + i] = (uint8_t)(value >> (8 * i));
	}
}

static void the_disruption_marker_is_read_where_the_page_is_one(void **state)
{
	struct page page = { { 0 } };
	struct vm_clock clock;
	char path[256];
	uint64_t marker;

	(void)state;
	vm_clock_open(&clock, "/nonexistent");
	assert_false(vm_clock_marker(&clock, &marker));
	vm_clock_release(&clock);

	snprintf(path, sizeof(path), "%s/vmclock", dir);
	write_file("vmclock", &page, 20);
	vm_clock_open(&clock, path);
	assert_null(clock.page);
	write_file("vmclock", &page, sizeof(page));
	vm_clock_open(&clock, path);
	assert_null(clock.page);

	put(&page, 0, 0x4b4c4356, 4);
	put(&page, 4, sizeof(page), 4);
	put(&page, 8, 1, 2);
	put(&page, 12, 6, 4);
	put(&page, 16, 0x1122334455667788, 8);
	write_file("vmclock", &page, sizeof(page));
	vm_clock_open(&clock, path);
	assert_true(vm_clock_marker(&clock, &marker));
	assert_int_equal(marker, 0x1122334455667788);

	/* While it is written, and where that never ends: none, in no time. */
	put(&page, 12, 7, 4);
	write_file("vmclock", &page, sizeof(page));
	assert_false(vm_clock_marker(&clock, &marker));
	vm_clock_release(&clock);
}

static void a_migration_is_counted_once_and_is_an_epoch_of_every_clock(void **state)
{
	struct page page = { { 0 } };
	struct agent_clock clock;
	char path[256];

	(void)state;
	agent_clock_init(&clock);
	assert_int_equal(agent_clock_disruptions(&clock), 0);
	vm_clock_release(&clock.vm);

	snprintf(path, sizeof(path), "%s/vmclock", dir);
	put(&page, 0, 0x4b4c4356, 4);
	put(&page, 4, sizeof(page), 4);
	put(&page, 16, 41, 8);
	write_file("vmclock", &page, sizeof(page));
	vm_clock_open(&clock.vm, path);
	clock.has_vm_marker = vm_clock_marker(&clock.vm, &clock.vm_marker);
	assert_int_equal(agent_clock_disruptions(&clock), 0);
	put(&page, 16, 42, 8);
	put(&page, 12, 2, 4);
	write_file("vmclock", &page, sizeof(page));
	assert_int_equal(agent_clock_disruptions(&clock), 1);
	assert_int_equal(agent_clock_disruptions(&clock), 1);
	assert_int_equal(agent_clock_epoch(TDM_CLOCK_MONO, 0, 0, 1), 1);
	assert_int_equal(agent_clock_epoch(TDM_CLOCK_TSC, 0, 0, 1), 1);
	agent_clock_release(&clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_clock_of_kvms_host_is_opened),
		cmocka_unit_test(a_reading_lies_between_our_own),
		cmocka_unit_test(the_disruption_marker_is_read_where_the_page_is_one),
		cmocka_unit_test(a_migration_is_counted_once_and_is_an_epoch_of_every_clock),
	};

	if (!mkdtemp(dir)) {
		return 1;
	}

	const int status = cmocka_run_group_tests(tests, NULL, NULL);
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) == 0 ? status : 1;
}
