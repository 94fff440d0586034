/* SPDX-License-Identifier: MIT */
#include "record_guests.h"
#include "guest_address.h"
#include "out_dir.h"
#include "record_finish.h"
#include "record_tracecmd.h"
#include "sync_guest.h"
#include "sync_report.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tap.h>

/* One guest: what is recorded of it and how its clock is known. */
struct member {
	const struct record_guest_spec *spec;
	struct tdm_address address;
	struct tdm_stream_event *events; /* owned */
	struct tdm_stream_request request;
	/* With our agent. */
	struct record_guest *pages;
	struct sync_guest *clock;
	/* With trace-cmd's, "trace-cmd:HOST:PORT". */
	bool is_tracecmd;
	struct record_tracecmd *tracecmd;
	struct tdm_vcpu *vcpus; /* owned */
	struct record_guests *guests;
};

struct record_guests {
	struct record_guests_options options;
	struct tdm_secret secret;
	struct member *members;
	size_t count;
	struct tdm_guest_info *infos; /* one a member, for the host's file */
	struct vmm_list vmms;         /* guests that run on this machine */
	struct sync_serve *serve;
};

/* The guest's own list, or the host's where it has none. */
static enum tdm_status make_request(
	struct record_guests *guests, struct member *member, struct tdm_error *err)
{
	const struct record_options *record = guests->options.record;
	const struct record_events *events =
		member->spec->events.count ? &member->spec->events : &record->events;

	member->events = calloc(events->count, sizeof(*member->events));
	if (!member->events) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for events");
	}
	for (size_t i = 0; i < events->count; i++) {
		member->events[i] = (struct tdm_stream_event){
			.pattern = events->items[i].pattern,
			.filter = events->items[i].filter,
		};
	}
	member->request = (struct tdm_stream_request){
		.events = member->events,
		.event_count = events->count,
		.clock = guests->options.clock,
		.buffer_kib = record->buffer_kib,
		.kallsyms = record->kallsyms,
		.may_miss = member->spec->events.count == 0,
		.live = record->serve != NULL,
		.plain = record->plain_data,
	};
	return TDM_OK;
}

static enum tdm_status check_files(
	const struct record_guests *guests, const struct member *member, struct tdm_error *err)
{
	static const char *const suffixes[] = { ".dat", ".exchanges", ".corrections" };
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]) && status == TDM_OK; i++) {
		char *path = out_dir_path(guests->options.dir, member->spec->name, suffixes[i]);

		status = path ? out_dir_check_free(path, guests->options.record->force, err)
			      : tdm_fail(err, TDM_ERR_NOMEM, "no memory");
		free(path);
	}
	return status;
}

static enum tdm_status init_member(
	struct record_guests *guests, struct member *member, struct tdm_error *err)
{
	enum guest_agent agent;
	enum tdm_status status = guest_address_parse(member->spec->name, member->spec->address,
		&guests->vmms, &member->address, &agent, err);

	member->is_tracecmd = agent == GUEST_AGENT_TRACECMD;
	if (status == TDM_OK) {
		status = tdm_address_resolve(&member->address, err);
	}
	if (status != TDM_OK) {
		return tdm_error_prefix(err, "guest \"%s\"", member->spec->name);
	}
	status = check_files(guests, member, err);
	return status == TDM_OK ? make_request(guests, member, err) : status;
}

enum tdm_status record_guests_create(const struct record_guests_options *options,
	struct record_guests **guests, struct tdm_error *err)
{
	const struct record_options *record = options->record;
	struct record_guests *made = calloc(1, sizeof(*made));
	enum tdm_status status = TDM_OK;

	if (made) {
		made->members = calloc(record->guest_count + 1, sizeof(*made->members));
		made->infos = calloc(record->guest_count + 1, sizeof(*made->infos));
	}
	if (!made || !made->members || !made->infos) {
		record_guests_destroy(made);
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for guests");
	}
	made->options = *options;
	made->count = record->guest_count;
	if (made->count) {
		vmm_list_read(NULL, &made->vmms);
	}
	if (record->secret_file) {
		status = tdm_secret_load(record->secret_file, &made->secret, err);
	}
	for (size_t i = 0; i < made->count && status == TDM_OK; i++) {
		made->members[i].spec = &record->guests[i];
		made->members[i].guests = made;
		status = init_member(made, &made->members[i], err);
	}
	if (status != TDM_OK) {
		record_guests_destroy(made);
		return status;
	}
	*guests = made;
	return TDM_OK;
}

