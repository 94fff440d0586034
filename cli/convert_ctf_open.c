/* SPDX-License-Identifier: MIT */
/*
 * convert_ctf_open.c - which machines the CTF inputs of a conversion are, and what puts them on the host's clock.
 */
#include "convert_ctf_priv.h"
#include "corrections_beside.h"
#include <ctf_metadata.h>
#include <ctf_rewrite.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/clock_identity.h>
#include <tandem/text.h>
#include <tandem/wide.h>

enum convert_kind convert_kind_of(const char *path, struct tdm_error *fault)
{
	struct tdm_ctf_list list = { 0 };
	struct tdm_error err;
	struct stat about;
	enum convert_kind kind = CONVERT_FOLDER;

	if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode) ||
		tdm_trace_probe(path) != TDM_FORMAT_UNKNOWN) {
		return CONVERT_RECORDS;
	}
	if (tdm_ctf_list_find(path, &list, &err) == TDM_OK && list.count > 0) {
		kind = CONVERT_CTF;
	} else {
		tdm_ctf_list_fail_empty(path, &list, fault);
	}
	tdm_ctf_list_release(&list);
	return kind;
}

/* The metadata of a trace as text and as types; both to be released in either case. */
enum tdm_status convert_ctf_metadata(const char *trace, struct tdm_buffer *text,
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
		status = tsdl_text(path, bytes.bytes, bytes.size, text, err);
	}
	if (status == TDM_OK) {
		status = tsdl_parse(
			path, bytes.bytes, bytes.size, tdm_ctf_clone_fields, metadata, err);
	}
	if (status == TDM_OK && metadata->stream_count == 0) {
		status = tdm_fail(err, TDM_ERR_FORMAT,
			"%s: %zu bytes of metadata declare no stream, wanted one at least", path,
			bytes.size);
	}
	tdm_buffer_release(&bytes);
	return status;
}

/* ---- names ---- */

static bool is_taken(
	const struct convert_ctf *ctf, const struct ctf_machine *except, const char *name)
{
	for (size_t i = 0; i < ctf->count; i++) {
		if (&ctf->machines[i] != except && strcmp(ctf->machines[i].name, name) == 0) {
			return true;
		}
	}
	for (size_t i = 0; i < ctf->taken_count; i++) {
		if (strcmp(ctf->taken[i], name) == 0) {
			return true;
		}
	}
	return false;
}

static void take_name(struct convert_ctf *ctf, struct ctf_machine *machine, const char *wanted)
{
	char name[TDM_MACHINE_NAME_MAX + 1];

	snprintf(name, sizeof(name), "%s", wanted);
	for (unsigned int number = 2; is_taken(ctf, machine, name) && number < 10000; number++) {
		snprintf(name, sizeof(name), "%.*s-%u", TDM_MACHINE_NAME_MAX - 6, wanted, number);
	}
	memcpy(machine->name, name, sizeof(name));
}

