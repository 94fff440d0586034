/* SPDX-License-Identifier: MIT */
#include "clock/flt_host_clock.h"
#include "clock/flt_priv.h"
#include "params.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/address.h>
#include <tandem/clock_identity.h>
#include <tandem/socket.h>

static const char *const extrapolate_choices[] = { "yes", "warn", "no", NULL };
static const char *const missing_choices[] = { "fail", "pass", "wait", NULL };
static const char *const origin_choices[] = { "unix-epoch", "unknown", NULL };

static const struct param_rule rules[] = {
	{ .name = "corrections", .kinds = PARAM_TEXT, .required = true },
	{ .name = "guest", .kinds = PARAM_TEXT },
	{ .name = "host-clock", .kinds = PARAM_TEXT | PARAM_INT },
	{ .name = "extrapolate", .kinds = PARAM_TEXT | PARAM_BOOL, .choices = extrapolate_choices },
	{ .name = "on-missing", .kinds = PARAM_TEXT, .choices = missing_choices },
	{ .name = "max-wait-ms", .kinds = PARAM_INT, .least = 0, .most = 86400000 },
	{ .name = "secret-file", .kinds = PARAM_TEXT },
	{ .name = "ports", .kinds = PARAM_INT, .least = 1, .most = 65536 },
	{ .name = "origin", .kinds = PARAM_TEXT, .choices = origin_choices },
};

/* ---- what the mirror asks ---- */

static bool make_clock(void *owner, const bt_clock_class *in, bt_clock_class *out, void **data)
{
	struct flt_component *component = owner;
	struct flt_clock *clock = calloc(1, sizeof(*clock));

	if (!clock || !flt_clock_make(&component->mapping, &component->report, component->self,
			      component->mip, in, out, clock)) {
		free(clock);
		return false;
	}
	*data = clock;
	return true;
}

static void free_clock(void *owner, void *data)
{
	(void)owner;
	free(data);
}

/* Names are C identifiers: others make sink.ctf.fs crash. */
static bool mark_trace(void *owner, bt_trace *out)
{
	const struct flt_component *const component = owner;
	const bool corrected = component->mapping.timeline || component->mapping.live;
	const uint64_t bound_ns = flt_mapping_bound_ns(&component->mapping);
	bool good = bt_trace_set_environment_entry_integer(out, "tandem_clock_corrected",
			    corrected) == BT_TRACE_SET_ENVIRONMENT_ENTRY_STATUS_OK;

	if (corrected) {
		good = good &&
		       bt_trace_set_environment_entry_string(
			       out, "tandem_corrections", component->corrections) ==
			       BT_TRACE_SET_ENVIRONMENT_ENTRY_STATUS_OK &&
		       bt_trace_set_environment_entry_integer(out, "tandem_clock_bound_ns",
			       bound_ns > INT64_MAX ? INT64_MAX : (int64_t)bound_ns) ==
			       BT_TRACE_SET_ENVIRONMENT_ENTRY_STATUS_OK;
	}
	if (component->guest) {
		good = good &&
		       bt_trace_set_environment_entry_string(out, "tandem_machine",
			       component->guest) == BT_TRACE_SET_ENVIRONMENT_ENTRY_STATUS_OK;
	}
	return good;
}

static const struct ir_mirror_ops mirror_ops = {
	.make_clock = make_clock,
	.free_clock = free_clock,
	.mark_trace = mark_trace,
};

/* ---- parameters ---- */

static enum tdm_status open_service(
	struct flt_component *component, const bt_value *params, struct tdm_error *err)
{
	component->mapping.live = tdm_live_create();
	if (!component->mapping.live) {
		return tdm_fail(err, TDM_ERR_NOMEM, "No memory");
	}
	component->link = flt_link_create(component->corrections, component->guest,
		param_text(params, "secret-file", NULL), err);
	if (!component->link) {
		return tdm_error_prefix(err, "corrections");
	}
	return TDM_OK;
}

static enum tdm_status open_corrections(
	struct flt_component *component, const bt_value *params, struct tdm_error *err)
{
	const char *missing = param_text(params, "on-missing", NULL);

	if (tdm_address_is_one(component->corrections)) {
		component->on_missing = !missing || strcmp(missing, "wait") == 0 ? FLT_MISSING_WAIT
					: strcmp(missing, "pass") == 0           ? FLT_MISSING_PASS
										 : FLT_MISSING_FAIL;
		return open_service(component, params, err);
	}
	int64_t offset_ns = 0;

	if (param_offset(component->corrections, &offset_ns)) {
		component->mapping.timeline = tdm_timeline_from_offset(offset_ns, 0);
		component->mapping.last_reading = UINT64_MAX;
		return component->mapping.timeline ? TDM_OK
						   : tdm_fail(err, TDM_ERR_NOMEM, "No memory");
	}
	component->on_missing =
		missing && strcmp(missing, "pass") == 0 ? FLT_MISSING_PASS : FLT_MISSING_FAIL;
	if (tdm_timeline_load(component->corrections, &component->mapping.timeline, err) ==
		TDM_OK) {
		(void)tdm_timeline_range(component->mapping.timeline,
			&component->mapping.first_reading, &component->mapping.last_reading);
		return TDM_OK;
	}
	if (component->on_missing == FLT_MISSING_PASS) {
		TDM_WARNING(&component->report.log,
			"No correction, the guest's stamps stay as they are: %s", err->text);
		return TDM_OK;
	}
	return tdm_error_prefix(err, "corrections");
}

