/* SPDX-License-Identifier: MIT */
#include "view_plan.h"
#include "clock/flt_host_clock.h"
#include "view_fit.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/address.h>

#define INSERTED BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK

struct plan {
	struct view_graph *graph;
	const struct view_options *options;
	const struct view_inputs *inputs;
	const struct view_input *only;
	const struct tdm_log *log;
	size_t muxer;
	size_t made; /* components so far, for unique names */
	/* The host's epoch: what its readings are away from Unix time. */
	bool has_epoch;
	int64_t epoch_ns;
	const char *epoch_dir; /* the trace that says so; NULL = epoch_ns is all */
};

static enum tdm_status no_memory(struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a graph");
}

static bool is_wanted(const struct plan *plan, const struct view_input *input)
{
	return !input->is_unreadable && (!plan->only || plan->only == input);
}

/* ---- the host's epoch ---- */

static enum tdm_status epoch_of_file(
	struct plan *plan, const struct view_input *input, struct tdm_error *err)
{
	const struct tdm_stamp_options how = { .raw = false };
	struct tdm_trace *trace = NULL;
	const enum tdm_status status = tdm_trace_open(input->path, &how, NULL, &trace, err);

	if (status != TDM_OK) {
		return status;
	}
	plan->epoch_ns = tdm_trace_get_info(trace)->date_offset_ns;
	plan->has_epoch = true;
	tdm_trace_close(trace);
	return TDM_OK;
}

static enum tdm_status find_epoch(struct plan *plan, struct tdm_error *err)
{
	/* A CTF trace of the host says it best: LTTng's clocks have one, trace.dat and perf.data mostly none. */
	for (size_t i = 0; i < plan->inputs->count; i++) {
		const struct view_input *input = &plan->inputs->items[i];

		if (input->is_host && input->kind == VIEW_CTF && !input->is_unreadable) {
			struct flt_host_clock clock;
			enum tdm_status status = view_ctf_is_there(input->path, err);

			if (status != TDM_OK) {
				return status;
			}
			status = flt_host_clock_epoch(input->path, NULL, &clock, err);
			if (status == TDM_OK) {
				plan->has_epoch = true;
				plan->epoch_ns = clock.epoch_ns;
				plan->epoch_dir = input->path;
			}
			/* A session of which nothing is written yet has no clock to tell, and no event to place. */
			return status == TDM_END ? TDM_OK : status;
		}
	}
	for (size_t i = 0; i < plan->inputs->count; i++) {
		const struct view_input *input = &plan->inputs->items[i];

		if (input->is_host && input->kind == VIEW_LIVE_TANDEM) {
			/* Its stamps are the trace clock's own readings. */
			plan->has_epoch = true;
			return TDM_OK;
		}
		if (input->is_host && !input->is_unreadable &&
			(input->kind == VIEW_TRACEDAT || input->kind == VIEW_PERF)) {
			return epoch_of_file(plan, input, err);
		}
	}
	return TDM_OK;
}

/* ---- components ---- */

static size_t add(struct plan *plan, enum view_kind kind, const struct view_input *input,
	const char *plugin, const char *class, bt_value *params)
{
	char name[80];

	if (!params) {
		return VIEW_NONE;
	}
	snprintf(name, sizeof(name), "%s-%zu", input->name, plan->made++);
	for (char *at = name; *at; at++) {
		/* A dot or colon means something in "-x A:B". */
		if (*at == '.') {
			*at = '_';
		}
	}
	return view_graph_add(plan->graph, kind, name, plugin, class, params);
}

