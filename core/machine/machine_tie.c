/* SPDX-License-Identifier: MIT */
#include "machines_priv.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tdm_tie_words(enum tdm_tie tie)
{
	switch (tie) {
	case TDM_TIE_SELF:
		return "the reference";
	case TDM_TIE_SAME:
		return "same machine as the reference";
	case TDM_TIE_SHIFT:
		return "time shift in the file";
	case TDM_TIE_CORRECTIONS:
		return "corrections file";
	case TDM_TIE_NAMED:
		return "named by the host, clock not measured";
	case TDM_TIE_NONE:
		break;
	}
	return "nothing";
}

/* The GUEST option of @p host that names @p guest, or NULL. */
static const struct tdm_guest_info *guest_option(
	const struct tdm_trace_info *host, const struct tdm_trace_info *guest)
{
	for (size_t i = 0; guest->has_trace_id && i < host->guest_count; i++) {
		if (host->guests[i].trace_id == guest->trace_id) {
			return &host->guests[i];
		}
	}
	return NULL;
}

static bool is_peer(const struct tdm_trace_info *host, const struct tdm_trace_info *guest)
{
	return guest->has_peer && host->has_trace_id && host->trace_id == guest->peer_trace_id;
}

/* Ties one file to the file that it was synchronised with, if that is among the inputs. */
static void tie_by_ids(struct tdm_machines *machines, size_t index)
{
	struct entry *const entry = &machines->entries[index];
	const struct tdm_trace_info *const info = machines_info(entry);
	size_t by_peer = SIZE_MAX;
	size_t by_option = SIZE_MAX;

	if (!info) {
		return;
	}
	for (size_t i = 0; i < machines->count; i++) {
		const struct tdm_trace_info *const other = machines_info(&machines->entries[i]);

		if (i == index || !other) {
			continue;
		}
		if (by_peer == SIZE_MAX && is_peer(other, info)) {
			by_peer = i;
		}

		const struct tdm_guest_info *const option = guest_option(other, info);

		/* A file that was itself moved onto this one's clock is no host of it (trace-cmd's agent proxy). */
		if (option && by_option == SIZE_MAX && !is_peer(info, other)) {
			by_option = i;
			if (option->name && *option->name) {
				free(entry->guest_name);
				entry->guest_name = strdup(option->name);
			}
		}
	}
	if (by_peer != SIZE_MAX && by_option != SIZE_MAX && by_peer != by_option) {
		TDM_WARNING(machines->log,
			"Inputs disagree about a guest's host; the one that its clock was measured against is taken: guest=\"%s\", measured=\"%s\", named-by=\"%s\"",
			entry->machine.path, machines->entries[by_peer].machine.path,
			machines->entries[by_option].machine.path);
	}
	if (by_peer != SIZE_MAX) {
		entry->machine.tie = TDM_TIE_SHIFT;
		entry->machine.reference = by_peer;
	} else if (by_option != SIZE_MAX) {
		/* A TIME_SHIFT against a machine that is not here still is a shift onto some host's clock. */
		entry->machine.tie = info->has_peer ? TDM_TIE_SHIFT : TDM_TIE_NAMED;
		entry->machine.reference = by_option;
	}
}

/* The user's "host", else the first file that other inputs were measured against, else the first that is no guest. */
static size_t choose_host(
	const struct tdm_machines *machines, const struct tdm_machine_input *inputs)
{
	for (size_t i = 0; i < machines->count; i++) {
		if (inputs[i].name && strcmp(inputs[i].name, TDM_HOST_NAME) == 0) {
			return i;
		}
	}
	for (size_t i = 0; i < machines->count; i++) {
		bool measured_against = false;

		for (size_t other = 0; other < machines->count; other++) {
			const struct tdm_machine *const machine = &machines->entries[other].machine;

			measured_against = measured_against || (machine->tie != TDM_TIE_NONE &&
								       machine->reference == i);
		}
		if (measured_against && machines->entries[i].machine.tie == TDM_TIE_NONE) {
			return i;
		}
	}
	for (size_t i = 0; i < machines->count; i++) {
		const struct tdm_trace_info *const info = machines_info(&machines->entries[i]);

		if (!inputs[i].name && info && !info->has_peer) {
			return i;
		}
	}
	for (size_t i = 0; i < machines->count; i++) {
		if (machines->entries[i].machine.trace) {
			return i;
		}
	}
	return 0;
}

