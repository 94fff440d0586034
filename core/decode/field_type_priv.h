/* SPDX-License-Identifier: MIT */
/*
 * field_type_priv.h - what the name of a C type tells about the elements of a field.
 */
#ifndef TANDEM_FIELD_TYPE_PRIV_H
#define TANDEM_FIELD_TYPE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

struct field_type {
	uint32_t element_bytes; /* 0: the name does not tell */
	bool is_char, is_bool, is_wide, is_pointer, is_cpumask;
};

struct field_type field_type_from_name(const char *name, unsigned int long_bytes);

#endif