/* The clock filter of a guest; ports: as many as its source has. */
static bt_value *filter_params(
	const struct plan *plan, const struct view_input *input, uint64_t ports)
{
	bt_value *params = bt_value_map_create();
	bool good = params &&
		    bt_value_map_insert_string_entry(params, "corrections", input->corrections) ==
			    INSERTED &&
		    bt_value_map_insert_string_entry(params, "guest", input->name) == INSERTED;

	if (plan->epoch_dir) {
		good = good && bt_value_map_insert_string_entry(
				       params, "host-clock", plan->epoch_dir) == INSERTED;
	} else if (plan->has_epoch) {
		good = good && bt_value_map_insert_signed_integer_entry(
				       params, "host-clock", plan->epoch_ns) == INSERTED;
	}
	if (plan->options->secret_file) {
		good = good && bt_value_map_insert_string_entry(params, "secret-file",
				       plan->options->secret_file) == INSERTED;
	}
	if (ports > 1) {
		good = good && bt_value_map_insert_signed_integer_entry(
				       params, "ports", (int64_t)ports) == INSERTED;
	}
	if (!good) {
		bt_value_put_ref(params);
		return NULL;
	}
	return params;
}

/* Source -> [filter] -> muxer. */
static enum tdm_status connect_guest(struct plan *plan, const struct view_input *input,
	size_t source, uint64_t ports, struct tdm_error *err)
{
	size_t last = source;

	if (source == VIEW_NONE) {
		return no_memory(err);
	}
	if (!input->is_host && *input->corrections) {
		last = add(plan, VIEW_FILTER, input, "tandem", "clock",
			filter_params(plan, input, ports));
		if (last == VIEW_NONE || !view_graph_connect(plan->graph, source, last)) {
			return no_memory(err);
		}
	}
	return view_graph_connect(plan->graph, last, plan->muxer) ? TDM_OK : no_memory(err);
}

/*
 * A correction that is one segment of slope 1 needs no filter: source.ctf.fs adds a constant for nothing. The guest's
 * own offset is taken off and the host's put on, so that the result is the same to the nanosecond.
 */
static bool constant_shift(
	const struct plan *plan, const struct view_input *input, int64_t *shift_ns)
{
	struct tdm_timeline *timeline = NULL;
	struct flt_host_clock own;
	struct tdm_error err;
	int64_t offset = 0;
	bool constant = true;

	if (!plan->has_epoch || tdm_address_is_one(input->corrections)) {
		return false;
	}
	if (strncmp(input->corrections, "offset:", 7) == 0) {
		constant = cli_parse_int(input->corrections + 7, &offset);
	} else {
		constant = tdm_timeline_load(input->corrections, &timeline, &err) == TDM_OK &&
			   tdm_timeline_is_constant(timeline, &offset);
		if (constant) {
			const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);

			constant =
				info.host_unit_hz == 1000000000 && info.guest_unit_hz == 1000000000;
		}
	}
	constant = constant && flt_host_clock_epoch(input->path, NULL, &own, &err) == TDM_OK &&
		   !own.differ && !__builtin_add_overflow(offset, plan->epoch_ns, shift_ns) &&
		   !__builtin_sub_overflow(*shift_ns, own.epoch_ns, shift_ns);
	if (constant && timeline && !input->is_found) {
		/* The filter would say it. */
		view_fit_tell(plan->inputs, input, timeline, plan->log);
	}
	tdm_timeline_destroy(timeline);
	return constant;
}

static enum tdm_status add_ctf(
	struct plan *plan, const struct view_input *input, struct tdm_error *err)
{
	struct view_ctf_list list = { NULL, 0 };
	struct view_input plain = *input;
	int64_t shift_ns = 0;
	enum tdm_status status = view_ctf_find(input->path, &list, err);

	if (!input->is_host && *input->corrections && constant_shift(plan, input, &shift_ns)) {
		plain.corrections[0] = '\0';
	}
	for (size_t i = 0; status == TDM_OK && i < list.count; i++) {
		const size_t source = add(plan, VIEW_SOURCE, input, "ctf", "fs",
			view_ctf_params(
				&list.items[i], input->is_named ? input->name : NULL, shift_ns));

		status = connect_guest(plan, &plain, source, list.items[i].port_count, err);
	}
	view_ctf_release(&list);
	return status;
}

