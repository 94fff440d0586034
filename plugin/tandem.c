/* SPDX-License-Identifier: MIT */
/*
 * tandem.c - the plugin's component classes, all on one page.
 */
#include "clock/flt_priv.h"
#include "compat.h"
#include "sink/text_sink.h"
#include "source/src_component.h"
#include "source/src_live.h"
#include "source/src_perf.h"
#include "source/src_tracedat.h"
#include "tandem_version.h"

BT_PLUGIN_MODULE();
BT_PLUGIN(tandem);
BT_PLUGIN_DESCRIPTION("Host and guest traces on one corrected timeline");
BT_PLUGIN_AUTHOR("The Tandem authors");
BT_PLUGIN_LICENSE("MIT");
BT_PLUGIN_VERSION(TDM_VERSION_MAJOR, TDM_VERSION_MINOR, TDM_VERSION_PATCH, NULL);

BT_PLUGIN_FILTER_COMPONENT_CLASS(clock, flt_iterator_next);
BT_PLUGIN_FILTER_COMPONENT_CLASS_DESCRIPTION(
	clock, "Bring a guest's stamps onto its host's timeline, before the muxer");
BT_PLUGIN_FILTER_COMPONENT_CLASS_HELP(
	clock, "See the babeltrace2-filter.tandem.clock(7) manual page.");
BT_PLUGIN_FILTER_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(clock, flt_supported_mip);
BT_PLUGIN_FILTER_COMPONENT_CLASS_INITIALIZE_METHOD(clock, flt_initialize);
BT_PLUGIN_FILTER_COMPONENT_CLASS_FINALIZE_METHOD(clock, flt_finalize);
BT_PLUGIN_FILTER_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD(
	clock, flt_iterator_initialize);
BT_PLUGIN_FILTER_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_FINALIZE_METHOD(
	clock, flt_iterator_finalize);
BT_PLUGIN_FILTER_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHODS(
	clock, flt_iterator_seek, flt_iterator_can_seek);

BT_PLUGIN_SOURCE_COMPONENT_CLASS(tracedat, src_iterator_next);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_DESCRIPTION(
	tracedat, "Read trace.dat files of trace-cmd, a host's and its guests' together.");
BT_PLUGIN_SOURCE_COMPONENT_CLASS_HELP(
	tracedat, "See babeltrace2-source.tandem.tracedat(7) for its parameters.");
BT_PLUGIN_SOURCE_COMPONENT_CLASS_INITIALIZE_METHOD(tracedat, src_tracedat_initialize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_FINALIZE_METHOD(tracedat, src_finalize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_QUERY_METHOD(tracedat, src_tracedat_query);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(tracedat, src_mip_versions);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD(
	tracedat, src_iterator_initialize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_FINALIZE_METHOD(
	tracedat, src_iterator_finalize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHODS(
	tracedat, src_iterator_seek_beginning, src_iterator_can_seek_beginning);

BT_PLUGIN_SOURCE_COMPONENT_CLASS(perf, src_iterator_next);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_DESCRIPTION(
	perf, "Read perf.data files, a host's and its guests' together.");
BT_PLUGIN_SOURCE_COMPONENT_CLASS_HELP(
	perf, "See babeltrace2-source.tandem.perf(7) for its parameters.");
BT_PLUGIN_SOURCE_COMPONENT_CLASS_INITIALIZE_METHOD(perf, src_perf_initialize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_FINALIZE_METHOD(perf, src_finalize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_QUERY_METHOD(perf, src_perf_query);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(perf, src_mip_versions);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD(
	perf, src_iterator_initialize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_FINALIZE_METHOD(
	perf, src_iterator_finalize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHODS(
	perf, src_iterator_seek_beginning, src_iterator_can_seek_beginning);

BT_PLUGIN_SOURCE_COMPONENT_CLASS(live, src_iterator_next);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_DESCRIPTION(
	live, "Follow one machine of a recording that runs (tandem record --serve).");
BT_PLUGIN_SOURCE_COMPONENT_CLASS_HELP(
	live, "See babeltrace2-source.tandem.live(7) for its parameters.");
BT_PLUGIN_SOURCE_COMPONENT_CLASS_INITIALIZE_METHOD(live, src_live_initialize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_FINALIZE_METHOD(live, src_finalize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_QUERY_METHOD(live, src_live_query);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(live, src_mip_versions);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD(
	live, src_iterator_initialize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_FINALIZE_METHOD(
	live, src_iterator_finalize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHODS(
	live, src_iterator_seek_beginning, src_iterator_can_seek_beginning);

BT_PLUGIN_SINK_COMPONENT_CLASS(text, text_sink_consume);
BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(
	text, "Print one line an event, told apart by machine (what tandem view prints).");
BT_PLUGIN_SINK_COMPONENT_CLASS_HELP(text, "See babeltrace2-sink.tandem.text(7).");
BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(text, text_sink_initialize);
BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(text, text_sink_finalize);
BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(text, text_sink_graph_is_configured);
BT_PLUGIN_SINK_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(text, text_sink_mip_versions);
