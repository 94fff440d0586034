/* SPDX-License-Identifier: MIT */
#include "machines_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum tdm_status open_trace(struct tdm_machines *machines, struct entry *entry,
	const struct tdm_machines_options *options, struct tdm_error *err)
{
	const struct tdm_stamp_options stamps = {
		.corrections = entry->timeline,
		.clock_hz = options->clock_hz,
		.offset_ns = entry->machine.offset_ns,
	};
	struct tdm_error why = { TDM_OK, "" };
	const enum tdm_status status = tdm_trace_open(
		entry->machine.path, &stamps, machines->log, &entry->machine.trace, &why);

	if (status == TDM_OK) {
		return TDM_OK;
	}
	entry->machine.trace = NULL;
	entry->machine.error = why;
	if (options->keep_going && status != TDM_ERR_NOMEM) {
		return TDM_OK;
	}
	if (err) {
		*err = why;
	}
	return status;
}

const struct tdm_trace_info *machines_info(const struct entry *entry)
{
	return entry->machine.trace ? tdm_trace_get_info(entry->machine.trace) : NULL;
}

/* FNV-1a with two bases: no more is asked of it than to differ where the identity does. */
static void hash_bytes(uint64_t hash[2], const void *bytes, size_t size)
{
	const uint8_t *const at = bytes;

	for (size_t i = 0; i < size; i++) {
		hash[0] = (hash[0] ^ at[i]) * UINT64_C(0x100000001b3);
		hash[1] = (hash[1] ^ at[i]) * UINT64_C(0x100000001b3);
	}
}

static void hash_text(uint64_t hash[2], const char *text)
{
	hash_bytes(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

/*
 * A machine's clock is known by its trace id, which is random for each recording and so tells cloned guests apart.
 * Files without one (version 6 of old recorders) fall back on what they say of their machine and their own name.
 */
static void make_clock_uuid(struct tdm_machine *machine)
{
	uint64_t hash[2] = { UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4) };
	const struct tdm_trace_info *const info =
		machine->trace ? tdm_trace_get_info(machine->trace) : NULL;

	if (info && info->has_trace_id) {
		hash_bytes(hash, &info->trace_id, sizeof(info->trace_id));
	} else {
		hash_text(hash, info ? info->hostname : NULL);
		hash_text(hash, info ? info->kernel_release : NULL);
		hash_text(hash, machine->name);
		hash_text(hash, machine->path);
	}
	memcpy(machine->clock_uuid, hash, sizeof(machine->clock_uuid));
	/* Version 8, variant 1 of RFC 9562: made in a way of our own. */
	machine->clock_uuid[6] = (uint8_t)((machine->clock_uuid[6] & 0x0f) | 0x80);
	machine->clock_uuid[8] = (uint8_t)((machine->clock_uuid[8] & 0x3f) | 0x80);
}

static bool name_is_taken(const struct tdm_machines *machines, const char *name, size_t except)
{
	for (size_t i = 0; i < machines->count; i++) {
		if (i != except && strcmp(machines->entries[i].machine.name, name) == 0) {
			return true;
		}
	}
	return false;
}

/* Takes a name, numbered where another machine has it: "web", "web-2", ... */
static void take_name(struct tdm_machines *machines, size_t index, const char *wanted)
{
	struct tdm_machine *const machine = &machines->entries[index].machine;
	char name[TDM_MACHINE_NAME_MAX + 1];

	snprintf(name, sizeof(name), "%s", wanted);
	for (size_t number = 2; name_is_taken(machines, name, index); number++) {
		char suffix[24];
		const int suffix_bytes = snprintf(suffix, sizeof(suffix), "-%zu", number);

		snprintf(name, sizeof(name), "%.*s%s", TDM_MACHINE_NAME_MAX - suffix_bytes, wanted,
			suffix);
	}
	memcpy(machine->name, name, sizeof(name));
}

/* What the files call a guest: the name in its host's GUEST option, else its hostname, else its file's name. */
static void name_from_files(struct tdm_machines *machines, size_t index)
{
	struct entry *const entry = &machines->entries[index];
	const struct tdm_trace_info *const info = machines_info(entry);
	const char *found = entry->guest_name;
	char clean[TDM_MACHINE_NAME_MAX + 1];

	if (!found && info && info->hostname && *info->hostname) {
		found = info->hostname;
	}
	if (!found) {
		const char *const slash = strrchr(entry->machine.path, '/');

		found = slash ? slash + 1 : entry->machine.path;
	}
	tdm_machine_name_clean(found, clean);
	take_name(machines, index, clean);
}

static enum tdm_status check_given_names(
	const struct tdm_machine_input *inputs, size_t count, struct tdm_error *err)
{
	for (size_t i = 0; i < count; i++) {
		if (inputs[i].name && !tdm_machine_name_is_valid(inputs[i].name)) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"\"%s\" is no name for a machine: letters, digits, \"_\", and not first \".\" or \"-\", at most %d",
				inputs[i].name, TDM_MACHINE_NAME_MAX);
		}
	}
	return TDM_OK;
}