/* The host's epoch: a number, a number written as text, or a trace that is asked. */
static enum tdm_status read_host_clock(
	struct flt_component *component, const bt_value *params, struct tdm_error *err)
{
	struct flt_mapping *mapping = &component->mapping;

	if (!param_has(params, "host-clock")) {
		return TDM_OK;
	}
	const char *text = param_text(params, "host-clock", NULL);

	mapping->is_fixed_epoch = true;
	if (!text) {
		mapping->epoch_ns = param_int(params, "host-clock", 0);
		return TDM_OK;
	}
	char *end = NULL;
	const long long number = strtoll(text, &end, 10);

	if (*text && !*end) {
		mapping->epoch_ns = number;
		return TDM_OK;
	}
	const char *host_uuid =
		mapping->timeline ? tdm_timeline_get_info(mapping->timeline).host_uuid : NULL;

	struct flt_host_clock clock;
	const enum tdm_status status = flt_host_clock_epoch(text, host_uuid, &clock, err);

	if (status == TDM_OK) {
		char why[TDM_MISFIT_BYTES];

		mapping->epoch_ns = clock.epoch_ns;
		if (mapping->timeline && !tdm_clock_identity_fits(mapping->timeline, TDM_SIDE_HOST,
						 clock.uid, clock.name, why)) {
			TDM_WARNING(&component->report.log,
				"The corrections may not be for this host, the guest's events may be at wrong times: host-clock=%s, %s",
				text, why);
		}
		if (clock.differ) {
			TDM_WARNING(&component->report.log,
				"Traces of the host have different offsets from the epoch, that of %s is used: host-clock=%s, epoch-ns=%" PRId64,
				host_uuid ? "the correction's host clock, else the first,"
					  : "the first",
				text, clock.epoch_ns);
		}
	}
	return status;
}

static enum tdm_status read_params(
	struct flt_component *component, const bt_value *params, struct tdm_error *err)
{
	enum tdm_status status = param_check(params, rules, sizeof(rules) / sizeof(rules[0]), err);

	if (status != TDM_OK) {
		return status;
	}
	const char *guest = param_text(params, "guest", NULL);
	const char *extrapolate = param_text(params, "extrapolate", NULL);

	component->corrections = strdup(param_text(params, "corrections", ""));
	component->guest = guest ? strdup(guest) : NULL;
	if (!component->corrections || (guest && !component->guest)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "No memory");
	}
	component->mapping.extrapolate = extrapolate && strcmp(extrapolate, "warn") == 0
						 ? FLT_EXTRAPOLATE_WARN
					 : (extrapolate && strcmp(extrapolate, "no") == 0) ||
							 !param_bool(params, "extrapolate", true)
						 ? FLT_EXTRAPOLATE_NO
						 : FLT_EXTRAPOLATE_YES;
	component->mapping.is_unix =
		strcmp(param_text(params, "origin", "unix-epoch"), "unknown") != 0;
	/* Three bursts of "tandem sync": later than that the service has most likely stopped. */
	component->max_wait_ns = (uint64_t)param_int(params, "max-wait-ms", 3000) * 1000000;
	status = open_corrections(component, params, err);
	return status == TDM_OK ? read_host_clock(component, params, err) : status;
}

/* ---- the service ---- */

bool flt_component_poll(struct flt_component *component, struct tdm_error *err)
{
	struct tdm_live *live = component->mapping.live;
	const struct tdm_log *log = &component->report.log;
	char *line = NULL;

	while (flt_link_take(component->link, &line)) {
		if (!line) {
			tdm_live_begin_again(live);
			continue;
		}
		const uint64_t known = tdm_live_known_until(live);
		struct tdm_error line_err = { .status = TDM_OK };
		const enum tdm_status status = tdm_live_feed(live, line, &line_err);

		free(line);
		if (status != TDM_OK && status != TDM_END && !component->said_bad_line) {
			component->said_bad_line = true;
			TDM_WARNING(log,
				"The corrections service sent what does not fit, passed over: %s",
				line_err.text);
		}
		if (tdm_live_known_until(live) != known) {
			component->progress_ns = tdm_now_ns();
		}
	}
	struct flt_link_news news;

	flt_link_get_news(component->link, &news);
	if (news.went && !component->said_gone) {
		component->said_gone = true;
		TDM_WARNING(log,
			tdm_live_is_ready(live)
				? "The corrections service is gone, the last correction goes on with a growing bound until it is back: address=%s, reason=%s"
				: "The corrections service is not there, waiting for it: address=%s, reason=%s",
			component->corrections, news.why);
	}
	if (tdm_live_is_ready(live)) {
		if (news.came) {
			component->said_gone = false;
		}
		return true;
	}
	if (component->on_missing == FLT_MISSING_FAIL &&
		tdm_now_ns() - component->began_ns >= component->max_wait_ns) {
		(void)tdm_fail(err, TDM_ERR_PEER,
			"corrections: nothing came from %s within max-wait-ms: %s",
			component->corrections, news.why[0] ? news.why : "it is silent");
		return false;
	}
	return true;
}

