/* SPDX-License-Identifier: MIT */
/*
 * vm_sync.c - which host threads are a guest's CPUs, and where the made-up pair of events goes that tells viewers so.
 *
 * Trace Compass knows a guest by one vmsync_gh_guest in the guest's trace and, later, a vmsync_gh_host in the context
 * of one of its vCPU threads, behind that thread's first KVM event (docs/trace-compass.md).
 */
#include "convert_priv.h"
#include <stdlib.h>

const struct tdm_ctf_member tdm_sync_members[] = {
	{ "cnt", false, 4, false, false },
	{ "vm_uid", false, 8, false, false },
	{ "tandem_synthetic", false, 1, false, false },
};
const size_t tdm_sync_member_count = sizeof(tdm_sync_members) / sizeof(tdm_sync_members[0]);

uint8_t *tdm_put_sync_fields(const struct tdm_convert_machine *conversion, uint8_t *out,
	const struct tdm_sync_point *sync)
{
	out = tdm_ctf_put_u32(out, sync->count, conversion->layout.big_endian);
	out = tdm_ctf_put_u64(out, sync->vm_uid, conversion->layout.big_endian);
	*out++ = 1;
	return out;
}

/* Stamps of two outputs compare as what they show. */
static int64_t shown_time(const struct tdm_convert_machine *conversion, uint64_t time)
{
	return (int64_t)(time - conversion->bias_ns) + conversion->epoch_offset_ns;
}

static int by_tid(const void *a, const void *b)
{
	const struct tdm_vcpu_thread *const x = a, *const y = b;

	if (x->tid != y->tid) {
		return x->tid < y->tid ? -1 : 1;
	}
	if (x->guest != y->guest) {
		return x->guest < y->guest ? -1 : 1;
	}
	return x->vcpu < y->vcpu ? -1 : x->vcpu > y->vcpu;
}

const struct tdm_vcpu_thread *tdm_find_vcpu_thread(
	const struct tdm_convert_machine *host, int32_t tid)
{
	size_t low = 0;
	size_t high = host->vcpu_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (host->vcpus[middle].tid < tid) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low < host->vcpu_count && host->vcpus[low].tid == tid ? &host->vcpus[low] : NULL;
}

static enum tdm_status add_thread(
	struct tdm_convert_machine *host, uint32_t guest, uint32_t vcpu, int32_t tid)
{
	if (host->vcpu_count == host->vcpu_room) {
		const size_t room = host->vcpu_room ? host->vcpu_room * 2 : 16;
		struct tdm_vcpu_thread *const grown = realloc(host->vcpus, room * sizeof(*grown));

		if (!grown) {
			return TDM_ERR_NOMEM;
		}
		host->vcpus = grown;
		host->vcpu_room = room;
	}
	host->vcpus[host->vcpu_count++] = (struct tdm_vcpu_thread){ guest, vcpu, tid, -1 };
	return TDM_OK;
}

/* In order of their ids, each once: the first guest that has it. */
static void settle_threads(struct tdm_convert_machine *host)
{
	size_t kept = 0;

	if (host->vcpu_count) {
		qsort(host->vcpus, host->vcpu_count, sizeof(*host->vcpus), by_tid);
	}
	for (size_t i = 0; i < host->vcpu_count; i++) {
		if (!kept || host->vcpus[kept - 1].tid != host->vcpus[i].tid) {
			host->vcpus[kept++] = host->vcpus[i];
		}
	}
	host->vcpu_count = kept;
}

/* What the host's file says: GUEST options with thread ids. */
static enum tdm_status take_guest_option(
	struct tdm_convert_machine *host, const struct tdm_convert_machine *guest)
{
	for (size_t i = 0; i < host->info->guest_count; i++) {
		const struct tdm_guest_info *const option = &host->info->guests[i];

		if (!guest->info->has_trace_id || option->trace_id != guest->info->trace_id) {
			continue;
		}
		for (size_t j = 0; j < option->vcpu_count; j++) {
			if (option->vcpus[j].host_tid > 0 &&
				add_thread(host, (uint32_t)guest->index, option->vcpus[j].vcpu,
					option->vcpus[j].host_tid) != TDM_OK) {
				return TDM_ERR_NOMEM;
			}
		}
	}
	return TDM_OK;
}

/* The classes that matter here, by id. UINT32_MAX: the trace has none. */
struct kvm_ids {
	uint32_t entry, exit, sched_switch;
	const struct tdm_field *vcpu_id, *next_pid;
};

static uint32_t wanted_id(
	const struct tdm_convert_machine *host, const char *system, const char *name)
{
	const struct tdm_event_class *const event_class =
		tdm_schema_find_name(host->schema, system, name);
	const struct tdm_id_plan *const plan = event_class && event_class->id < host->id_count
						       ? &host->by_id[event_class->id]
						       : NULL;

	return plan && plan->fallback && plan->fallback->is_wanted ? event_class->id : UINT32_MAX;
}