void machines_choose_host(struct tdm_machines *machines, const struct tdm_machine_input *inputs,
	const struct tdm_machines_options *options)
{
	for (size_t i = 0; i < machines->count; i++) {
		machines->entries[i].machine.tie = TDM_TIE_NONE;
		machines->entries[i].machine.reference = i;
	}
	for (size_t i = 0; i < machines->count; i++) {
		tie_by_ids(machines, i);
	}

	if (options->host_is_elsewhere) {
		return;
	}

	const size_t host = choose_host(machines, inputs);
	struct tdm_machine *const host_machine = &machines->entries[host].machine;
	const struct tdm_trace_info *const host_info = machines_info(&machines->entries[host]);

	host_machine->is_host = true;
	host_machine->tie = TDM_TIE_SELF;
	host_machine->reference = host;
	for (size_t i = 0; i < machines->count; i++) {
		struct tdm_machine *const machine = &machines->entries[i].machine;
		const struct tdm_trace_info *const info = machines_info(&machines->entries[i]);

		if (machine->tie != TDM_TIE_NONE || !info || !host_info) {
			continue;
		}

		const bool same_id = info->has_trace_id && host_info->has_trace_id &&
				     info->trace_id == host_info->trace_id;
		const bool same_name = inputs[i].name && inputs[host].name &&
				       strcmp(inputs[i].name, inputs[host].name) == 0;

		if (same_id || same_name) {
			machine->tie = TDM_TIE_SAME;
			machine->reference = host;
		}
	}
}

/* The machine that a corrections file is for; the machine count where there is none such. */
static size_t machine_of_correction(
	const struct tdm_machines *machines, const struct tdm_correction_input *input)
{
	size_t found = machines->count;
	size_t guests = 0;

	for (size_t i = 0; i < machines->count; i++) {
		const struct tdm_machine *const machine = &machines->entries[i].machine;

		if (input->guest) {
			if (strcmp(machine->name, input->guest) == 0) {
				return i;
			}
		} else if (!machine->is_host && machine->tie != TDM_TIE_SAME) {
			found = i;
			guests++;
		}
	}
	if (input->guest) {
		return machines->count;
	}
	/* One input alone: the correction can only be meant for it. */
	if (guests == 0 && machines->count == 1) {
		return 0;
	}
	return guests == 1 ? found : machines->count;
}

static enum tdm_status no_such_guest(const struct tdm_machines *machines,
	const struct tdm_correction_input *input, struct tdm_error *err)
{
	char names[300] = "";
	size_t used = 0;

	for (size_t i = 0; i < machines->count && used < sizeof(names); i++) {
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
			machines->entries[i].machine.name);
	}
	if (input->guest) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"%s: no machine is called \"%s\"; the machines are %s", input->path,
			input->guest, names);
	}
	return tdm_fail(err, TDM_ERR_RANGE,
		"%s: it does not say which machine these corrections are for (NAME=FILE does); the machines are %s",
		input->path, names);
}

/*
 * Corrections lead to the host's raw readings. The host's stamps then get the host's DATE and OFFSET, so the guest's must
 * get the same and not its own.
 */
static void take_host_offset(struct tdm_machines *machines,
	const struct tdm_machines_options *options, struct entry *entry)
{
	const struct tdm_trace_info *const info = machines_info(entry);

	for (size_t i = 0; i < machines->count; i++) {
		const struct tdm_trace_info *const host = machines_info(&machines->entries[i]);

		if (machines->entries[i].machine.is_host && host && info &&
			&machines->entries[i] != entry) {
			entry->machine.offset_ns = (int64_t)((uint64_t)entry->machine.offset_ns +
							     (uint64_t)host->date_offset_ns -
							     (uint64_t)info->date_offset_ns);
			entry->machine.reference = i;
			return;
		}
	}

	const struct tdm_timeline_info said = tdm_timeline_get_info(entry->timeline);
	const int64_t epoch_ns =
		options->has_host_epoch ? options->host_epoch_ns : said.epoch_offset_ns;

	if ((said.has_epoch || options->has_host_epoch) && info) {
		entry->machine.offset_ns =
			(int64_t)((uint64_t)entry->machine.offset_ns + (uint64_t)epoch_ns -
				  (uint64_t)info->date_offset_ns);
	}
}

/* Gives a machine its timeline, whoever made it. */
static void set_timeline(struct tdm_machines *machines, const struct tdm_machines_options *options,
	struct entry *entry)
{
	entry->machine.corrections = entry->timeline;
	entry->machine.corrections_path = entry->corrections_path;
	if (!entry->machine.is_host) {
		entry->machine.tie = TDM_TIE_CORRECTIONS;
	}
	take_host_offset(machines, options, entry);
}

