/* SPDX-License-Identifier: MIT */
/*
 * ust_fields_tp.h - tracepoints with every kind of field that LTTng-UST can record.
 */
/* clang-format off */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tandemtest

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./ust_fields_tp.h"

#if !defined(UST_FIELDS_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define UST_FIELDS_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_ENUM(tandemtest, unsigned_kinds,
	LTTNG_UST_TP_ENUM_VALUES(
		lttng_ust_field_enum_value("ZERO", 0)
		lttng_ust_field_enum_range("SOME TO MANY", 1, 1000)
		lttng_ust_field_enum_value("overlap", 7)
		lttng_ust_field_enum_auto("AUTO")
	))

LTTNG_UST_TRACEPOINT_ENUM(tandemtest, signed_kinds,
	LTTNG_UST_TP_ENUM_VALUES(
		lttng_ust_field_enum_range("BELOW", -100, -1)
		lttng_ust_field_enum_value("HERE", 0)
	))

LTTNG_UST_TRACEPOINT_EVENT(tandemtest, fields,
	LTTNG_UST_TP_ARGS(int, round, const char *, text, const uint8_t *, bytes, const int32_t *, numbers),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int8_t, i8, (int8_t)-round)
		lttng_ust_field_integer(uint16_t, u16, (uint16_t)(round * 1000))
		lttng_ust_field_integer(int64_t, i64, INT64_MIN + round)
		lttng_ust_field_integer(uint64_t, u64, UINT64_MAX - (uint64_t)round)
		lttng_ust_field_integer_hex(uint32_t, hex, (uint32_t)round * 0x1111)
		lttng_ust_field_integer_network(uint16_t, net, 0x1234)
		lttng_ust_field_integer_network_hex(uint32_t, net_hex, 0x12345678)
		lttng_ust_field_float(float, f, (float)round / 3)
		lttng_ust_field_float(double, d, -1e200 / (round + 1))
		lttng_ust_field_string(s, text)
		lttng_ust_field_array(uint8_t, fixed, bytes, 4)
		lttng_ust_field_array_hex(uint8_t, fixed_hex, bytes, 4)
		lttng_ust_field_array_network_hex(uint16_t, fixed_net, (const uint16_t *)(const void *)bytes, 2)
		lttng_ust_field_array_text(char, fixed_text, text, 3)
		lttng_ust_field_sequence(int32_t, seq, numbers, size_t, (size_t)round % 4)
		lttng_ust_field_sequence_hex(uint8_t, seq_hex, bytes, uint16_t, (uint16_t)(round % 5))
		lttng_ust_field_sequence_network(uint16_t, seq_net, (const uint16_t *)(const void *)bytes, uint8_t, (uint8_t)(round % 3))
		lttng_ust_field_unused(round)
		lttng_ust_field_sequence_text(char, seq_text, text, size_t, 2)
		lttng_ust_field_enum(tandemtest, unsigned_kinds, uint32_t, ue, (uint32_t)round)
		lttng_ust_field_enum(tandemtest, signed_kinds, int, se, -round)
	))

LTTNG_UST_TRACEPOINT_EVENT(tandemtest, empty, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_LOGLEVEL(tandemtest, fields, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)
LTTNG_UST_TRACEPOINT_MODEL_EMF_URI(tandemtest, fields, "http://example.org/fields?a=b")

#endif
#include <lttng/tracepoint-event.h>
