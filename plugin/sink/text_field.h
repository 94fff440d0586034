/* SPDX-License-Identifier: MIT */
/*
 * text_field.h - a babeltrace2 field of any class as text.
 */
#ifndef TEXT_FIELD_H
#define TEXT_FIELD_H

#include "compat.h"
#include <tandem/buffer.h>

/** Appends the value of a field; structures as "name=value name=value", nested ones in braces. */
void text_field_append(struct tdm_buffer *out, const bt_field *field);

#endif