/* The user's names first, then the host, then those that files give; so no file can take a name that the user gave. */
static void name_all(struct tdm_machines *machines, const struct tdm_machine_input *inputs)
{
	for (size_t i = 0; i < machines->count; i++) {
		if (inputs[i].name) {
			take_name(machines, i, inputs[i].name);
			if (strcmp(machines->entries[i].machine.name, inputs[i].name) != 0) {
				TDM_WARNING(machines->log,
					"%s: another input is called \"%s\" too, so this one is \"%s\"",
					machines->entries[i].path, inputs[i].name,
					machines->entries[i].machine.name);
			}
		}
	}
	for (size_t i = 0; i < machines->count; i++) {
		if (!inputs[i].name && machines->entries[i].machine.is_host) {
			take_name(machines, i, TDM_HOST_NAME);
		}
	}
	for (size_t i = 0; i < machines->count; i++) {
		if (!machines->entries[i].machine.name[0]) {
			name_from_files(machines, i);
		}
	}
	for (size_t i = 0; i < machines->count; i++) {
		make_clock_uuid(&machines->entries[i].machine);
	}
}

/* A file that is given twice would be two machines that do the same. */
static void tell_twice(const struct tdm_machines *machines)
{
	for (size_t i = 1; i < machines->count; i++) {
		struct stat one, other;

		if (stat(machines->entries[i].path, &one) != 0) {
			continue;
		}
		for (size_t j = 0; j < i; j++) {
			if (stat(machines->entries[j].path, &other) == 0 &&
				one.st_dev == other.st_dev && one.st_ino == other.st_ino) {
				TDM_WARNING(machines->log,
					"%s is the same file as %s: each of its events is there twice",
					machines->entries[i].path, machines->entries[j].path);
				break;
			}
		}
	}
}

enum tdm_status tdm_machines_open(const struct tdm_machine_input *inputs, size_t input_count,
	const struct tdm_machines_options *options, const struct tdm_log *log,
	struct tdm_machines **machines, struct tdm_error *err)
{
	struct tdm_machines *made = NULL;
	enum tdm_status status = check_given_names(inputs, input_count, err);

	if (status != TDM_OK) {
		return status;
	}
	if (input_count == 0) {
		return tdm_fail(err, TDM_ERR_RANGE, "no inputs");
	}
	made = calloc(1, sizeof(*made));
	if (made) {
		made->entries = calloc(input_count, sizeof(*made->entries));
	}
	if (!made || !made->entries) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu inputs", input_count);
		goto out;
	}
	made->log = log;
	made->count = input_count;
	for (size_t i = 0; i < input_count; i++) {
		struct entry *const entry = &made->entries[i];

		entry->path = strdup(inputs[i].path);
		if (!entry->path) {
			status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for a path");
			goto out;
		}
		entry->machine.path = entry->path;
		entry->machine.offset_ns = options->offset_ns;
		status = open_trace(made, entry, options, err);
		if (status != TDM_OK) {
			goto out;
		}
	}
	tell_twice(made);
	machines_choose_host(made, inputs, options);
	name_all(made, inputs);
	status = machines_load_corrections(made, options, err);
	if (status != TDM_OK) {
		goto out;
	}
	for (size_t i = 0; i < input_count; i++) {
		struct entry *const entry = &made->entries[i];

		if (entry->timeline && entry->machine.trace) {
			/* Stamps are made when a trace is opened; only now is it known whose they are. */
			tdm_trace_close(entry->machine.trace);
			status = open_trace(made, entry, options, err);
			if (status != TDM_OK) {
				goto out;
			}
		}
	}
	machines_spread_epoch(made, options);
	status = machines_tell_unrelated(made, options, err);
	if (status == TDM_OK) {
		*machines = made;
		made = NULL;
	}
