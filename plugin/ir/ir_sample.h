/* SPDX-License-Identifier: MIT */
/*
 * ir_sample.h - what a sample of perf tells beside its record, as members of the event common context.
 */
#ifndef IR_SAMPLE_H
#define IR_SAMPLE_H

#include "ir_class.h"

/** Appends pid, guest and, where the input has them, callchain with its length. */
bool ir_sample_add_members(struct ir_trace *trace, bt_field_class *context);

/** Fills them; they are the last members of the context. @p sample NULL: as unknown. */
void ir_sample_fill(
	const struct ir_trace *trace, bt_field *context, const struct tdm_sample *sample);

#endif