static void serve_lines(void *user, const char *text, size_t text_bytes)
{
	const struct member *member = user;
	const size_t index = (size_t)(member - member->guests->members);

	sync_serve_lines(member->guests->serve, index, text, text_bytes);
}

static enum tdm_status start_clock(
	struct record_guests *guests, struct member *member, struct tdm_error *err)
{
	const struct sync_guest_options options = {
		.name = member->spec->name,
		.address = member->address,
		.clock = guests->options.clock,
		.kernel_stamps = guests->options.record->kernel_stamps,
		.use_kvm = true,
		.secret = guests->secret.is_set ? &guests->secret : NULL,
		.dir = guests->options.dir,
		.target_bound_ns = guests->options.record->target_bound_ns,
		.log = guests->options.log,
		.interrupt_fd = guests->options.interrupt_fd,
		.lines = guests->serve ? serve_lines : NULL,
		.user = member,
	};

	member->clock = sync_guest_create(&options, err);
	return member->clock ? sync_guest_start(member->clock, err) : err->status;
}

static enum tdm_status start_pages(
	struct record_guests *guests, struct member *member, struct tdm_error *err)
{
	const struct record_guest_options options = {
		.name = member->spec->name,
		.address = &member->address,
		.secret = guests->secret.is_set ? &guests->secret : NULL,
		.request = &member->request,
		.dir = guests->options.dir,
		.force = guests->options.record->force,
		.host_trace_id = guests->options.host_ties->trace_id,
		.host_ties = guests->options.host_ties,
		.interrupt_fd = guests->options.interrupt_fd,
	};

	return record_guest_create(&options, &member->pages, err);
}

static enum tdm_status start_tracecmd(
	struct record_guests *guests, struct member *member, struct tdm_error *err)
{
	const struct record_options *record = guests->options.record;
	const struct record_tracecmd_options options = {
		.name = member->spec->name,
		.address = &member->address,
		.events = member->spec->events.count ? &member->spec->events : &record->events,
		.clock = guests->options.clock,
		.buffer_kib = record->buffer_kib,
		.dir = guests->options.dir,
		.force = record->force,
		.host_ties = guests->options.host_ties,
		.log = guests->options.log,
		.interrupt_fd = guests->options.interrupt_fd,
	};

	return record_tracecmd_create(&options, &member->tracecmd, err);
}

static struct record_spool *spool_of(const struct member *member)
{
	return member->is_tracecmd ? record_tracecmd_spool(member->tracecmd)
				   : record_guest_spool(member->pages);
}

/* The process that runs a guest; NULL: not known, or none that is known to run guests. */
static const struct vmm *vmm_of(const struct record_guests *guests, const struct member *member)
{
	return member->spec->vmm_pid
		       ? vmm_list_by_pid(&guests->vmms, member->spec->vmm_pid)
		       : vmm_list_match(&guests->vmms, member->spec->name, &member->address);
}

/* What the host's file says of a guest: its id, and which of our threads run its CPUs. */
static enum tdm_status describe(struct record_guests *guests, size_t index, struct tdm_error *err)
{
	struct member *member = &guests->members[index];
	struct record_spool *spool = spool_of(member);
	const uint32_t cpu_count = record_spool_cpus(spool);

	member->vcpus = calloc(cpu_count, sizeof(*member->vcpus));
	if (!member->vcpus) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for vCPUs");
	}

	const struct vmm own = { .pid = member->spec->vmm_pid };
	const struct vmm *vmm = vmm_of(guests, member);

	vmm_threads(NULL, vmm || !own.pid ? vmm : &own, member->vcpus, cpu_count);
	guests->infos[index] = (struct tdm_guest_info){
		.name = member->spec->name,
		.trace_id = record_spool_ties(spool)->trace_id,
		.vcpus = member->vcpus,
		.vcpu_count = cpu_count,
	};
	return TDM_OK;
}