static struct kvm_ids find_ids(const struct tdm_convert_machine *host)
{
	struct kvm_ids ids = {
		.entry = wanted_id(host, "kvm", "kvm_entry"),
		.exit = wanted_id(host, "kvm", "kvm_exit"),
		.sched_switch = wanted_id(host, "sched", "sched_switch"),
	};

	if (ids.entry != UINT32_MAX) {
		ids.vcpu_id =
			tdm_event_class_field(tdm_schema_find(host->schema, ids.entry), "vcpu_id");
	}
	if (ids.sched_switch != UINT32_MAX) {
		ids.next_pid = tdm_event_class_field(
			tdm_schema_find(host->schema, ids.sched_switch), "next_pid");
	}
	if (ids.vcpu_id &&
		(ids.vcpu_id->place != TDM_PLACE_FIXED || ids.vcpu_id->size_bytes != 4)) {
		ids.vcpu_id = NULL;
	}
	if (ids.next_pid &&
		(ids.next_pid->place != TDM_PLACE_FIXED || ids.next_pid->size_bytes != 4)) {
		ids.next_pid = NULL;
	}
	return ids;
}

static bool load_u32(const struct tdm_convert_machine *host, const struct tdm_slot *slot,
	uint32_t offset, uint32_t *value)
{
	if (slot->payload_bytes < 4 || offset > slot->payload_bytes - 4) {
		return false;
	}
	*value = tdm_load_u32(slot->payload + offset, host->layout.big_endian);
	return true;
}

static bool load_tid(
	const struct tdm_convert_machine *host, const struct tdm_slot *slot, int32_t *tid)
{
	uint32_t value;

	if (slot->event_id >= host->id_count ||
		host->by_id[slot->event_id].tid_offset == UINT32_MAX ||
		!load_u32(host, slot, host->by_id[slot->event_id].tid_offset, &value)) {
		return false;
	}
	*tid = (int32_t)value;
	return true;
}

/* CPUs of a machine that have streams, each once. */
static size_t list_cpus(const struct tdm_convert_machine *host, uint32_t *cpus)
{
	size_t count = 0;

	for (size_t i = 0; i < host->info->stream_count; i++) {
		bool known = false;

		for (size_t j = 0; j < count; j++) {
			known |= cpus[j] == host->info->streams[i].cpu;
		}
		if (!known) {
			cpus[count++] = host->info->streams[i].cpu;
		}
	}
	return count;
}

/*
 * Nobody named the threads, but KVM events show them. With one guest only, and no two threads that run the same vCPU,
 * they are that guest's.
 */
static enum tdm_status learn_threads(
	struct tdm_convert_machine *host, const struct tdm_convert_machine *guest)
{
	enum {
		VCPUS_MAX = 1024
	};
	const struct kvm_ids ids = find_ids(host);
	uint32_t *const cpus = calloc(host->info->stream_count + 1, sizeof(*cpus));
	int32_t *const by_vcpu = calloc(VCPUS_MAX, sizeof(*by_vcpu));
	const size_t cpu_count = cpus ? list_cpus(host, cpus) : 0;
	bool is_one_guest = ids.vcpu_id != NULL;
	enum tdm_status status = cpus && by_vcpu ? TDM_OK : TDM_ERR_NOMEM;

	for (size_t i = 0; i < cpu_count && is_one_guest && status == TDM_OK; i++) {
		struct tdm_cpu_scan *const scan = tdm_cpu_scan_create(host, cpus[i]);
		struct tdm_scanned scanned;

		while (scan && is_one_guest && tdm_cpu_scan_next(scan, &scanned)) {
			uint32_t vcpu = 0;
			int32_t tid = 0;

			if (scanned.slot->event_id != ids.entry ||
				!load_tid(host, scanned.slot, &tid) ||
				!load_u32(host, scanned.slot, ids.vcpu_id->offset_bytes, &vcpu) ||
				vcpu >= VCPUS_MAX || tid <= 0) {
				continue;
			}
			is_one_guest = by_vcpu[vcpu] == 0 || by_vcpu[vcpu] == tid;
			by_vcpu[vcpu] = tid;
		}
		tdm_cpu_scan_destroy(scan);
	}
	for (uint32_t i = 0; i < VCPUS_MAX && is_one_guest && status == TDM_OK; i++) {
		if (by_vcpu[i]) {
			status = add_thread(host, (uint32_t)guest->index, i, by_vcpu[i]);
		}
	}
	if (!is_one_guest && ids.vcpu_id && status == TDM_OK) {
		TDM_WARNING(host->log,
			"%s: several machines run under KVM, and nothing says which threads are CPUs of %s: no vmsync events for it",
			host->machine->path, guest->machine->name);
	}
	free(cpus);
	free(by_vcpu);
	return status;
}

