/* SPDX-License-Identifier: MIT */
/*
 * ctf_check_metadata.c - what the metadata alone tells of how Trace Compass will take a trace.
 */
#include "ctf_check_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define IDS_MAX \
	(1u << 20) /* of event classes; readers take up to 2^31, but nobody writes that many */

enum ctf_event_role ctf_event_role(const struct tsdl_event *event)
{
	static const struct {
		const char *name;
		enum ctf_event_role role;
	} roles[] = {
		{ "sched_switch", CTF_ROLE_SWITCH },
		{ "kvm_x86_entry", CTF_ROLE_KVM },
		{ "kvm_x86_exit", CTF_ROLE_KVM },
		{ "lttng_statedump_process_state", CTF_ROLE_DUMP },
		{ "vmsync_gh_guest", CTF_ROLE_SYNC_GUEST },
		{ "vmsync_gh_host", CTF_ROLE_SYNC_HOST },
	};

	for (size_t i = 0; event->name && i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (strcmp(roles[i].name, event->name) == 0) {
			return roles[i].role;
		}
	}
	return CTF_ROLE_OTHER;
}

static enum tdm_status check_clock(struct ctf_trace_check *trace)
{
	struct tdm_ctf_checked *const checked = trace->checked;
	const struct tsdl_metadata *const metadata = &trace->metadata;
	const struct tsdl_clock *const clock = metadata->clock_count ? &metadata->clocks[0] : NULL;
	enum tdm_status status = TDM_OK;

	if (metadata->clock_count != 1) {
		return tdm_ctf_finding_add(checked, true,
			"%zu clocks: wanted exactly one, or times and the machine's identity are lost",
			metadata->clock_count);
	}
	if (!clock->uuid) {
		status = tdm_ctf_finding_add(checked, true,
			"the clock has no uuid: the machine has no identity and is known by its directory's name");
	} else {
		checked->clock_uuid = strdup(clock->uuid);
		status = checked->clock_uuid ? TDM_OK : TDM_ERR_NOMEM;
	}
	if (status == TDM_OK && clock->freq_hz != 1000000000) {
		status = tdm_ctf_finding_add(checked, false,
			"the clock has %" PRIu64 " Hz: times are rounded to 256 ns and more",
			clock->freq_hz);
	}
	if (status == TDM_OK && clock->freq_hz != 1000000000 && clock->freq_comes_late) {
		status = tdm_ctf_finding_add(checked, true,
			"offset_s stands before freq: it is scaled by the wrong frequency");
	}
	if (status == TDM_OK && clock->offset_s < 0) {
		status = tdm_ctf_finding_add(checked, false,
			"a negative offset_s is ignored: times are shown %" PRId64 " s late",
			-clock->offset_s);
	}
	checked->clock_offset_ns =
		(int64_t)((uint64_t)clock->offset + (uint64_t)clock->offset_s * clock->freq_hz);
	return status;
}

static enum tdm_status want_env(struct ctf_trace_check *trace, const char *name, bool is_number)
{
	const struct tsdl_env *const env = tsdl_find_env(&trace->metadata, name);

	if (!env) {
		return tdm_ctf_finding_add(trace->checked, false, "env lacks \"%s\"", name);
	}
	if ((env->text == NULL) != is_number) {
		return tdm_ctf_finding_add(trace->checked, false, "env \"%s\" is no %s", name,
			is_number ? "number" : "text");
	}
	return TDM_OK;
}

static enum tdm_status check_env(struct ctf_trace_check *trace)
{
	struct tdm_ctf_checked *const checked = trace->checked;
	const struct tsdl_env *const domain = tsdl_find_env(&trace->metadata, "domain");
	const struct tsdl_env *const tracer = tsdl_find_env(&trace->metadata, "tracer_name");
	const struct tsdl_env *const major = tsdl_find_env(&trace->metadata, "tracer_major");
	const struct tsdl_env *const minor = tsdl_find_env(&trace->metadata, "tracer_minor");
	const struct tsdl_env *const host = tsdl_find_env(&trace->metadata, "hostname");
	enum tdm_status status = TDM_OK;