static bool reserve(struct convert_ctf *ctf, const char *name)
{
	char(*const grown)[TDM_MACHINE_NAME_MAX + 1] =
		realloc(ctf->taken, (ctf->taken_count + 1) * sizeof(*grown));

	if (!grown) {
		return false;
	}
	ctf->taken = grown;
	snprintf(grown[ctf->taken_count++], sizeof(*grown), "%s", name);
	return true;
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

static void name_machine(struct convert_ctf *ctf, struct ctf_machine *machine,
	const struct tdm_machine_input *input, bool may_be_host,
	const struct tsdl_metadata *metadata)
{
	const struct tsdl_env *const hostname = tsdl_find_env(metadata, "hostname");
	char clean[TDM_MACHINE_NAME_MAX + 1];

	if (input->name) {
		take_name(ctf, machine, input->name);
	} else if (may_be_host) {
		take_name(ctf, machine, TDM_HOST_NAME);
	} else {
		tdm_machine_name_clean(
			hostname && hostname->text ? hostname->text : "guest", clean);
		take_name(ctf, machine, clean);
	}
	if (input->name && strcmp(machine->name, input->name) != 0) {
		TDM_WARNING(&ctf->command->log,
			"%s: another input is called \"%s\" too, so this one is \"%s\"",
			input->path, input->name, machine->name);
	}
	machine->is_host = strcmp(machine->name, TDM_HOST_NAME) == 0;
}

/* ---- machines ---- */

int64_t convert_ctf_clock_epoch(const struct tsdl_clock *clock)
{
	/* The offset counts cycles. */
	const tdm_i128 cycles_ns =
		(tdm_i128)clock->offset * NS_PER_S / (clock->freq_hz ? clock->freq_hz : NS_PER_S);

	return (int64_t)((uint64_t)cycles_ns + (uint64_t)clock->offset_s * NS_PER_S);
}

/* The first of its traces that can be read says whose clock it is. */
static enum tdm_status open_machine(struct convert_ctf *ctf, const struct tdm_machine_input *input,
	bool may_be_host, struct tdm_error *err)
{
	struct ctf_machine *const machine = &ctf->machines[ctf->count];
	enum tdm_status status = tdm_ctf_list_find(input->path, &machine->traces, err);
	struct tdm_error fault = { 0 };
	bool is_read = false;

	machine->dir.lock_fd = -1;
	machine->path = input->path;
	for (size_t i = 0; i < machine->traces.count && status == TDM_OK && !is_read; i++) {
		struct tdm_buffer text = { 0 };
		struct tsdl_metadata metadata;

		if (convert_ctf_metadata(machine->traces.paths[i], &text, &metadata,
			    i ? &fault : err) == TDM_OK) {
			is_read = true;
			if (metadata.clock_count) {
				const struct tsdl_clock *const clock = &metadata.clocks[0];

				machine->epoch_ns = convert_ctf_clock_epoch(clock);
				snprintf(machine->uuid, sizeof(machine->uuid), "%s",
					clock->uuid ? clock->uuid : "");
				snprintf(machine->clock_name, sizeof(machine->clock_name), "%s",
					clock->name ? clock->name : "");
			}
			name_machine(ctf, machine, input, may_be_host, &metadata);
		}
		tsdl_release(&metadata);
		tdm_buffer_release(&text);
	}
	if (status == TDM_OK && is_read) {
		ctf->count++;
		return TDM_OK;
	}
	tdm_ctf_list_release(&machine->traces);
	memset(machine, 0, sizeof(*machine));
	return status != TDM_OK ? status : TDM_ERR_FORMAT;
}

/* Machines that say the same of their clock (clones of one image) are kept apart. */
static void tell_apart(struct convert_ctf *ctf)
{
	for (size_t i = 1; i < ctf->count; i++) {
		struct ctf_machine *const machine = &ctf->machines[i];
		bool is_known = !*machine->uuid;

		for (size_t j = 0; j < i; j++) {
			is_known |= strcmp(machine->uuid, ctf->machines[j].uuid) == 0;
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

/* NAME.corrections beside the machine's traces or the host's, as tandem view takes them. */
static bool find_beside(const struct convert_ctf *ctf, struct ctf_machine *machine)
{
	const struct convert_options *const options = ctf->options;
	const bool named_host = somebody_is_host(options);
	bool found = corrections_beside(machine->path, machine->name, machine->beside);

	for (size_t i = 0; i < options->input_count && !found; i++) {
		const char *const name = options->inputs[i].name;
		const bool is_host =
			name ? strcmp(name, TDM_HOST_NAME) == 0 : i == 0 && !named_host;

		found = is_host &&
			corrections_beside(options->inputs[i].path, machine->name, machine->beside);
	}
	return found;
}

static bool fits_host(const struct convert_ctf *ctf, const struct ctf_machine *machine,
	char why[TDM_MISFIT_BYTES])
{
	bool is_its = true;

	for (size_t i = 0; is_its && i < ctf->count; i++) {
		const struct ctf_machine *const host = &ctf->machines[i];

		is_its = !host->is_host || tdm_clock_identity_fits(machine->timeline, TDM_SIDE_HOST,
						   host->uuid, host->clock_name, why);
	}
	return is_its;
}

static bool fits_guest(const struct ctf_machine *machine, char why[TDM_MISFIT_BYTES])
{
	return tdm_clock_identity_fits(
		machine->timeline, TDM_SIDE_GUEST, machine->uuid, machine->clock_name, why);
}

/* Of corrections that the user gave. Where they need a filter, that says it of the guest's clock. */
static void tell_misfit(const struct convert_ctf *ctf, const struct ctf_machine *machine)
{
	char why[TDM_MISFIT_BYTES];
	int64_t offset;

	if (!fits_host(ctf, machine, why) ||
		(tdm_timeline_is_constant(machine->timeline, &offset) &&
			!fits_guest(machine, why))) {
		TDM_WARNING(&ctf->command->log,
			"%s may not be for \"%s\", its events may be at wrong times: %s",
			machine->corrections, machine->name, why);
	}
}

/* What puts a guest on the host's clock; TDM_OK with timeline NULL: nothing. */
static enum tdm_status find_corrections(
	struct convert_ctf *ctf, struct ctf_machine *machine, struct tdm_error *err)
{
	const struct tdm_machines_options *const options = &ctf->options->machines;
	char why[TDM_MISFIT_BYTES];
	enum tdm_status status = TDM_OK;

	if (machine->is_host) {
		return TDM_OK;
	}
	for (size_t i = 0; i < options->correction_count && !machine->timeline; i++) {
		const struct tdm_correction_input *const one = &options->corrections[i];

		if (!one->guest || strcmp(one->guest, machine->name) == 0) {
			machine->corrections = one->path;
			status = tdm_timeline_load(one->path, &machine->timeline, err);
		}
		if (status != TDM_OK) {
			return status;
		}
	}
	for (size_t i = 0; i < options->offset_count && !machine->timeline; i++) {
		const struct tdm_offset_input *const one = &options->offsets[i];

		if (!one->machine || strcmp(one->machine, machine->name) == 0) {
			machine->timeline = tdm_timeline_from_offset(one->offset, 0);
			status = machine->timeline ? TDM_OK
						   : tdm_fail(err, TDM_ERR_NOMEM, "no memory");
		}
	}
	if (machine->timeline && machine->corrections) {
		tell_misfit(ctf, machine);
	}
	if (status == TDM_OK && !machine->timeline && find_beside(ctf, machine)) {
		machine->corrections = machine->beside;
		status = tdm_timeline_load(machine->beside, &machine->timeline, err);
		if (status != TDM_OK) {
			return status;
		}
		if (!fits_guest(machine, why) || !fits_host(ctf, machine, why)) {
			TDM_WARNING(&ctf->command->log,
				"%s is not used for \"%s\", though --corrections %s=%s would: %s",
				machine->beside, machine->name, machine->name, machine->beside,
				why);
			tdm_timeline_destroy(machine->timeline);
			machine->timeline = NULL;
			machine->corrections = NULL;
		}
	}
	if (machine->timeline) {
		find_bound(machine);
	} else if (ctf->count > 1 || ctf->is_mixed) {
		TDM_WARNING(&ctf->command->log,
			"%s: nothing relates its clock to the host's, so it keeps its own: give --corrections %s=FILE (tandem sync makes it while one records) or --offset %s=NS (tandem info --causality finds it where both sides recorded TCP packets)",
			machine->path, machine->name, machine->name);
	}
	return status;
}

static enum tdm_status open_all(struct convert_ctf *ctf, struct tdm_error *err)
{
	const struct convert_options *const options = ctf->options;
	const bool named_host = somebody_is_host(options);
	enum tdm_status first = TDM_OK;
	enum tdm_status status = TDM_OK;
	struct tdm_error fault = { 0 };

	for (size_t i = 0; i < options->input_count; i++) {
		if (options->kinds[i] == CONVERT_RECORDS) {
			ctf->is_mixed = true;
			if (options->inputs[i].name && !reserve(ctf, options->inputs[i].name)) {
				return tdm_fail(err, TDM_ERR_NOMEM, "no memory for names");
			}
		}
	}
	for (size_t i = 0; i < options->input_count; i++) {
		if (options->kinds[i] != CONVERT_CTF) {
			continue;
		}
		status = open_machine(ctf, &options->inputs[i], !named_host && i == 0, &fault);
		if (status == TDM_ERR_NOMEM) {
			*err = fault;
			return status;
		}
		if (status == TDM_OK) {
			continue;
		}
		if (first == TDM_OK) {
			first = status;
			*err = fault;
		} else {
			TDM_ERROR(&ctf->command->log, "%s", fault.text);
		}
		ctf->unread_count++;
	}
	if (ctf->count == 0) {
		return first;
	}
	if (first != TDM_OK) {
		TDM_ERROR(
			&ctf->command->log, "%s: the other inputs are read without it", err->text);
	}
	for (size_t i = 0; i < ctf->count; i++) {
		if (ctf->machines[i].is_host) {
			ctf->has_host = ctf->has_host_epoch = true;
			ctf->host_epoch_ns = ctf->machines[i].epoch_ns;
		}
	}
	tell_apart(ctf);
	for (size_t i = 0; i < ctf->count; i++) {
		status = find_corrections(ctf, &ctf->machines[i], err);
		if (status != TDM_OK) {
			return status;
		}
	}
	return TDM_OK;
}

enum tdm_status convert_ctf_open(const struct cli_command *command,
	const struct convert_options *options, struct convert_ctf **ctf, struct tdm_error *err)
{
	struct convert_ctf *const made = calloc(1, sizeof(*made));
	enum tdm_status status = TDM_ERR_NOMEM;

	*ctf = NULL;
	if (made) {
		made->command = command;
		made->options = options;
		made->machines = calloc(options->input_count + 1, sizeof(*made->machines));
	}
	if (made && made->machines) {
		status = open_all(made, err);
	} else {
		tdm_fail(err, status, "no memory");
	}
	if (status == TDM_OK) {
		*ctf = made;
	} else {
		convert_ctf_close(made);
	}
	return status;
}

void convert_ctf_close(struct convert_ctf *ctf)
{
	if (!ctf) {
		return;
	}
	for (size_t i = 0; ctf->machines && i < ctf->count; i++) {
		struct ctf_machine *const machine = &ctf->machines[i];

		tdm_ctf_dir_release(&machine->dir);
		tdm_ctf_list_release(&machine->traces);
		tdm_timeline_destroy(machine->timeline);
	}
	free(ctf->machines);
	free(ctf->taken);
	free(ctf);
}

/* ---- beside other machines ---- */

static bool is_for(const struct convert_ctf *ctf, const char *name)
{
	for (size_t i = 0; i < ctf->count; i++) {
		const struct ctf_machine *const machine = &ctf->machines[i];

		/* Without a name it is for the one guest: where that is here, it is taken. */
		if (name ? strcmp(machine->name, name) == 0 : machine->timeline != NULL) {
			return true;
		}
	}
	return false;
}

void convert_ctf_fill(const struct convert_ctf *ctf, struct tdm_machines_options *machines,
	struct tdm_correction_input *corrections, struct tdm_offset_input *offsets)
{
	size_t kept = 0;

	for (size_t i = 0; i < machines->correction_count; i++) {
		if (!is_for(ctf, corrections[i].guest)) {
			corrections[kept++] = corrections[i];
		}
	}
	machines->correction_count = kept;
	kept = 0;
	for (size_t i = 0; i < machines->offset_count; i++) {
		if (!is_for(ctf, offsets[i].machine)) {
			offsets[kept++] = offsets[i];
		}
	}
	machines->offset_count = kept;
	machines->host_is_elsewhere = ctf->has_host;
	machines->has_host_epoch = ctf->has_host_epoch;
	machines->host_epoch_ns = ctf->host_epoch_ns;
	for (size_t i = 0; i < ctf->count && !machines->has_host_epoch; i++) {
		if (ctf->machines[i].timeline) {
			const struct tdm_timeline_info info =
				tdm_timeline_get_info(ctf->machines[i].timeline);

			machines->has_host_epoch = info.has_epoch;
			machines->host_epoch_ns = info.epoch_offset_ns;
		}
	}
}

void convert_ctf_note_machine(struct convert_ctf *ctf, const struct tdm_machine *machine)
{
	(void)reserve(ctf, machine->name);
	for (size_t i = 0; i < ctf->count; i++) {
		struct ctf_machine *const own = &ctf->machines[i];

		if (strcmp(own->name, machine->name) == 0) {
			take_name(ctf, own, machine->name);
			TDM_WARNING(&ctf->command->log,
				"%s: another input is called \"%s\" too, so this one is \"%s\"",
				own->path, machine->name, own->name);
		}
	}
	if (machine->is_host && !ctf->has_host) {
		ctf->has_host_epoch = true;
		ctf->host_epoch_ns =
			(int64_t)((uint64_t)machine->epoch_offset_ns +
				  (uint64_t)tdm_trace_get_info(machine->trace)->date_offset_ns);
	}
}

int64_t convert_ctf_epoch(const struct convert_ctf *ctf, const struct ctf_machine *machine)
{
	if (ctf->has_host_epoch) {
		return ctf->host_epoch_ns;
	}

	const struct tdm_timeline_info info = tdm_timeline_get_info(machine->timeline);

	return info.has_epoch ? info.epoch_offset_ns : machine->epoch_ns;
}