static enum tdm_status add_live_lttng(
	struct plan *plan, const struct view_input *input, struct tdm_error *err)
{
	bt_value *params = bt_value_map_create();
	bt_value *inputs = NULL;

	if (!params ||
		bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) != INSERTED ||
		bt_value_array_append_string_element(inputs, input->path) !=
			BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK ||
		/* The session may begin after the viewer. */
		bt_value_map_insert_string_entry(params, "session-not-found-action", "continue") !=
			INSERTED) {
		bt_value_put_ref(params);
		return no_memory(err);
	}
	return connect_guest(
		plan, input, add(plan, VIEW_SOURCE, input, "ctf", "lttng-live", params), 1, err);
}

/* Source -> muxer -> [filter] -> muxer: how many CPUs the machine has is not known before it is connected to. */
static enum tdm_status connect_live(
	struct plan *plan, const struct view_input *input, size_t source, struct tdm_error *err)
{
	size_t last = source;

	if (source == VIEW_NONE) {
		return no_memory(err);
	}
	if (!input->is_host && *input->corrections) {
		const size_t own_muxer =
			add(plan, VIEW_FILTER, input, "utils", "muxer", bt_value_map_create());

		last = add(
			plan, VIEW_FILTER, input, "tandem", "clock", filter_params(plan, input, 1));
		if (own_muxer == VIEW_NONE || last == VIEW_NONE ||
			!view_graph_connect(plan->graph, source, own_muxer) ||
			!view_graph_connect(plan->graph, own_muxer, last)) {
			return no_memory(err);
		}
	}
	return view_graph_connect(plan->graph, last, plan->muxer) ? TDM_OK : no_memory(err);
}

static enum tdm_status add_live_tandem(
	struct plan *plan, const struct view_input *input, struct tdm_error *err)
{
	bt_value *params = bt_value_map_create();

	if (!params || bt_value_map_insert_string_entry(params, "url", input->path) != INSERTED ||
		bt_value_map_insert_string_entry(params, "names", plan->options->names) !=
			INSERTED ||
		(!plan->options->no_print &&
			bt_value_map_insert_bool_entry(params, "print", BT_TRUE) != INSERTED) ||
		(!plan->options->no_symbols &&
			bt_value_map_insert_bool_entry(params, "symbols", BT_TRUE) != INSERTED) ||
		(plan->options->secret_file &&
			bt_value_map_insert_string_entry(
				params, "secret-file", plan->options->secret_file) != INSERTED)) {
		bt_value_put_ref(params);
		return no_memory(err);
	}
	return connect_live(
		plan, input, add(plan, VIEW_SOURCE, input, "tandem", "live", params), err);
}

/*
 * What is to be added to the stamps of a file beside CTF or another file, so that all count from where the host's do. A guest's
 * corrections lead to raw readings of the host, to which the source adds the epoch that the corrections tell, or, where they tell
 * none, what the guest's file says of its own.
 */
static enum tdm_status file_offset(const struct plan *plan, const struct view_input *input,
	int64_t *offset_ns, struct tdm_error *err)
{
	const struct tdm_stamp_options how = { .raw = false };
	struct tdm_trace *trace = NULL;
	struct tdm_timeline *timeline = NULL;
	enum tdm_status status = tdm_trace_open(input->path, &how, NULL, &trace, err);

	*offset_ns = 0;
	if (status != TDM_OK) {
		return status;
	}

	const struct tdm_trace_info *const info = tdm_trace_get_info(trace);

	if (input->is_host || !*input->corrections || !plan->has_epoch) {
		/* Raw readings of the host's trace clock, or mapped onto them: they get the host's epoch as its CTF does. */
		*offset_ns = plan->epoch_dir && !info->is_unix_time ? plan->epoch_ns : 0;
	} else {
		int64_t added_ns = info->date_offset_ns;

		if (strncmp(input->corrections, "offset:", 7) != 0) {
			status = tdm_timeline_load(input->corrections, &timeline, err);
		}
		if (timeline && tdm_timeline_get_info(timeline).has_epoch) {
			added_ns = tdm_timeline_get_info(timeline).epoch_offset_ns;
		}
		*offset_ns = (int64_t)((uint64_t)plan->epoch_ns - (uint64_t)added_ns);
	}
	tdm_timeline_destroy(timeline);
	tdm_trace_close(trace);
	return status;
}