bool flt_component_holds(struct flt_component *component, uint64_t reading)
{
	const uint64_t now_ns = tdm_now_ns();
	struct tdm_live *live = component->mapping.live;

	if (!tdm_live_is_ready(live)) {
		if (component->on_missing == FLT_MISSING_PASS &&
			now_ns - component->began_ns >= component->max_wait_ns) {
			/* From here on for good: stamps that were given out uncorrected cannot be taken back. */
			TDM_WARNING(&component->report.log,
				"No correction came in time, the guest's stamps stay as they are: address=%s",
				component->corrections);
			flt_link_destroy(component->link);
			component->link = NULL;
			tdm_live_destroy(live);
			component->mapping.live = NULL;
			return false;
		}
		return true;
	}
	/* Once the service has been silent for that long, nothing waits again until it says something new. */
	return reading > tdm_live_known_until(live) &&
	       now_ns - component->progress_ns < component->max_wait_ns;
}

/* ---- ports ---- */

/* CPUs with clocks of their own: their order by raw readings is not their order in time. */
static void warn_of_one_port(const struct flt_component *component, const bt_value *params)
{
	const struct tdm_timeline *timeline = component->mapping.timeline;

	if (timeline && !param_has(params, "ports") && tdm_timeline_get_info(timeline).cpu_count) {
		TDM_WARNING(&component->report.log,
			"The correction has offsets for single CPUs: where their streams share a port, stamps are held back to keep "
			"its order; give each stream its own port (ports=N): corrections=%s",
			component->corrections);
	}
}

static bool add_ports(bt_self_component_filter *self, const bt_value *params)
{
	const bool numbered = param_has(params, "ports");
	const int64_t count = param_int(params, "ports", 1);

	for (int64_t i = 0; i < count; i++) {
		bt_self_component_port_input *input = NULL;
		char in_name[32] = "in";
		char out_name[32] = "out";

		if (numbered) {
			snprintf(in_name, sizeof(in_name), "in%" PRId64, i);
			snprintf(out_name, sizeof(out_name), "out%" PRId64, i);
		}
		if (bt_self_component_filter_add_input_port(self, in_name, NULL, &input) !=
				BT_SELF_COMPONENT_ADD_PORT_STATUS_OK ||
			bt_self_component_filter_add_output_port(self, out_name, input, NULL) !=
				BT_SELF_COMPONENT_ADD_PORT_STATUS_OK) {
			return false;
		}
	}
	return true;
}

/* ---- methods ---- */

bt_component_class_get_supported_mip_versions_method_status flt_supported_mip(
	bt_self_component_class_filter *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions)
{
	(void)self_class, (void)params, (void)data, (void)level;
	return (bt_component_class_get_supported_mip_versions_method_status)
		bt_integer_range_set_unsigned_add_range(versions, 0, TANDEM_MIP_MAX);
}

static void destroy(struct flt_component *component)
{
	if (!component) {
		return;
	}
	flt_link_destroy(component->link);
	ir_mirror_destroy(component->mirror);
	tdm_live_destroy(component->mapping.live);
	tdm_timeline_destroy(component->mapping.timeline);
	free(component->corrections);
	free(component->guest);
	free(component);
}

bt_component_class_initialize_method_status flt_initialize(bt_self_component_filter *self,
	bt_self_component_filter_configuration *config, const bt_value *params, void *data)
{
	bt_self_component *self_component = bt_self_component_filter_as_self_component(self);
	struct flt_component *component = calloc(1, sizeof(*component));
	struct tdm_error err = { .status = TDM_OK };

	(void)config, (void)data;
	if (!component) {
		return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	component->self = self_component;
	component->mip = bt_self_component_get_graph_mip_version(self_component);
	component->began_ns = tdm_now_ns();
	component->progress_ns = component->began_ns;
	report_init(&component->report, "filter.tandem.clock",
		bt_component_get_logging_level(bt_self_component_as_component(self_component)));
	if (read_params(component, params, &err) != TDM_OK) {
		report_component_cause(self_component, &err);
		destroy(component);
		return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
	}
	warn_of_one_port(component, params);
	component->mirror =
		ir_mirror_create(self_component, component->mip, &mirror_ops, component);
	if (!component->mirror || !add_ports(self, params)) {
		destroy(component);
		return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	bt_self_component_set_data(self_component, component);
	return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

void flt_finalize(bt_self_component_filter *self)
{
	struct flt_component *component =
		bt_self_component_get_data(bt_self_component_filter_as_self_component(self));

	if (component->held_count) {
		TDM_WARNING(&component->report.log,
			"Stamps were held back so that time does not go back within a port: count=%" PRIu64
			", most-ns=%" PRIu64,
			component->held_count, component->held_most_ns);
	}
	destroy(component);
}