void record_guests_set_clock(struct record_guests *guests, const char *clock)
{
	guests->options.clock = clock;
	for (size_t i = 0; i < guests->count; i++) {
		guests->members[i].request.clock = clock;
	}
}

void record_guests_choose_clock(struct record_guests *guests, struct record_clock *choice)
{
	struct record_clock_guest *known = calloc(guests->count + 1, sizeof(*known));
	size_t vm_count = 0;
	struct kvm_tsc_vm *vms = kvm_tsc_read(NULL, &vm_count);
	uint32_t mult, shift;

	for (size_t i = 0; known && i < guests->count; i++) {
		known[i] = (struct record_clock_guest){
			.name = guests->members[i].spec->name,
			.vmm = vmm_of(guests, &guests->members[i]),
			.is_tracecmd = guests->members[i].is_tracecmd,
		};
	}
	/* Without memory nothing is known of them. */
	record_clock_choose(known, guests->count, known ? vms : NULL, known ? vm_count : 0,
		tdm_tap_tsc_scale(&mult, &shift), choice);
	record_guests_set_clock(guests, choice->name);
	kvm_tsc_release(vms, vm_count);
	free(known);
}

/* One step of one guest, in a thread of its own: what a guest takes its time for costs the others none. */
struct step {
	struct member *member;
	enum tdm_status (*take)(struct member *member, struct tdm_error *err);
	enum tdm_status status;
	struct tdm_error err;
	pthread_t thread;
	bool runs;
};

static void *take_step(void *user)
{
	struct step *step = user;

	step->status = step->take(step->member, &step->err);
	return NULL;
}

/* Takes a step with all guests at once. @return What the first of them that failed says. */
static enum tdm_status step_all(struct record_guests *guests,
	enum tdm_status (*take)(struct member *member, struct tdm_error *err),
	struct tdm_error *err)
{
	struct step *steps = calloc(guests->count + 1, sizeof(*steps));
	enum tdm_status status =
		steps ? TDM_OK : tdm_fail(err, TDM_ERR_NOMEM, "no memory for guests");

	for (size_t i = 0; steps && i < guests->count; i++) {
		steps[i] = (struct step){ .member = &guests->members[i], .take = take };
		steps[i].runs = guests->count > 1 &&
				pthread_create(&steps[i].thread, NULL, take_step, &steps[i]) == 0;
		if (!steps[i].runs) {
			take_step(&steps[i]);
		}
	}
	for (size_t i = 0; steps && i < guests->count; i++) {
		if (steps[i].runs) {
			pthread_join(steps[i].thread, NULL);
		}
		if (status == TDM_OK && steps[i].status != TDM_OK) {
			status = steps[i].status;
			*err = steps[i].err;
		}
	}
	free(steps);
	return status;
}

static enum tdm_status open_member(struct member *member, struct tdm_error *err)
{
	return member->is_tracecmd ? start_tracecmd(member->guests, member, err)
				   : start_pages(member->guests, member, err);
}

static enum tdm_status start_member(struct member *member, struct tdm_error *err)
{
	return member->is_tracecmd ? record_tracecmd_start(member->tracecmd, err)
				   : record_guest_start(member->pages, err);
}

enum tdm_status record_guests_start_clocks(
	struct record_guests *guests, struct sync_serve *serve, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	guests->serve = serve;
	for (size_t i = 0; i < guests->count && status == TDM_OK; i++) {
		if (!guests->members[i].is_tracecmd) {
			status = start_clock(guests, &guests->members[i], err);
		}
	}
	return status;
}

enum tdm_status record_guests_prepare(struct record_guests *guests, struct tdm_error *err)
{
	enum tdm_status status = step_all(guests, open_member, err);

