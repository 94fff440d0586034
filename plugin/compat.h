/* SPDX-License-Identifier: MIT */
/*
 * compat.h - babeltrace2's API, and what differs between its releases 2.0 and 2.1.
 *
 * Every file of the plugin includes babeltrace2 through this one.
 */
#ifndef PLUGIN_COMPAT_H
#define PLUGIN_COMPAT_H

#include <babeltrace2/babeltrace.h>
#include <stdint.h>

/* Neither release has a version macro; this one is new in 2.1. */
#ifdef BT_FIELD_LOCATION_PUT_REF_AND_RESET
#define TANDEM_HAVE_BT_2_1 1
#else
#define TANDEM_HAVE_BT_2_1 0
#endif

/* The greatest message interchange protocol version that this build speaks. */
#define TANDEM_MIP_MAX TANDEM_HAVE_BT_2_1

static inline void compat_clock_class_set_unix_epoch(bt_clock_class *clock_class)
{
#if TANDEM_HAVE_BT_2_1
	bt_clock_class_set_origin_unix_epoch(clock_class);
#else
	bt_clock_class_set_origin_is_unix_epoch(clock_class, BT_TRUE);
#endif
}

#endif