/* The monitor's process: the thread ids come out of one counter, so it is the last monitor before its vCPU threads. */
struct monitor_search {
	int32_t below, best;
};

static void look_at_comm(void *user, int32_t tid, const char *comm, size_t comm_bytes)
{
	static const char *const monitors[] = { "qemu", "kvm", "cloud-hyperviso", "firecracker",
		"crosvm" };
	/* Kernel threads that carry the number of the process they work for. */
	static const char *const helpers[] = { "vhost-", "kvm-pit/", "kvm-nx-lpage-re" };
	struct monitor_search *const search = user;

	for (size_t i = 0; i < sizeof(monitors) / sizeof(monitors[0]); i++) {
		const size_t length = strlen(monitors[i]);

		if (comm_bytes >= length && memcmp(comm, monitors[i], length) == 0 &&
			!(comm_bytes > 4 && memcmp(comm, "kvm-", 4) == 0) && tid <= search->below &&
			tid > search->best) {
			search->best = tid;
		}
	}
	for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++) {
		const size_t length = strlen(helpers[i]);
		int64_t process = 0;

		if (comm_bytes <= length || memcmp(comm, helpers[i], length) != 0) {
			continue;
		}
		for (size_t at = length; at < comm_bytes && comm[at] >= '0' && comm[at] <= '9' &&
					 process < INT32_MAX;
			at++) {
			process = process * 10 + (comm[at] - '0');
		}
		if (process > search->best && process <= search->below) {
			search->best = (int32_t)process;
		}
	}
}

static void find_monitor(struct tdm_convert_machine *host, uint32_t guest)
{
	struct monitor_search search = { INT32_MAX, -1 };

	for (size_t i = 0; i < host->vcpu_count; i++) {
		if (host->vcpus[i].guest == guest && host->vcpus[i].tid < search.below) {
			search.below = host->vcpus[i].tid;
		}
	}
	tdm_each_saved_comm(host->trace, look_at_comm, &search);
	for (size_t i = 0; i < host->vcpu_count; i++) {
		if (host->vcpus[i].guest == guest) {
			/* Viewers need one process for the threads of a guest: its first thread, where the monitor is unknown. */
			host->vcpus[i].pid = search.best > 0 ? search.best : search.below;
		}
	}
}

static bool is_guest_of(
	const struct tdm_convert_machine *guest, const struct tdm_convert_machine *host)
{
	return guest != host && guest->machine->reference == host->index &&
	       (guest->machine->tie == TDM_TIE_SHIFT || guest->machine->tie == TDM_TIE_CORRECTIONS);
}

enum tdm_status tdm_find_vcpus(
	struct tdm_convert_machine *conversions, size_t count, struct tdm_error *err)
{
	for (size_t h = 0; h < count; h++) {
		struct tdm_convert_machine *const host = &conversions[h];
		size_t guest_count = 0;

		for (size_t g = 0; g < count; g++) {
			const size_t before = host->vcpu_count;
			enum tdm_status status = TDM_OK;

			if (!is_guest_of(&conversions[g], host)) {
				continue;
			}
			guest_count++;
			status = take_guest_option(host, &conversions[g]);
			if (status == TDM_OK && host->vcpu_count == before && count == 2) {
				status = learn_threads(host, &conversions[g]);
			}
			if (status != TDM_OK) {
				return tdm_fail(err, status, "no memory for the vCPU threads");
			}
			settle_threads(host);
			find_monitor(host, (uint32_t)g);
		}
		host->syncs = guest_count ? calloc(guest_count, sizeof(*host->syncs)) : NULL;
		if (guest_count && !host->syncs) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the sync pairs");
		}
		host->sync_count = guest_count;
	}
	return TDM_OK;
}

/* Where the host's end of a pair can go: the first choice, behind the guest's start; else the first there is. */
struct choice {
	const struct tdm_convert_machine *guest;
	struct tdm_sync_point late, early;
};

static bool is_better(const struct tdm_sync_point *point, const struct tdm_sync_point *than)
{
	return !than->is_set || point->time < than->time;
}

/* Looks through one CPU until every guest has its place there, or the places found elsewhere are earlier. */
static void scan_cpu(struct tdm_convert_machine *host, const struct kvm_ids *ids, uint32_t cpu,
	struct choice *choices, size_t choice_count)
{
	struct tdm_cpu_scan *const scan = tdm_cpu_scan_create(host, cpu);
	bool *const on_cpu = calloc(host->vcpu_count + 1, sizeof(*on_cpu));
	struct tdm_scanned scanned;

