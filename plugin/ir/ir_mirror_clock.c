/* SPDX-License-Identifier: MIT */
#include "ir/ir_mirror_priv.h"
#include <stdlib.h>

void ir_mirror_free_clock(struct ir_mirror *mirror, struct ir_mirror_clock *clock)
{
	mirror->ops->free_clock(mirror->owner, clock->data);
	bt_clock_class_put_ref(clock->in);
	bt_clock_class_put_ref(clock->out);
	free(clock);
	mirror->generation++;
}

void ir_mirror_sweep_clocks(struct ir_mirror *mirror)
{
	bool found = true;

	/* Removal moves slots: begin again after each. Clocks are few. */
	while (found) {
		found = false;
		for (size_t i = 0; i < mirror->clocks.room && !found; i++) {
			struct ir_mirror_clock *clock = mirror->clocks.slots[i].value;

			if (mirror->clocks.slots[i].key && clock->users == 0) {
				ir_table_remove(&mirror->clocks, clock->in);
				ir_mirror_free_clock(mirror, clock);
				found = true;
			}
		}
	}
}

/* Who the clock is and what it is called; how it runs is the owner's matter. */
static bool copy_identity(
	const struct ir_mirror *mirror, const bt_clock_class *in, bt_clock_class *out)
{
	const char *name = bt_clock_class_get_name(in);
	const char *description = bt_clock_class_get_description(in);
	bool good = true;

	if (name) {
		good = bt_clock_class_set_name(out, name) == BT_CLOCK_CLASS_SET_NAME_STATUS_OK;
	}
	if (description) {
		good = good && bt_clock_class_set_description(out, description) ==
				       BT_CLOCK_CLASS_SET_DESCRIPTION_STATUS_OK;
	}
	bt_clock_class_set_user_attributes(out, bt_clock_class_borrow_user_attributes_const(in));
	if (mirror->mip == 0) {
		bt_uuid uuid = bt_clock_class_get_uuid(in);

		if (uuid) {
			bt_clock_class_set_uuid(out, uuid);
		}
	}
#if TANDEM_HAVE_BT_2_1
	if (mirror->mip > 0) {
		const char *space = bt_clock_class_get_namespace(in);
		const char *uid = bt_clock_class_get_uid(in);

		if (space) {
			good = good && bt_clock_class_set_namespace(out, space) ==
					       BT_CLOCK_CLASS_SET_NAMESPACE_STATUS_OK;
		}
		if (uid) {
			good = good &&
			       bt_clock_class_set_uid(out, uid) == BT_CLOCK_CLASS_SET_UID_STATUS_OK;
		}
	}
#endif
	return good;
}

struct ir_mirror_clock *ir_mirror_clock(struct ir_mirror *mirror, const bt_clock_class *in)
{
	struct ir_mirror_clock *clock = ir_table_find(&mirror->clocks, in);

	if (clock) {
		return clock;
	}
	clock = calloc(1, sizeof(*clock));
	if (!clock) {
		return IR_FAIL(mirror, "No memory for a clock class");
	}
	clock->out = bt_clock_class_create(mirror->self);
	if (!clock->out || !copy_identity(mirror, in, clock->out)) {
		bt_clock_class_put_ref(clock->out);
		free(clock);
		return IR_FAIL(mirror, "No memory for a clock class");
	}
	if (!mirror->ops->make_clock(mirror->owner, in, clock->out, &clock->data)) {
		bt_clock_class_put_ref(clock->out);
		free(clock);
		return NULL;
	}
	clock->in = in;
	bt_clock_class_get_ref(in);
	if (!ir_table_add(&mirror->clocks, in, clock)) {
		ir_mirror_free_clock(mirror, clock);
		return IR_FAIL(mirror, "No memory for a clock class");
	}
	return clock;
}