static enum tdm_status add_perf(
	struct plan *plan, const struct view_input *input, struct tdm_error *err)
{
	struct view_input plain = *input;
	bt_value *params;
	bt_value *inputs = NULL;
	bt_value *machines = NULL;
	int64_t shift_ns = 0;
	const enum tdm_status status = file_offset(plan, input, &shift_ns, err);

	if (status != TDM_OK) {
		return status;
	}
	plain.corrections[0] = '\0';
	params = bt_value_map_create();
	if (!params ||
		bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) != INSERTED ||
		bt_value_array_append_string_element(inputs, input->path) !=
			BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK ||
		bt_value_map_insert_empty_array_entry(params, "machines", &machines) != INSERTED ||
		bt_value_array_append_string_element(machines, input->name) !=
			BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK ||
		(!input->is_host && *input->corrections &&
			bt_value_map_insert_string_entry(
				params, "corrections", input->corrections) != INSERTED) ||
		(shift_ns && bt_value_map_insert_signed_integer_entry(
				     params, "clock-offset-ns", shift_ns) != INSERTED) ||
		bt_value_map_insert_string_entry(params, "names", plan->options->names) !=
			INSERTED) {
		bt_value_put_ref(params);
		return no_memory(err);
	}
	return connect_guest(
		plan, &plain, add(plan, VIEW_SOURCE, input, "tandem", "perf", params), 1, err);
}

/* One component for the chosen of the trace.dat inputs. */
static enum tdm_status add_chosen(
	struct plan *plan, const bool *chosen, int64_t offset_ns, struct tdm_error *err)
{
	struct view_input first = { .kind = VIEW_TRACEDAT, .is_host = true };

	snprintf(first.name, sizeof(first.name), "tracedat");
	return connect_guest(plan, &first,
		add(plan, VIEW_SOURCE, &first, "tandem", "tracedat",
			view_tracedat_params(plan->options,
				plan->inputs->only_tracedat ? NULL : plan->inputs, chosen,
				offset_ns)),
		1, err);
}

/*
 * All trace.dat inputs go into one component, which sees how they are tied; but where their host is of another kind each goes
 * into its own, as each has its own way to the host's epoch.
 */
static enum tdm_status add_tracedat(struct plan *plan, struct tdm_error *err)
{
	const size_t count = plan->inputs->count;
	bool *const chosen = calloc(count + 1, sizeof(*chosen));
	enum tdm_status status = TDM_OK;
	bool any = false;
	bool has_host = plan->inputs->only_tracedat;

	if (!chosen) {
		return no_memory(err);
	}
	for (size_t i = 0; i < count; i++) {
		const struct view_input *const input = &plan->inputs->items[i];

		chosen[i] = input->kind == VIEW_TRACEDAT && is_wanted(plan, input);
		any = any || chosen[i];
		has_host = has_host || (chosen[i] && input->is_host);
	}
	if (any && has_host) {
		status = add_chosen(plan, chosen, plan->epoch_dir ? plan->epoch_ns : 0, err);
	}
	for (size_t i = 0; any && !has_host && i < count && status == TDM_OK; i++) {
		const struct view_input *const input = &plan->inputs->items[i];
		int64_t offset_ns = 0;

		if (input->kind == VIEW_TRACEDAT && is_wanted(plan, input)) {
			memset(chosen, 0, count * sizeof(*chosen));
			chosen[i] = true;
			status = file_offset(plan, input, &offset_ns, err);
			status = status == TDM_OK ? add_chosen(plan, chosen, offset_ns, err)
						  : status;
		}
	}
	free(chosen);
	return status;
}