	checked->hostname = host && host->text ? strdup(host->text) : NULL;
	if (!domain || !domain->text) {
		return tdm_ctf_finding_add(checked, false,
			"env lacks \"domain\": the trace is taken as generic, no analysis of kernel or UST runs");
	}
	checked->is_kernel = strcmp(domain->text, "kernel") == 0;
	if (!checked->is_kernel) {
		return tsdl_has_event(&trace->metadata, "tandem:syscall_")
			       ? tdm_ctf_finding_add(checked, false,
					 "a user-space trace of system calls, no kernel analysis runs: tandem convert --as-kernel makes it a kernel trace")
			       : TDM_OK;
	}
	status = want_env(trace, "hostname", false);
	if (status == TDM_OK) {
		status = want_env(trace, "tracer_name", false);
	}
	if (status == TDM_OK) {
		status = want_env(trace, "tracer_major", true);
	}
	if (status == TDM_OK) {
		status = want_env(trace, "tracer_minor", true);
	}
	trace->is_lttng = tracer && tracer->text && strcmp(tracer->text, "lttng-modules") == 0 &&
			  major && minor && major->number >= 2 && minor->number >= 9;
	checked->has_lttng_names = trace->is_lttng;
	if (status == TDM_OK && tracer && tracer->text && !trace->is_lttng &&
		strcmp(tracer->text, "perf") != 0) {
		status = tdm_ctf_finding_add(checked, false,
			"tracer \"%s\" %" PRId64 ".%" PRId64
			" selects the names of LTTng 2.0: most views stay empty",
			tracer->text, major ? major->number : 0, minor ? minor->number : 0);
	}
	return status;
}

static bool has_field(const struct tsdl_event *event, const char *name)
{
	return tsdl_find_field(event->fields, name) != NULL;
}

static enum tdm_status check_names(struct ctf_trace_check *trace)
{
	static const struct {
		const char *name, *instead;
	} old_names[] = {
		{ "sys_enter", "syscall_entry_NAME" },
		{ "sys_exit", "syscall_exit_NAME" },
		{ "softirq_entry", "irq_softirq_entry" },
		{ "softirq_exit", "irq_softirq_exit" },
		{ "softirq_raise", "irq_softirq_raise" },
		{ "hrtimer_expire_entry", "timer_hrtimer_expire_entry" },
		{ "kvm_entry", "kvm_x86_entry" },
		{ "kvm_exit", "kvm_x86_exit" },
		{ "mm_page_alloc", "kmem_mm_page_alloc" },
		{ "mm_page_free", "kmem_mm_page_free" },
		{ "cpu_frequency", "power_cpu_frequency" },
		{ "netif_receive_skb", "net_if_receive_skb" },
	};

	static const struct {
		const char *event, *field, *effect;
	} wanted[] = {
		{ "sched_switch", "prev_tid", "no thread is known" },
		{ "sched_switch", "next_tid", "no thread is known" },
		{ "sched_switch", "prev_state", "no thread is known" },
		{ "sched_waking", "tid", "the event is ignored" },
		{ "sched_waking", "target_cpu", "the event is ignored" },
		{ "sched_wakeup", "tid", "the event is ignored" },
		{ "sched_wakeup", "target_cpu", "the event is ignored" },
		{ "sched_wakeup_new", "target_cpu", "the event is ignored" },
		{ "lttng_statedump_process_state", "tid", "the analysis stops" },
		{ "lttng_statedump_process_state", "pid", "the analysis stops" },
		{ "lttng_statedump_process_state", "ppid", "the analysis stops" },
		{ "lttng_statedump_process_state", "status", "the analysis stops" },
		{ "lttng_statedump_process_state", "name", "the analysis stops" },
		{ "kvm_x86_entry", "vcpu_id", "threads are not bound to vCPUs" },
		{ "vmsync_gh_guest", "cnt", "the guest is not found" },
		{ "vmsync_gh_guest", "vm_uid", "the guest is not found" },
		{ "vmsync_gh_host", "cnt", "the guest is not found" },
		{ "vmsync_gh_host", "vm_uid", "the guest is not found" },
	};
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < trace->metadata.event_count && status == TDM_OK; i++) {
		const struct tsdl_event *const event = &trace->metadata.events[i];
		const char *const name = event->name ? event->name : "";

		for (size_t j = 0; j < sizeof(old_names) / sizeof(old_names[0]) && status == TDM_OK;
			j++) {
			if (strcmp(name, old_names[j].name) == 0) {
				status = tdm_ctf_finding_add(trace->checked, false,
					"event \"%s\" is known to Trace Compass as \"%s\"", name,
					old_names[j].instead);
			}
		}
		for (size_t j = 0; j < sizeof(wanted) / sizeof(wanted[0]) && status == TDM_OK;
			j++) {
			if (strcmp(name, wanted[j].event) == 0 &&
				!has_field(event, wanted[j].field)) {
				status = tdm_ctf_finding_add(trace->checked, false,
					"event \"%s\" lacks the field \"%s\": %s", name,
					wanted[j].field, wanted[j].effect);
			}
		}
	}
	return status;
}