	while (scan && on_cpu && tdm_cpu_scan_next(scan, &scanned)) {
		const struct tdm_vcpu_thread *thread = NULL;
		const bool is_kvm =
			scanned.slot->event_id == ids->entry || scanned.slot->event_id == ids->exit;
		bool is_open = false;
		uint32_t next = 0;
		int32_t tid = 0;

		for (size_t i = 0; i < choice_count; i++) {
			is_open |= !choices[i].late.is_set || choices[i].late.time > scanned.time;
		}
		if (!is_open || scanned.time > host->end_ns) {
			break;
		}
		if (ids->next_pid && scanned.slot->event_id == ids->sched_switch &&
			load_u32(host, scanned.slot, ids->next_pid->offset_bytes, &next)) {
			thread = tdm_find_vcpu_thread(host, (int32_t)next);
			if (thread && scanned.time >= host->begin_ns) {
				on_cpu[thread - host->vcpus] = true;
			}
			continue;
		}
		if (!is_kvm || scanned.time < host->begin_ns ||
			!load_tid(host, scanned.slot, &tid)) {
			continue;
		}
		thread = tdm_find_vcpu_thread(host, tid);
		/* The viewer knows who runs from sched_switch alone: one that it has not seen is no help. */
		if (!thread || (ids->next_pid && !on_cpu[thread - host->vcpus])) {
			continue;
		}
		for (size_t i = 0; i < choice_count; i++) {
			struct choice *const choice = &choices[i];
			const struct tdm_sync_point point = {
				.is_set = true,
				.stream_index = scanned.stream_index,
				.ordinal = scanned.ordinal,
				.cpu = cpu,
				.time = scanned.time,
				.tid = tid,
			};

			if (choice->guest->index != thread->guest) {
				continue;
			}
			if (shown_time(host, point.time) >
				shown_time(choice->guest, choice->guest->first_ns)) {
				if (is_better(&point, &choice->late)) {
					choice->late = point;
				}
			} else if (is_better(&point, &choice->early)) {
				choice->early = point;
			}
		}
	}
	free(on_cpu);
	tdm_cpu_scan_destroy(scan);
}

/* Fixes both ends of a guest's pair. The guest's goes to its start, or before the host's where that is earlier. */
static void fix_pair(struct tdm_convert_machine *host, struct tdm_convert_machine *guest,
	size_t index, const struct choice *choice)
{
	struct tdm_sync_point *const sync = &host->syncs[index];
	uint64_t uid = 0;
	int64_t at;

	*sync = choice->late.is_set ? choice->late : choice->early;
	if (!sync->is_set) {
		TDM_INFO(host->log,
			"No vmsync events: guest=\"%s\", reason=\"no KVM event of its vCPU threads in the host's trace\"",
			guest->machine->name);
		return;
	}
	memcpy(&uid, guest->machine->clock_uuid, sizeof(uid));
	sync->vm_uid = (uid & INT64_MAX) | 1;
	sync->count = 1;
	guest->guest_sync = *sync;
	at = shown_time(host, sync->time) - 1;
	if (at > shown_time(guest, guest->first_ns) - 1) {
		at = shown_time(guest, guest->first_ns) - 1;
	}
	at -= guest->epoch_offset_ns;
	if (at + (int64_t)guest->bias_ns < 0) {
		at = -(int64_t)guest->bias_ns;
	}
	guest->guest_sync.time = (uint64_t)at + guest->bias_ns;
	guest->report->has_sync_pair = true;
}

enum tdm_status tdm_plan_sync_pairs(
	struct tdm_convert_machine *conversions, size_t count, struct tdm_error *err)
{
	for (size_t h = 0; h < count; h++) {
		struct tdm_convert_machine *const host = &conversions[h];
		const struct kvm_ids ids = find_ids(host);
		struct choice *const choices = calloc(host->sync_count + 1, sizeof(*choices));
		uint32_t *const cpus = calloc(host->info->stream_count + 1, sizeof(*cpus));
		size_t choice_count = 0;

		if (!choices || !cpus) {
			free(choices);
			free(cpus);
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the sync pairs");
		}
		for (size_t g = 0; g < count && choice_count < host->sync_count; g++) {
			if (is_guest_of(&conversions[g], host) &&
				conversions[g].first_ns != UINT64_MAX) {
				choices[choice_count++].guest = &conversions[g];
			}
		}
		if (choice_count && host->vcpu_count &&
			(ids.entry != UINT32_MAX || ids.exit != UINT32_MAX)) {
			const size_t cpu_count = list_cpus(host, cpus);

			for (size_t i = 0; i < cpu_count; i++) {
				scan_cpu(host, &ids, cpus[i], choices, choice_count);
			}
		}
		for (size_t i = 0; i < choice_count; i++) {
			fix_pair(host, &conversions[choices[i].guest->index], i, &choices[i]);
		}
		free(choices);
		free(cpus);
	}
	return TDM_OK;
}