/* Says once of each guest that nothing puts it on the host's clock. */
static void say_unrelated(const struct plan *plan, const struct view_input *input)
{
	if (plan->inputs->count > 1 && !input->is_host && !*input->corrections &&
		(input->kind == VIEW_CTF || input->kind == VIEW_LIVE_LTTNG)) {
		TDM_WARNING(plan->log,
			"Nothing relates the clock of \"%s\" to the host's, it is merged by its own: give --corrections %s=FILE "
			"(tandem sync makes it while one records) or --offset %s=NS (tandem info --causality finds it where both sides "
			"recorded TCP packets): input=%s",
			input->name, input->name, input->name, input->path);
	}
}

static enum tdm_status add_input(
	struct plan *plan, const struct view_input *input, struct tdm_error *err)
{
	switch (input->kind) {
	case VIEW_CTF:
		return add_ctf(plan, input, err);
	case VIEW_LIVE_LTTNG:
		return add_live_lttng(plan, input, err);
	case VIEW_LIVE_TANDEM:
		return add_live_tandem(plan, input, err);
	case VIEW_PERF:
		return add_perf(plan, input, err);
	case VIEW_TRACEDAT:
		break; /* with the others of its kind */
	}
	return TDM_OK;
}

/* What cannot be opened is told and left out, unless it is all there is. @return The status of the first such. */
static enum tdm_status leave_out_unreadable(
	const struct plan *plan, struct view_inputs *inputs, size_t *left, struct tdm_error *err)
{
	enum tdm_status first = TDM_OK;

	*left = 0;
	for (size_t i = 0; i < inputs->count; i++) {
		struct view_input *const input = &inputs->items[i];
		struct view_ctf_list list = { NULL, 0 };
		struct tdm_error fault;
		enum tdm_status status;

		if (!is_wanted(plan, input)) {
			continue;
		}
		status = input->kind == VIEW_CTF ? view_ctf_find(input->path, &list, &fault)
						 : view_input_try(input, &fault);
		view_ctf_release(&list);
		if (status == TDM_OK) {
			++*left;
			continue;
		}
		input->is_unreadable = true;
		if (first == TDM_OK) {
			*err = fault;
			first = status;
		} else {
			TDM_ERROR(plan->log, "%s", fault.text);
		}
	}
	return first;
}

enum tdm_status view_plan_merge(struct view_graph *graph, const struct view_options *options,
	struct view_inputs *inputs, const struct view_input *only, const struct tdm_log *log,
	size_t *muxer, struct tdm_error *err)
{
	struct plan plan = {
		.graph = graph, .options = options, .inputs = inputs, .only = only, .log = log
	};
	enum tdm_status status = TDM_OK;

	plan.muxer = view_graph_add(graph, VIEW_FILTER, "muxer", "utils", "muxer", NULL);
	*muxer = plan.muxer;
	if (plan.muxer == VIEW_NONE) {
		return no_memory(err);
	}
	if (!inputs->only_tracedat && inputs->count > 1) {
		size_t left = 0;

		status = leave_out_unreadable(&plan, inputs, &left, err);
		if (status != TDM_OK && left == 0) {
			return status;
		}
		if (status != TDM_OK) {
			TDM_ERROR(log, "%s: the other inputs are shown without it", err->text);
			status = TDM_OK;
		}
	}
	if (!inputs->only_tracedat) {
		status = find_epoch(&plan, err);
	}
	if (status == TDM_OK) {
		status = add_tracedat(&plan, err);
	}
	for (size_t i = 0; status == TDM_OK && i < inputs->count; i++) {
		if (is_wanted(&plan, &inputs->items[i])) {
			say_unrelated(&plan, &inputs->items[i]);
			status = add_input(&plan, &inputs->items[i], err);
		}
	}
	return status;
}
