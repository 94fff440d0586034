/* SPDX-License-Identifier: MIT */
/*
 * machines.h - several inputs become machines: which is the host, which guests are its own, what they are called.
 *
 * trace.dat files of one session are tied by their trace ids (the host's GUEST options, the guest's TIME_SHIFT).
 * The plugin, the converters and the commands all open their inputs through this, so they agree on names and time.
 */
#ifndef TANDEM_MACHINES_H
#define TANDEM_MACHINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/clock_identity.h>
#include <tandem/log.h>
#include <tandem/status.h>
#include <tandem/timeline.h>
#include <tandem/trace.h>

#define TDM_MACHINE_NAME_MAX 64
#define TDM_HOST_NAME        "host"

/* One input as the user gave it. */
struct tdm_machine_input {
	const char *name; /* of its machine; NULL: the files say, or the order does */
	const char *path;
};

/* One corrections file as the user gave it. */
struct tdm_correction_input {
	const char *guest; /* name of the machine it is for; NULL: the one guest */
	const char *path;
};

/* One relation of clocks as the user gave it by hand. Like a corrections file it replaces a TIME_SHIFT. */
struct tdm_offset_input {
	const char *machine; /* name of the machine it is for; NULL: the one guest */
	int64_t offset;      /* host minus guest */
	bool is_raw; /* in units of the raw clock (ticks of the TSC); else in ns, added last */
};

struct tdm_machines_options {
	const struct tdm_correction_input *corrections;
	size_t correction_count;
	const struct tdm_offset_input *offsets;
	size_t offset_count;
	uint64_t clock_hz;     /* of clocks that are not in ns; 0 = the files know */
	int64_t offset_ns;     /* added to every stamp, last */
	bool refuse_unrelated; /* inputs that nothing ties together are an error, not a warning */
	bool keep_going; /* an input that cannot be opened is a machine without a trace, not an error */
	bool host_is_elsewhere; /* the host is none of these inputs, all of which are its guests */
	/* What makes Unix time of the host's readings, where somebody knows it but the inputs do not. */
	bool has_host_epoch;
	int64_t host_epoch_ns;
};

/* What puts a machine on the host's clock. */
enum tdm_tie {
	TDM_TIE_SELF, /* the host, or a machine alone */
	TDM_TIE_SAME, /* another recording of the host itself (same trace id or same machine name) */
	TDM_TIE_SHIFT,       /* a TIME_SHIFT that trace-cmd measured against it */
	TDM_TIE_CORRECTIONS, /* a corrections file */
	TDM_TIE_NAMED, /* the host's file names it as its guest, but nobody measured its clock */
	TDM_TIE_NONE   /* nothing */
};

struct tdm_machine {
	char name[TDM_MACHINE_NAME_MAX + 1]; /* unique among the machines; safe as a file name */
	const char *path;                    /* of its input */
	struct tdm_trace *trace;             /* NULL where keep_going and it could not be opened */
	struct tdm_error error;              /* why not */
	enum tdm_tie tie;
	bool is_host;
	size_t reference; /* index of the machine whose clock it was put on; itself for TDM_TIE_SELF */
	uint8_t clock_uuid[16];                 /* one a machine, derived from its trace id */
	const struct tdm_timeline *corrections; /* NULL = none */
	const char *corrections_path;
	int64_t offset_ns; /* what was added last to its stamps */
	/* What makes Unix time of its stamps, for the clock that shows them; 0 where they are Unix time already, or nobody
	 * knows. The same for a host and all that was put on its clock. */
	int64_t epoch_offset_ns;
};

struct tdm_machines;

/**
 * Opens the inputs, ties them and names them. Says on @p log once what cannot be related, with the remedy.
 *
 * @param inputs    Borrowed for the call; in the user's order, which is the order of the machines.
 * @param log       Kept: must outlive the machines. May be NULL.
 * @param machines  Receives them, owned by the caller.
 * @retval TDM_ERR_*  An input or a corrections file cannot be read, a name is not allowed, or inputs are unrelated
 *                    and that was to be refused.
 */
enum tdm_status tdm_machines_open(const struct tdm_machine_input *inputs, size_t input_count,
	const struct tdm_machines_options *options, const struct tdm_log *log,
	struct tdm_machines **machines, struct tdm_error *err);