	for (size_t i = 0; i < guests->count && status == TDM_OK; i++) {
		status = describe(guests, i, err);
	}
	for (size_t i = 0; i < guests->count && status == TDM_OK; i++) {
		struct tdm_error reason = { 0 };

		/* A guest whose clock cannot be asked is still recorded; the end says it. */
		if (guests->members[i].clock &&
			sync_guest_await(guests->members[i].clock, &reason) != TDM_OK) {
			TDM_WARNING(guests->options.log, "guest \"%s\": no time exchanges yet: %s",
				guests->members[i].spec->name, reason.text);
		}
	}
	return status;
}

struct record_spool *record_guests_spool(struct record_guests *guests, size_t index)
{
	return index < guests->count ? spool_of(&guests->members[index]) : NULL;
}

enum tdm_status record_guests_start(struct record_guests *guests, struct tdm_error *err)
{
	return step_all(guests, start_member, err);
}

uint64_t record_guests_bytes(const struct record_guests *guests)
{
	uint64_t sum_bytes = 0;

	for (size_t i = 0; i < guests->count; i++) {
		sum_bytes += guests->members[i].is_tracecmd
				     ? record_tracecmd_bytes(guests->members[i].tracecmd)
				     : record_guest_bytes(guests->members[i].pages);
	}
	return sum_bytes;
}

/* What became of a guest, whichever agent it has. */
struct member_result {
	struct tdm_error failure;
	uint64_t received_bytes;
	struct record_losses losses;
	struct sync_outcome clock;
};

static struct member_result wait_member(struct member *member)
{
	struct member_result result = { 0 };

	if (member->is_tracecmd) {
		const struct record_tracecmd_result ended = record_tracecmd_wait(member->tracecmd);

		result.failure = ended.failure;
		result.received_bytes = ended.received_bytes;
		result.clock.quality = ended.quality;
		/* That agent prints what it lost on its own terminal. */
		result.losses = record_spool_losses(spool_of(member));
		if (!ended.has_clock) {
			result.clock.status = tdm_fail(&result.clock.err, TDM_ERR_RANGE,
				"trace-cmd's agent gave no usable probes");
		}
		return result;
	}

	const struct record_guest_result ended = record_guest_wait(member->pages);

	result.failure = ended.failure;
	result.received_bytes = ended.received_bytes;
	result.losses.events = ended.lost_events;
	/* The last burst comes after tracing has stopped. */
	sync_guest_stop(member->clock);
	sync_guest_join(member->clock, &result.clock);
	return result;
}

static void print_clock(const struct sync_outcome *outcome)
{
	if (outcome->status == TDM_OK) {
		printf(", clock %s", tdm_grade_name(outcome->quality.grade));
		if (outcome->quality.grade != TDM_GRADE_UNSYNCED) {
			printf(" to +-%" PRIu64 " ns (worst %" PRIu64 ")",
				sync_report_ns(outcome, outcome->quality.median_bound),
				sync_report_ns(outcome, outcome->quality.worst_bound));
		}
	}
}

/* What of the wanted events the guest's agent does not record, and why: in the summary. */
static void print_left_out(const struct member *member)
{
	static const char *const keys[] = { TDM_TAP_NOT_ALLOWED, TDM_TAP_PARTLY_ALLOWED,
		TDM_TAP_NO_MATCH };
	static const char *const reasons[] = { "not allowed by its agent",
		"some of it not allowed by its agent", "no such event there" };
	const struct tdm_buffer *const lines = record_guest_facts(member->pages).left_out;
	char pattern[TDM_VALUE_MAX + 1];

	for (size_t k = 0; lines && k < sizeof(keys) / sizeof(keys[0]); k++) {
		for (unsigned int i = 0; tdm_record_find(
			     (const char *)lines->bytes, lines->size, keys[k], i, pattern);
			i++) {
			printf("guest \"%s\": left out \"%s\": %s\n", member->spec->name, pattern,
				reasons[k]);
		}
	}
}

