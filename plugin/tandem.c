/* SPDX-License-Identifier: MIT */
/*
 * tandem.c - the plugin's component classes, all on one page.
 */
#include "compat.h"
#include "tandem_version.h"

BT_PLUGIN_MODULE();
BT_PLUGIN(tandem);
BT_PLUGIN_DESCRIPTION("Host and guest traces on one corrected timeline");
BT_PLUGIN_AUTHOR("The Tandem authors");
BT_PLUGIN_LICENSE("MIT");
BT_PLUGIN_VERSION(TDM_VERSION_MAJOR, TDM_VERSION_MINOR, TDM_VERSION_PATCH, NULL);
