/* SPDX-License-Identifier: MIT */
#include "convert_ctf.h"
#include "convert_ctf_graph.h"
#include "tandem_version.h"
#include <ctf_clone.h>
#include <ctf_dir.h>
#include <ctf_rewrite.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/text.h>
#include <tandem/timeline.h>
#include <tandem/wide.h>
#include <unistd.h>

#define NS_PER_S  INT64_C(1000000000)
#define ENV_COUNT 8

/* One machine whose traces are CTF. */
struct ctf_machine {
	char name[TDM_MACHINE_NAME_MAX + 1];
	const char *path;
	bool is_host;
	struct tdm_ctf_list traces;
	int64_t epoch_ns;  /* of its own clock */
	char uuid[37];     /* of its own clock; "" = none */
	char new_uuid[37]; /* "" = its own stays */
	struct tdm_timeline *timeline;
	const char *corrections; /* file of the timeline; NULL: given as an offset */
	struct tdm_ctf_dir dir;
	struct tdm_ctf_clone_report report;
	bool through_graph;
	uint64_t bound_ns;
};

struct ctf_job {
	const struct cli_command *command;
	const struct convert_options *options;
	const char *out_dir;
	struct ctf_machine *machines;
	size_t count;
	const struct ctf_machine *host; /* NULL: none among them */
	struct tdm_error err;
};

static const char *const wanted_fields[] = { "content_size", "packet_size", "events_discarded",
	"packet_seq_num", "stream_id", NULL };

bool convert_ctf_is_input(const char *path)
{
	struct tdm_ctf_list list = { 0 };
	struct tdm_error err;
	struct stat about;
	const bool is_one = stat(path, &about) == 0 && S_ISDIR(about.st_mode) &&
			    tdm_trace_probe(path) == TDM_FORMAT_UNKNOWN &&
			    tdm_ctf_list_find(path, &list, &err) == TDM_OK && list.count > 0;

	tdm_ctf_list_release(&list);
	return is_one;
}

/* The metadata of a trace as text and as types; both to be released in either case. */
static enum tdm_status read_metadata(const char *trace, struct tdm_buffer *text,
	struct tsdl_metadata *metadata, struct tdm_error *err)
{
	char path[PATH_MAX];
	struct tdm_buffer bytes = { .cap = 256 << 20 };
	FILE *file;
	enum tdm_status status = TDM_OK;
	size_t got;

	memset(metadata, 0, sizeof(*metadata));
	convert_ctf_join(path, trace, "metadata");
	file = fopen(path, "rbe");
	if (!file) {
		return tdm_fail_errno(err, errno, "%s", path);
	}
	do {
		status = tdm_buffer_reserve(&bytes, 64 << 10);
		got = status == TDM_OK ? fread(bytes.bytes + bytes.size, 1, 64 << 10, file) : 0;
		bytes.size += got;
	} while (got);
	if (status != TDM_OK) {
		status = tdm_fail(err, status, "%s: no memory", path);
	} else if (ferror(file)) {
		status = tdm_fail_errno(err, EIO, "%s", path);
	}
	fclose(file);
	if (status == TDM_OK) {
		status = tdm_ctf_metadata_text(path, bytes.bytes, bytes.size, text, err);
	}
	if (status == TDM_OK) {
		status = tsdl_parse(path, bytes.bytes, bytes.size, wanted_fields, metadata, err);
	}
	if (status == TDM_OK && metadata->stream_count == 0) {
		status = tdm_fail(err, TDM_ERR_FORMAT,
			"%s: %zu bytes of metadata declare no stream, wanted one at least", path,
			bytes.size);
	}
	tdm_buffer_release(&bytes);
	return status;
}

/* ---- which machines there are ---- */