/* A line on stderr for each thing that is not as it should be. */
static bool tell_faults(
	const struct record_guests *guests, const char *name, const struct member_result *result)
{
	const uint64_t target_ns = guests->options.record->target_bound_ns;
	const struct sync_outcome *clock = &result->clock;
	bool complete = true;

	if (result->failure.status != TDM_OK) {
		fprintf(stderr, "tandem record: guest \"%s\": %s\n", name, result->failure.text);
		complete = false;
	}
	if (result->losses.events || result->losses.uncounted) {
		fprintf(stderr,
			"tandem record: guest \"%s\": %s%" PRIu64
			" events lost, its ring buffers were full (see -b)\n",
			name, result->losses.uncounted ? "more than " : "", result->losses.events);
		complete = false;
	}
	if (clock->status != TDM_OK) {
		fprintf(stderr, "tandem record: guest \"%s\": clock not known: %s\n", name,
			clock->err.text);
		complete = false;
	}
	if (clock->lacks_end) {
		fprintf(stderr,
			"tandem record: guest \"%s\": no time exchanges at the end: its clock is extrapolated\n",
			name);
		complete = false;
	}
	if (clock->is_delayed) {
		fprintf(stderr, "tandem record: guest \"%s\": peer lacks TCP_NODELAY\n", name);
	}
	const uint64_t worst_ns = sync_report_ns(clock, clock->quality.worst_bound);

	if (target_ns && clock->status == TDM_OK && worst_ns > target_ns) {
		fprintf(stderr,
			"tandem record: guest \"%s\": bound %" PRIu64 " ns, wanted %" PRIu64 "\n",
			name, worst_ns, target_ns);
		complete = false;
	}
	return complete;
}

static bool finish_member(struct record_guests *guests, struct member *member, bool quiet)
{
	const char *name = member->spec->name;
	const struct member_result result = wait_member(member);
	struct record_spool *spool = spool_of(member);
	struct tdm_timeline *corrections = record_load_corrections(guests->options.dir, name);
	struct tdm_error err = { 0 };
	const enum tdm_status status =
		record_spool_finish(spool, NULL, 0, corrections, guests->options.log, &err);

	tdm_timeline_destroy(corrections);
	if (!quiet && status == TDM_OK) {
		printf("%s/%s.dat: %" PRIu64 " KiB of events recorded", guests->options.dir, name,
			result.received_bytes / 1024);
		print_clock(&result.clock);
		printf("\n");
		if (!member->is_tracecmd) {
			print_left_out(member);
		}
	}
	if (status != TDM_OK) {
		fprintf(stderr, "tandem record: guest \"%s\": %s\n", name, err.text);
	}
	return tell_faults(guests, name, &result) && status == TDM_OK;
}

bool record_guests_finish(struct record_guests *guests, bool quiet)
{
	bool complete = true;

	for (size_t i = 0; i < guests->count; i++) {
		if (guests->members[i].is_tracecmd) {
			record_tracecmd_ask_stop(guests->members[i].tracecmd);
		} else {
			record_guest_ask_stop(guests->members[i].pages);
		}
	}
	for (size_t i = 0; i < guests->count; i++) {
		complete &= finish_member(guests, &guests->members[i], quiet);
	}
	return complete;
}

const struct tdm_guest_info *record_guests_ties(struct record_guests *guests, size_t *count)
{
	*count = guests->count;
	return guests->infos;
}

void record_guests_discard(struct record_guests *guests)
{
	for (size_t i = 0; i < guests->count; i++) {
		struct member *member = &guests->members[i];

		if (member->clock) {
			sync_guest_discard(member->clock);
		}
		if (member->pages || member->tracecmd) {
			record_spool_remove(spool_of(member));
		}
	}
}

void record_guests_destroy(struct record_guests *guests)
{
	if (!guests) {
		return;
	}
	for (size_t i = 0; guests->members && i < guests->count; i++) {
		record_guest_destroy(guests->members[i].pages);
		record_tracecmd_destroy(guests->members[i].tracecmd);
		sync_guest_destroy(guests->members[i].clock);
		free(guests->members[i].events);
		free(guests->members[i].vcpus);
	}
	tdm_secret_clear(&guests->secret);
	vmm_list_release(&guests->vmms);
	free(guests->members);
	free(guests->infos);
	free(guests);
}