static enum tdm_status check_packet_context(struct ctf_trace_check *trace)
{
	static const char *const wanted[] = { "timestamp_begin", "timestamp_end", "content_size",
		"packet_size", "events_discarded" };
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < trace->metadata.stream_count && status == TDM_OK; i++) {
		const struct tsdl_type *const context = trace->metadata.streams[i].packet_context;
		const struct tsdl_field *const cpu = tsdl_find_field(context, "cpu_id");

		for (size_t j = 0; j < sizeof(wanted) / sizeof(wanted[0]) && status == TDM_OK;
			j++) {
			if (!tsdl_find_field(context, wanted[j])) {
				status = tdm_ctf_finding_add(trace->checked, false,
					"the packet context lacks \"%s\"", wanted[j]);
			}
		}
		if (status == TDM_OK && trace->checked->is_kernel && !cpu) {
			status = tdm_ctf_finding_add(trace->checked, true,
				"the packet context lacks \"cpu_id\": every kernel analysis stays empty");
		} else if (status == TDM_OK && trace->checked->is_kernel && cpu->name[0] == '_') {
			status = tdm_ctf_finding_add(trace->checked, false,
				"the packet context spells \"_cpu_id\": the KVM exit statistics stay empty");
		}
	}
	return status;
}

static size_t find_stream(const struct ctf_trace_check *trace, uint64_t id)
{
	for (size_t i = 0; i < trace->metadata.stream_count; i++) {
		if (trace->metadata.streams[i].id == id) {
			return i;
		}
	}
	return trace->metadata.stream_count;
}

/* Sorts the events into their streams, by id. */
static enum tdm_status sort_events(struct ctf_trace_check *trace)
{
	struct tsdl_metadata *const metadata = &trace->metadata;

	trace->streams = calloc(metadata->stream_count + 1, sizeof(*trace->streams));
	if (!trace->streams) {
		return TDM_ERR_NOMEM;
	}
	for (size_t i = 0; i < metadata->stream_count; i++) {
		trace->streams[i].stream = &metadata->streams[i];
		if ((metadata->stream_count > 1 && !metadata->streams[i].has_id) ||
			find_stream(trace, metadata->streams[i].id) != i) {
			return tdm_ctf_finding_add(
				trace->checked, true, "streams without ids, or with the same");
		}
	}
	for (size_t i = 0; i < metadata->event_count; i++) {
		const struct tsdl_event *const event = &metadata->events[i];
		const size_t at = find_stream(trace, event->stream_id);
		struct ctf_stream_events *const stream = &trace->streams[at];

		if (at == metadata->stream_count || event->id >= IDS_MAX) {
			const enum tdm_status status = tdm_ctf_finding_add(trace->checked, true,
				"event \"%s\" has id %" PRIu64 " in stream %" PRIu64
				": no such stream, or too great",
				event->name ? event->name : "", event->id, event->stream_id);

			if (status != TDM_OK) {
				return status;
			}
			continue;
		}
		if (event->id >= stream->by_id_count) {
			const size_t room = (event->id | 63u) + 1u;
			const struct tsdl_event **const grown =
				realloc(stream->by_id, room * sizeof(*grown));

			if (!grown) {
				return TDM_ERR_NOMEM;
			}
			memset(grown + stream->by_id_count, 0,
				(room - stream->by_id_count) * sizeof(*grown));
			stream->by_id = grown;

			bool *const met = realloc(stream->was_met, room * sizeof(*met));

			if (!met) {
				return TDM_ERR_NOMEM;
			}
			memset(met + stream->by_id_count, 0,
				(room - stream->by_id_count) * sizeof(*met));
			stream->was_met = met;
			stream->by_id_count = room;
		}
		if (stream->by_id[event->id]) {
			const enum tdm_status status = tdm_ctf_finding_add(trace->checked, true,
				"events \"%s\" and \"%s\" have the same id %" PRIu64,
				stream->by_id[event->id]->name ? stream->by_id[event->id]->name
							       : "",
				event->name ? event->name : "", event->id);

			if (status != TDM_OK) {
				return status;
			}
		}
		stream->by_id[event->id] = event;
	}
	return TDM_OK;
}

enum tdm_status ctf_check_metadata(struct ctf_trace_check *trace)
{
	const struct tsdl_metadata *const metadata = &trace->metadata;
	enum tdm_status status = TDM_OK;

	/* In packets the magic number tells what it is. */
	if (!metadata->has_signature && !metadata->is_packetized) {
		status = tdm_ctf_finding_add(trace->checked, true,
			"the metadata does not begin with \"/* CTF 1.8\": released versions refuse it");
	}
	if (status == TDM_OK && (metadata->major != 1 || metadata->minor != 8)) {
		status = tdm_ctf_finding_add(trace->checked, true,
			"the trace says CTF %" PRIu64 ".%" PRIu64 ", wanted 1.8", metadata->major,
			metadata->minor);
	}
	trace->has_uuid = tsdl_get_uuid(metadata, trace->uuid);
	if (status == TDM_OK) {
		status = check_clock(trace);
	}
	if (status == TDM_OK) {
		status = check_env(trace);
	}
	if (status == TDM_OK) {
		status = check_packet_context(trace);
	}
	if (status == TDM_OK && trace->is_lttng) {
		status = check_names(trace);
	}
	return status == TDM_OK ? sort_events(trace) : status;
}