static bool is_taken(const struct ctf_job *job, const char *name)
{
	for (size_t i = 0; i < job->count; i++) {
		if (strcmp(job->machines[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static void take_name(struct ctf_job *job, struct ctf_machine *machine, const char *wanted)
{
	char name[TDM_MACHINE_NAME_MAX + 1];

	snprintf(name, sizeof(name), "%s", wanted);
	for (unsigned int number = 2; is_taken(job, name) && number < 10000; number++) {
		snprintf(name, sizeof(name), "%.*s-%u", TDM_MACHINE_NAME_MAX - 6, wanted, number);
	}
	memcpy(machine->name, name, sizeof(name));
}

static bool somebody_is_host(const struct convert_options *options)
{
	for (size_t i = 0; i < options->input_count; i++) {
		if (options->inputs[i].name &&
			strcmp(options->inputs[i].name, TDM_HOST_NAME) == 0) {
			return true;
		}
	}
	return false;
}

static enum tdm_status open_machine(
	struct ctf_job *job, const struct tdm_machine_input *input, bool may_be_host)
{
	struct ctf_machine *const machine = &job->machines[job->count];
	struct tdm_buffer text = { 0 };
	struct tsdl_metadata metadata;
	enum tdm_status status = tdm_ctf_list_find(input->path, &machine->traces, &job->err);

	machine->dir.lock_fd = -1;
	machine->path = input->path;
	memset(&metadata, 0, sizeof(metadata));
	if (status == TDM_OK) {
		status = read_metadata(machine->traces.paths[0], &text, &metadata, &job->err);
	}
	if (status == TDM_OK) {
		const struct tsdl_env *hostname = tsdl_find_env(&metadata, "hostname");
		char clean[TDM_MACHINE_NAME_MAX + 1];

		if (metadata.clock_count) {
			const struct tsdl_clock *clock = &metadata.clocks[0];

			/* The offset counts cycles; modulo 2^64, whatever a file says. */
			const tdm_i128 cycles_ns = (tdm_i128)clock->offset * NS_PER_S /
						   (clock->freq_hz ? clock->freq_hz : NS_PER_S);

			machine->epoch_ns = (int64_t)((uint64_t)cycles_ns +
						      (uint64_t)clock->offset_s * NS_PER_S);
			snprintf(machine->uuid, sizeof(machine->uuid), "%s",
				clock->uuid ? clock->uuid : "");
		}
		if (input->name) {
			take_name(job, machine, input->name);
		} else if (may_be_host) {
			take_name(job, machine, TDM_HOST_NAME);
		} else {
			tdm_machine_name_clean(
				hostname && hostname->text ? hostname->text : "guest", clean);
			take_name(job, machine, clean);
		}
		machine->is_host = strcmp(machine->name, TDM_HOST_NAME) == 0;
	}
	tsdl_release(&metadata);
	tdm_buffer_release(&text);
	job->count++;
	return status;
}

/* Machines that say the same of their clock (clones of one image) are kept apart. */
static void tell_apart(struct ctf_job *job)
{
	for (size_t i = 1; i < job->count; i++) {
		struct ctf_machine *const machine = &job->machines[i];
		bool is_known = !*machine->uuid;

		for (size_t j = 0; j < i; j++) {
			is_known |= strcmp(machine->uuid, job->machines[j].uuid) == 0;
		}
		if (is_known) {
			uint64_t hash[2] = { UINT64_C(0xcbf29ce484222325),
				UINT64_C(0x9ce484222325cbf2) };
			uint8_t uuid[16];

			for (const char *at = machine->name; *at; at++) {
				hash[0] = (hash[0] ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
				hash[1] = (hash[1] ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
			}
			for (const char *at = machine->uuid; *at; at++) {
				hash[0] = (hash[0] ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
				hash[1] = (hash[1] ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
			}
			memcpy(uuid, hash, sizeof(uuid));
			uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80);
			uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
			tdm_ctf_uuid_text(uuid, machine->new_uuid);
		}
	}
}

static void find_bound(struct ctf_machine *machine)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(machine->timeline);

	for (size_t i = 0; i < info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(machine->timeline, i);

		for (size_t j = 0; j < segment.knot_count; j++) {
			const struct tdm_knot *knot = &segment.knots[j];
			const uint64_t worst = knot->minus > knot->plus ? knot->minus : knot->plus;

			machine->bound_ns = worst > machine->bound_ns ? worst : machine->bound_ns;
		}
	}
}

/* What puts a guest on the host's clock; TDM_OK with timeline NULL: nothing. */
static enum tdm_status find_corrections(struct ctf_job *job, struct ctf_machine *machine)
{
	const struct tdm_machines_options *options = &job->options->machines;
	enum tdm_status status = TDM_OK;

	if (machine->is_host) {
		return TDM_OK;
	}
	for (size_t i = 0; i < options->correction_count && !machine->timeline; i++) {
		const struct tdm_correction_input *one = &options->corrections[i];

		if (!one->guest || strcmp(one->guest, machine->name) == 0) {
			machine->corrections = one->path;
			status = tdm_timeline_load(one->path, &machine->timeline, &job->err);
		}
		if (status != TDM_OK) {
			return status;
		}
	}
	for (size_t i = 0; i < options->offset_count && !machine->timeline; i++) {
		const struct tdm_offset_input *one = &options->offsets[i];

		if (!one->machine || strcmp(one->machine, machine->name) == 0) {
			machine->timeline = tdm_timeline_from_offset(one->offset, 0);
			status = machine->timeline
					 ? TDM_OK
					 : tdm_fail(&job->err, TDM_ERR_NOMEM, "no memory");
		}
	}
	if (machine->timeline) {
		find_bound(machine);
	} else if (job->count > 1) {
		TDM_WARNING(&job->command->log,
			"%s: nothing relates its clock to the host's, so it keeps its own: give --corrections %s=FILE or --offset %s=NS",
			machine->path, machine->name, machine->name);
	}
	return status;
}

/* ---- one trace ---- */

/* The Unix time of a reading 0 of the clock that this machine's stamps are put on. */
static int64_t epoch_of(const struct ctf_job *job, const struct ctf_machine *machine)
{
	if (job->host) {
		return job->host->epoch_ns;
	}

	const struct tdm_timeline_info info = tdm_timeline_get_info(machine->timeline);

	return info.has_epoch ? info.epoch_offset_ns : machine->epoch_ns;
}

/* One relation of slope 1 over all: the readings stay, and the clock's offset tells. */
static bool is_shift(
	const struct ctf_machine *machine, const struct tsdl_metadata *metadata, int64_t *offset)
{
	const struct tsdl_clock *clock = metadata->clock_count ? &metadata->clocks[0] : NULL;

	return metadata->clock_count == 1 && clock->freq_hz == (uint64_t)NS_PER_S &&
	       tdm_timeline_is_constant(machine->timeline, offset);
}

static enum tdm_status write_metadata(struct ctf_job *job, struct ctf_machine *machine,
	const char *dir, const struct tdm_buffer *text, struct tdm_ctf_changes *changes)
{
	const bool is_kernel = job->options->as_kernel;
	const struct tdm_ctf_env env[ENV_COUNT] = {
		{ "tandem_version", TDM_VERSION, 0 },
		{ "tandem_input", machine->path, 0 },
		{ "tandem_machine", machine->name, 0 },
		{ "tandem_role", machine->is_host ? "host" : "guest", 0 },
		{ "tandem_corrections",
			!machine->timeline     ? "none"
			: machine->corrections ? machine->corrections
					       : "offset given by hand",
			0 },
		{ "tandem_bound_ns", NULL, (int64_t)machine->bound_ns },
		{ "tandem_source_tracer", is_kernel ? "lttng-ust" : NULL, 0 },
	};
	struct tdm_buffer out = { 0 };
	char path[PATH_MAX];
	enum tdm_status status;

	changes->env = env;
	changes->env_count = is_kernel ? 7 : 6;
	changes->as_kernel = is_kernel;
	changes->makes_absolute = job->count > 1;
	changes->clock_uuid = *machine->new_uuid ? machine->new_uuid : NULL;
	convert_ctf_join(path, dir, "metadata");
	status = tdm_ctf_rewrite(path, text, changes, &out, &job->err);
	if (status == TDM_OK) {
		FILE *file = fopen(path, "wbe");

		if (!file || fwrite(out.bytes, 1, out.size, file) != out.size) {
			status = tdm_fail_errno(&job->err, errno, "%s", path);
		}
		if (file && fclose(file) != 0 && status == TDM_OK) {
			status = tdm_fail_errno(&job->err, errno, "%s", path);
		}
	}
	tdm_buffer_release(&out);
	return status;
}

/* Into @p to, which exists. */
static enum tdm_status convert_trace(
	struct ctf_job *job, struct ctf_machine *machine, const char *from, const char *to)
{
	struct tdm_buffer text = { 0 };
	struct tsdl_metadata metadata;
	struct tdm_ctf_changes changes = { 0 };
	int64_t offset = 0;
	enum tdm_status status = read_metadata(from, &text, &metadata, &job->err);

	if (status == TDM_OK && machine->timeline && !is_shift(machine, &metadata, &offset)) {
		/* Through the graph: what it reads has no empty packets, and what it writes is rewritten too. */
		struct tsdl_metadata written;
		char by_hand[32];

		/* Without a file the timeline is an offset, which the filter takes as a text. */
		snprintf(by_hand, sizeof(by_hand), "offset:%" PRId64,
			tdm_timeline_is_constant(machine->timeline, &offset) ? offset : 0);

		machine->through_graph = true;
		status = convert_ctf_graph(job->command, from, to,
			&(struct convert_ctf_filter){ .corrections = machine->corrections
									     ? machine->corrections
									     : by_hand,
				.guest = machine->name,
				.epoch_ns = epoch_of(job, machine) },
			&machine->report, &metadata, &job->err);
		text.size = 0;
		if (status == TDM_OK) {
			status = read_metadata(to, &text, &written, &job->err);
			tsdl_release(&written);
		}
		changes.plain_cpu_id = true;
		changes.one_clock = true;
	} else if (status == TDM_OK) {
		status = tdm_ctf_clone(
			from, to, &metadata, &job->command->log, &machine->report, &job->err);
		changes.sets_offset = machine->timeline != NULL;
		if (machine->timeline) {
			changes.clock_offset_ns =
				(int64_t)((uint64_t)offset + (uint64_t)epoch_of(job, machine));
		}
	}
	if (status == TDM_OK) {
		status = write_metadata(job, machine, to, &text, &changes);
	}
	tsdl_release(&metadata);
	tdm_buffer_release(&text);
	return status;
}

/* The folder of a trace below its machine's: none where the machine has one trace only. */
static void trace_folder(const struct ctf_machine *machine, size_t index, char *name, size_t room)
{
	const char *below = machine->traces.paths[index] + strlen(machine->path);

	name[0] = '\0';
	if (machine->traces.count == 1) {
		return;
	}
	while (*below == '/') {
		below++;
	}
	snprintf(name, room, "%s", *below ? below : "trace");
	for (char *at = name; *at; at++) {
		*at = *at == '/' ? '-' : *at;
	}
}

static enum tdm_status convert_machine(struct ctf_job *job, struct ctf_machine *machine)
{
	enum tdm_status status = tdm_ctf_dir_begin(
		&machine->dir, job->out_dir, machine->name, job->options->convert.force, &job->err);

	for (size_t i = 0; i < machine->traces.count && status == TDM_OK; i++) {
		char folder[NAME_MAX + 2], to[PATH_MAX];

		trace_folder(machine, i, folder, sizeof(folder));
		convert_ctf_join(to, machine->dir.work_path, folder);
		if (*folder && mkdir(to, 0777) != 0) {
			return tdm_fail_errno(&job->err, errno, "%s", to);
		}

		const uint64_t before = machine->report.stream_count;

		status = convert_trace(job, machine, machine->traces.paths[i], to);
		if (status == TDM_OK && *folder && machine->report.stream_count == before) {
			/* A trace that nobody wrote to: a metadata file alone is nothing to open. */
			char metadata[PATH_MAX];

			convert_ctf_join(metadata, to, "metadata");
			unlink(metadata);
			rmdir(to);
		}
	}
	return status;
}

static void print_machine(const struct ctf_machine *machine)
{
	const struct tdm_ctf_clone_report *report = &machine->report;

	printf("%s: %zu CTF trace%s of %s -> %" PRIu64 " stream%s, %" PRIu64 " bytes, in %s (%s)",
		machine->name, machine->traces.count, machine->traces.count == 1 ? "" : "s",
		machine->path, report->stream_count, report->stream_count == 1 ? "" : "s",
		report->bytes, machine->dir.final_path,
		machine->through_graph ? "every stamp corrected" : "streams copied");
	if (report->idle_streams) {
		printf(", %" PRIu64 " without events left out", report->idle_streams);
	}
	if (report->empty_packets) {
		printf(", %" PRIu64 " empty packets left out", report->empty_packets);
	}
	if (machine->timeline) {
		printf("\n    clock: %s, known to %" PRIu64 " ns\n",
			machine->corrections ? machine->corrections : "offset given by hand",
			machine->bound_ns);
	} else {
		printf("\n    clock: %s\n", machine->is_host ? "the reference" : "its own");
	}
}

static enum tdm_status open_all(struct ctf_job *job)
{
	const bool named_host = somebody_is_host(job->options);
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < job->options->input_count && status == TDM_OK; i++) {
		const struct tdm_machine_input *input = &job->options->inputs[i];

		if (convert_ctf_is_input(input->path)) {
			status = open_machine(job, input, !named_host && i == 0);
		}
	}
	for (size_t i = 0; i < job->count && status == TDM_OK; i++) {
		if (job->machines[i].is_host) {
			job->host = &job->machines[i];
		}
	}
	tell_apart(job);
	for (size_t i = 0; i < job->count && status == TDM_OK; i++) {
		status = find_corrections(job, &job->machines[i]);
	}
	return status;
}

int convert_ctf_run(
	const struct cli_command *command, const struct convert_options *options, const char *dir)
{
	struct ctf_job job = { .command = command,
		.options = options,
		.out_dir = dir,
		.machines = calloc(options->input_count + 1, sizeof(*job.machines)) };
	enum tdm_status status =
		job.machines ? open_all(&job) : tdm_fail(&job.err, TDM_ERR_NOMEM, "no memory");
	int exit_status = TDM_EXIT_DONE;

	for (size_t i = 0; i < job.count && status == TDM_OK; i++) {
		status = convert_machine(&job, &job.machines[i]);
	}
	for (size_t i = 0; i < job.count && status == TDM_OK; i++) {
		status = tdm_ctf_dir_commit(&job.machines[i].dir, &job.err);
	}
	if (status != TDM_OK) {
		exit_status = cli_failed(command, &job.err);
	}
	for (size_t i = 0; i < job.count; i++) {
		struct ctf_machine *const machine = &job.machines[i];

		if (status == TDM_OK && !command->quiet) {
			print_machine(machine);
		}
		if (status == TDM_OK && machine->report.damaged_bytes) {
			TDM_ERROR(&command->log, "%s: %" PRIu64 " bytes of its streams are damaged",
				machine->path, machine->report.damaged_bytes);
			exit_status = TDM_EXIT_INCOMPLETE;
		}
		if (status == TDM_OK && options->has_target && machine->timeline &&
			machine->bound_ns > options->target_bound_ns) {
			TDM_ERROR(&command->log,
				"%s: its clock is known to %" PRIu64 " ns, the target is %" PRIu64
				" ns",
				machine->name, machine->bound_ns, options->target_bound_ns);
			exit_status = TDM_EXIT_INCOMPLETE;
		}
		tdm_ctf_dir_release(&machine->dir);
		tdm_ctf_list_release(&machine->traces);
		tdm_timeline_destroy(machine->timeline);
	}
	free(job.machines);
	return exit_status;
}