out:
	tdm_machines_close(made);
	return status;
}

enum tdm_status tdm_machines_of_trace(struct tdm_trace *trace, const char *name,
	const struct tdm_log *log, struct tdm_machines **machines, struct tdm_error *err)
{
	struct tdm_machines *made = calloc(1, sizeof(*made));
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!made || !entry || !tdm_machine_name_is_valid(name)) {
		tdm_trace_close(trace);
		free(made);
		free(entry);
		return made && entry ? tdm_fail(err, TDM_ERR_RANGE,
					       "\"%s\" is no name for a machine", name)
				     : tdm_fail(err, TDM_ERR_NOMEM, "no memory for a machine");
	}
	made->log = log;
	made->entries = entry;
	made->count = 1;
	entry->machine.trace = trace;
	entry->machine.path = tdm_trace_get_info(trace)->path;
	entry->machine.tie = TDM_TIE_SELF;
	entry->machine.is_host = strcmp(name, TDM_HOST_NAME) == 0;
	snprintf(entry->machine.name, sizeof(entry->machine.name), "%s", name);
	make_clock_uuid(&entry->machine);
	*machines = made;
	return TDM_OK;
}

void tdm_machines_close(struct tdm_machines *machines)
{
	if (!machines) {
		return;
	}
	for (size_t i = 0; machines->entries && i < machines->count + machines->aside_count; i++) {
		struct entry *const entry = &machines->entries[i];

		tdm_trace_close(entry->machine.trace);
		tdm_timeline_destroy(entry->timeline);
		free(entry->corrections_path);
		free(entry->guest_name);
		free(entry->path);
	}
	free(machines->entries);
	free(machines);
}

/* Where an entry stands once those without a trace are behind the others. */
static size_t place_of(const struct tdm_machines *machines, size_t index)
{
	const bool is_open = machines->entries[index].machine.trace != NULL;
	size_t place = 0;

	for (size_t i = 0; i < machines->count; i++) {
		const bool other_is_open = machines->entries[i].machine.trace != NULL;

		place += other_is_open == is_open ? i < index : other_is_open;
	}
	return place;
}

enum tdm_status tdm_machines_put_aside_unopened(
	struct tdm_machines *machines, size_t *put_aside, struct tdm_error *err)
{
	struct entry *const sorted = calloc(machines->count + 1, sizeof(*sorted));
	size_t opened = 0;

	if (!sorted) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu machines", machines->count);
	}
	for (size_t i = 0; i < machines->count; i++) {
		const struct entry *const entry = &machines->entries[i];
		const size_t reference = entry->machine.reference;
		struct entry *const moved = &sorted[place_of(machines, i)];

		opened += entry->machine.trace != NULL;
		*moved = *entry;
		moved->machine.reference = place_of(machines,
			reference < machines->count && machines->entries[reference].machine.trace
				? reference
				: i);
	}
	free(machines->entries);
	machines->entries = sorted;
	*put_aside = machines->count - opened;
	machines->aside_count = *put_aside;
	machines->count = opened;
	if (opened == 0) {
		const struct tdm_error *const first = &sorted[0].machine.error;

		return tdm_fail(err, first->status, "%s", first->text);
	}
	for (size_t i = 0; i < *put_aside; i++) {
		TDM_ERROR(machines->log, "%s: the other inputs are read without it",
			sorted[opened + i].machine.error.text);
	}
	return TDM_OK;
}

size_t tdm_machines_count(const struct tdm_machines *machines)
{
	return machines->count;
}

const struct tdm_machine *tdm_machines_at(const struct tdm_machines *machines, size_t index)
{
	return &machines->entries[index].machine;
}