void tdm_machines_close(struct tdm_machines *machines);

/**
 * The one machine of a trace that is open already, e.g. a live one.
 *
 * @param trace  Taken: closed with the machines, on failure at once.
 * @param name   What it is called; "host" makes it the host. Copied.
 */
enum tdm_status tdm_machines_of_trace(struct tdm_trace *trace, const char *name,
	const struct tdm_log *log, struct tdm_machines **machines, struct tdm_error *err);

/**
 * Puts the machines whose input could not be opened (keep_going) behind the others, where tdm_machines_count() no longer
 * counts them, and says each fault as an error on the log. References follow; a guest whose host is put aside becomes its
 * own reference and keeps its stamps.
 *
 * @param put_aside  Receives how many there are.
 * @retval TDM_ERR_*  None could be opened: @p err has the fault of the first, and nothing was said.
 */
enum tdm_status tdm_machines_put_aside_unopened(
	struct tdm_machines *machines, size_t *put_aside, struct tdm_error *err);

size_t tdm_machines_count(const struct tdm_machines *machines);
const struct tdm_machine *tdm_machines_at(const struct tdm_machines *machines, size_t index);

/**
 * Holds corrections of a guest against its trace and its host's: identities and names of their clocks, and the shift in the
 * guest's file, where it has one, from which they must be less than a second away.
 *
 * @param host  Where it is known; else NULL.
 * @param why   Receives what differs, as tdm_clock_identity_fits() does.
 */
bool tdm_machine_corrections_fit(const struct tdm_timeline *timeline,
	const struct tdm_trace_info *guest, const struct tdm_trace_info *host,
	char why[TDM_MISFIT_BYTES]);

/** A few words for a tie, e.g. "time shift in the file". Never NULL. */
const char *tdm_tie_words(enum tdm_tie tie);

/**
 * Whether a user may give a machine this name: a letter, digit or "_", then also "." and "-", at most 64 bytes.
 * "host" is allowed here: it names the reference.
 */
bool tdm_machine_name_is_valid(const char *name);

/** Maps a name that came out of a file to an allowed one ("_" for what is not); never empty, never "host". */
void tdm_machine_name_clean(const char *name, char clean[TDM_MACHINE_NAME_MAX + 1]);

/* How the unit of a trace clock is shown. */
struct tdm_clock_unit {
	bool is_ns;       /* its readings are nanoseconds (after TSC2NSEC, clock_hz) */
	const char *unit; /* "ns", "ticks", "events", "jiffies", "units" */
};

/** The unit of clock @p clock_name in a trace. @p clock_hz: what the user said, 0 = nothing. */
struct tdm_clock_unit tdm_clock_unit_of(
	const struct tdm_trace_info *info, const char *clock_name, uint64_t clock_hz);

/** Whether two clock names mean one clock (x86-tsc with TSC2NSEC and tsc2nsec do). NULL = unknown, same as anything. */
bool tdm_clock_names_agree(const struct tdm_trace_info *a, const struct tdm_trace_info *b);

/**
 * The name that stands for a buffer in names of streams: its own, "top" for the top buffer; numbered where an instance
 * is called "top" too.
 */
void tdm_buffer_label(
	const struct tdm_trace_info *info, size_t buffer_index, char *label, size_t room);

/* Where a machine's stamps begin. */
struct tdm_machine_start {
	bool has_records;
	int64_t first_ns; /* the least of its streams' first stamps */
};

/**
 * Looks at the first records of each stream.
 * @retval TDM_ERR_NOMEM  Streams that cannot be read are no error: they are faults of the trace.
 */
enum tdm_status tdm_machine_find_start(
	const struct tdm_machine *machine, struct tdm_machine_start *start, struct tdm_error *err);

/**
 * What the stamps of all machines that are shown together get added, so that none is below @p least_ns: a clock's offset
 * takes it back. Whole seconds, so that the digits below the second stay what they are. A machine that begins further
 * below than a damaged stamp or a wrong offset can explain gets none: it would push the others out of what 63 bits hold.
 *
 * @param bias_ns  What the machines before this one want; 0 for the first.
 */
uint64_t tdm_machine_bias_ns(
	const struct tdm_machine_start *start, int64_t least_ns, uint64_t bias_ns);

#endif