static enum tdm_status take_offsets(struct tdm_machines *machines,
	const struct tdm_machines_options *options, struct tdm_error *err)
{
	for (size_t i = 0; i < options->offset_count; i++) {
		const struct tdm_offset_input *const offset = &options->offsets[i];
		const struct tdm_correction_input input = { offset->machine,
			"offset given by hand" };
		const size_t index = machine_of_correction(machines, &input);
		struct entry *const entry =
			index < machines->count ? &machines->entries[index] : NULL;

		if (!entry) {
			return no_such_guest(machines, &input, err);
		}
		if (entry->timeline) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"%s: machine \"%s\" has corrections already, from %s", input.path,
				entry->machine.name, entry->corrections_path);
		}
		entry->timeline = tdm_timeline_from_offset(offset->is_raw ? offset->offset : 0, 0);
		entry->corrections_path = strdup(input.path);
		if (!entry->timeline || !entry->corrections_path) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for an offset");
		}
		if (!offset->is_raw) {
			entry->machine.offset_ns = (int64_t)((uint64_t)entry->machine.offset_ns +
							     (uint64_t)offset->offset);
		}
		set_timeline(machines, options, entry);
	}
	return TDM_OK;
}

void machines_spread_epoch(
	struct tdm_machines *machines, const struct tdm_machines_options *options)
{
	for (size_t i = 0; options->has_host_epoch && i < machines->count; i++) {
		struct tdm_machine *const machine = &machines->entries[i].machine;
		const struct tdm_trace_info *const info = machines_info(&machines->entries[i]);

		if (machine->is_host && info && !info->is_unix_time && info->date_offset_ns == 0) {
			machine->epoch_offset_ns = options->host_epoch_ns;
		}
	}
	for (size_t i = 0; i < machines->count; i++) {
		const struct entry *const guest = &machines->entries[i];
		const size_t host = guest->machine.reference;
		const struct tdm_trace_info *const info =
			host < machines->count ? machines_info(&machines->entries[host]) : NULL;

		/* Without a host among the machines the guest's stamps have it already: take_host_offset(). */
		if (!guest->timeline || host == i || !info || info->is_unix_time ||
			info->date_offset_ns != 0 ||
			!tdm_timeline_get_info(guest->timeline).has_epoch ||
			machines->entries[host].machine.epoch_offset_ns != 0) {
			continue;
		}
		machines->entries[host].machine.epoch_offset_ns =
			tdm_timeline_get_info(guest->timeline).epoch_offset_ns;
	}
	for (size_t i = 0; i < machines->count; i++) {
		struct tdm_machine *const machine = &machines->entries[i].machine;

		if (machine->reference < machines->count && machine->tie != TDM_TIE_NONE &&
			machine->tie != TDM_TIE_NAMED) {
			machine->epoch_offset_ns =
				machines->entries[machine->reference].machine.epoch_offset_ns;
		}
	}
}

enum tdm_status machines_load_corrections(struct tdm_machines *machines,
	const struct tdm_machines_options *options, struct tdm_error *err)
{
	for (size_t i = 0; i < options->correction_count; i++) {
		const struct tdm_correction_input *const input = &options->corrections[i];
		const size_t index = machine_of_correction(machines, input);

		if (index == machines->count) {
			return no_such_guest(machines, input, err);
		}

		struct entry *const entry = &machines->entries[index];

		if (entry->timeline) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"%s: machine \"%s\" has corrections already, from %s", input->path,
				entry->machine.name, entry->corrections_path);
		}

		const enum tdm_status status =
			tdm_timeline_load(input->path, &entry->timeline, err);

		if (status != TDM_OK) {
			return status;
		}
		entry->corrections_path = strdup(input->path);
		if (!entry->corrections_path) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a path");
		}
		set_timeline(machines, options, entry);
		machines_tell_misfit(machines, entry);
	}
	return take_offsets(machines, options, err);
}

enum tdm_status machines_tell_unrelated(struct tdm_machines *machines,
	const struct tdm_machines_options *options, struct tdm_error *err)
{
	char names[300] = "";
	size_t used = 0;

	for (size_t i = 0; i < machines->count; i++) {
		const struct tdm_machine *const machine = &machines->entries[i].machine;

		machines_tell_doubt(machines, &machines->entries[i]);
		if (machine->trace &&
			(machine->tie == TDM_TIE_NONE || machine->tie == TDM_TIE_NAMED) &&
			used < sizeof(names)) {
			used += (size_t)snprintf(names + used, sizeof(names) - used,
				"%s\"%s\" (%s)", used ? ", " : "", machine->name, machine->path);
		}
	}
	if (used == 0) {
		return TDM_OK;
	}
	if (options->refuse_unrelated) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"nothing relates the clock of %s to the others; give corrections for it (tandem sync, tandem estimate)",
			names);
	}
	TDM_WARNING(machines->log,
		"Nothing relates the clock of %s to the others, so its events are merged by their own stamps; give corrections for it (tandem sync, tandem estimate)",
		names);
	return TDM_OK;
}
