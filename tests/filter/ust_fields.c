/* SPDX-License-Identifier: MIT */
/*
 * ust_fields - records COUNT rounds of tracepoints with every kind of field, PAUSE_US apart.
 *
 * usage: ust_fields COUNT [PAUSE_US]
 */
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "ust_fields_tp.h"
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const uint8_t bytes[4] = { 0, 1, 0xfe, 0xff };
	static const int32_t numbers[4] = { INT32_MIN, -1, 0, INT32_MAX };
	const int count = argc > 1 ? atoi(argv[1]) : 1;
	const useconds_t pause_us = argc > 2 ? (useconds_t)atoi(argv[2]) : 0;

	for (int round = 0; round < count; round++) {
		lttng_ust_tracepoint(tandemtest, fields, round,
			round % 2 ? "text \"\xc3\xa4\"" : "abc", bytes, numbers);
		lttng_ust_tracepoint(tandemtest, empty);
		if (pause_us) {
			usleep(pause_us);
		}
	}
	return 0;
}
