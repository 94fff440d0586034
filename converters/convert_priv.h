/* SPDX-License-Identifier: MIT */
/*
 * convert_priv.h - what the parts of a conversion share: plans of a machine, jobs of its CPUs.
 */
#ifndef TANDEM_CONVERT_PRIV_H
#define TANDEM_CONVERT_PRIV_H

#include "convert_trace.h"
#include "copy_plan.h"
#include "ctf_dir.h"
#include "ctf_metadata.h"
#include "ctf_packet.h"
#include "sample_context.h"
#include "task_census.h"
#include <stdatomic.h>
#include <tandem/task_names.h>
#include <tandem/trace.h>

enum {
	TDM_IDS_MAX = 65536,
};

/* One shown class of a machine; its index is the event id in the output. */
struct tdm_class_plan {
	struct tdm_copy_plan copy;
	uint32_t id;
	bool is_wanted; /* selected by name */
};

/* A piece of the event context that is copied from the record; from UINT32_MAX: zeros. */
struct tdm_common_piece {
	uint32_t from_bytes, size_bytes;
};

/* What records with one id become. */
struct tdm_id_plan {
	const struct tdm_event_class *event_class; /* NULL: no such id */
	struct tdm_class_plan *fallback;           /* NULL: cannot be converted */
	struct tdm_class_plan *
		*by; /* by_count entries, by the number in the record; NULL = fallback */
	size_t by_count;
	uint32_t number_offset, number_bytes;
	uint32_t tid_offset; /* UINT32_MAX: none */
	uint32_t piece_count;
	struct tdm_common_piece pieces[TDM_COMMON_FIELDS_MAX];
	unsigned int lesson_count;
	struct tdm_task_lesson lessons[2];
	enum tdm_task_first firsts[2]; /* what the lessons say of their threads */
};

/* Events that no input has, their ids behind those of the shown classes. */
enum tdm_made_up {
	TDM_MADE_STATEDUMP,
	TDM_MADE_VMSYNC_GH_GUEST,
	TDM_MADE_VMSYNC_GH_HOST,
	TDM_MADE_COUNT
};

/* A vCPU thread of a guest, on its host. */
struct tdm_vcpu_thread {
	uint32_t guest; /* index of the machine */
	uint32_t vcpu;
	int32_t tid,
		pid; /* pid: of the monitor's process, or the first thread of the guest where that is unknown */
};

/* Where the host's end of a sync pair goes: right behind one record. */
struct tdm_sync_point {
	bool is_set;
	size_t stream_index; /* of the host's trace */
	uint64_t ordinal;    /* of the record in its stream */
	uint32_t cpu;
	uint64_t time;  /* of that record, as the output has it */
	uint32_t count; /* "cnt" of the pair */
	uint64_t vm_uid;
	int32_t tid;
};

/* One machine while it is converted. */
struct tdm_convert_machine {
	size_t index;
	const struct tdm_machine *machine;
	struct tdm_trace *trace;
	const struct tdm_trace_info *info;
	const struct tdm_schema *schema;
	const struct tdm_convert_options *options;
	const struct tdm_log *log;
	struct tdm_names *names;
	struct tdm_class_plan *plans;
	size_t plan_count;
	struct tdm_id_plan *by_id;
	size_t id_count;
	_Atomic uint64_t *unknown_ids; /* TDM_IDS_MAX counts; NULL until one is met */
	_Atomic uint64_t *short_records, *long_records, *bad_fields; /* by plan */
	_Atomic uint64_t *used;                                      /* by plan */
	_Atomic uint64_t *undecodable;                               /* by id */
	uint32_t made_up_used[TDM_MADE_COUNT];
	struct tdm_ctf_member context[TDM_COMMON_FIELDS_MAX + 2 + TDM_SAMPLE_MEMBERS];
	size_t context_count;
	struct tdm_common_field commons[TDM_COMMON_FIELDS_MAX]; /* behind tid and procname */
	size_t common_count;
	bool has_samples; /* records come with what a sample of perf tells */
	struct tdm_ctf_layout layout;
	struct tdm_ctf_dir dir;
	uint64_t
		bias_ns; /* added to every stamp, so that none is negative; the clock's offset takes it back */
	struct tdm_machine_start start;
	uint64_t first_ns; /* first stamp, bias added; UINT64_MAX: no record */
	uint64_t
		limit_ns; /* the last stamp, bias added, that readers' 63 bits hold with the clock's offset */
	uint64_t begin_ns, end_ns;     /* selected, bias added */
	int64_t epoch_offset_ns;       /* of the clock, without bias */
	struct tdm_vcpu_thread *vcpus; /* by tid */
	size_t vcpu_count, vcpu_room;
	struct tdm_sync_point *syncs; /* as a host */
	size_t sync_count;
	struct tdm_sync_point
		guest_sync; /* as a guest: the other end, time = of the guest's event */
	struct tdm_task_census census;
	struct tdm_convert_report *report;
};

/* One CPU of one machine: one stream file. */
struct tdm_cpu_job {
	struct tdm_convert_machine *conversion;
	uint32_t cpu;
	bool *used_here;     /* by plan; owned */
	uint64_t head_bytes; /* to reserve */
	uint64_t data_bytes;
	struct tdm_ctf_stream stream;
	struct tdm_task_census census;
	bool has_first; /* of the events written */
	int32_t first_tid;
	/* Results. */
	uint64_t records, events, synthetic, left_out, lost, lost_unknown, unreadable_pages,
		unreadable_bytes, unconverted, bad_fields, clamped, out_of_range;
	uint64_t bound_ns; /* at worst, of the corrections */
	enum tdm_status status;
	struct tdm_error error;
	_Atomic uint64_t *event_counter; /* for the progress; shared */
	_Atomic int *failed;             /* shared: somebody failed, stop */
};

/* machine_plan.c */
enum tdm_status tdm_convert_machine_plan(
	struct tdm_convert_machine *conversion, struct tdm_error *err);
void tdm_convert_machine_set_bias(struct tdm_convert_machine *conversions, size_t count);
/** Notes for the selection which events of the output fit. */
void tdm_convert_machine_note_used(const struct tdm_convert_machine *conversion);
enum tdm_status tdm_convert_machine_write_metadata(
	struct tdm_convert_machine *conversion, struct tdm_error *err);
void tdm_convert_machine_say_problems(struct tdm_convert_machine *conversion);
void tdm_convert_machine_release(struct tdm_convert_machine *conversion);

static inline uint32_t tdm_made_up_id(
	const struct tdm_convert_machine *conversion, enum tdm_made_up which)
{
	return (uint32_t)conversion->plan_count + (uint32_t)which;
}

/* convert_trace.c */
enum tdm_status tdm_plan_machines(struct tdm_machines *machines,
	const struct tdm_convert_options *options, const struct tdm_log *log,
	struct tdm_convert_report *reports, struct tdm_convert_machine *conversions,
	struct tdm_error *err);

/* cpu_stream.c */
void tdm_cpu_job_run(struct tdm_cpu_job *job);
void tdm_cpu_job_release(struct tdm_cpu_job *job);

/**
 * Writes the context of an event that has no record: zeros for the common fields.
 * @param out  With room for 4 + 65 + 64 bytes.
 */
uint8_t *tdm_put_made_up_context(const struct tdm_convert_machine *conversion, uint8_t *out,
	int32_t tid, const char *comm, size_t comm_bytes);

/* vm_sync.c */
enum tdm_status tdm_find_vcpus(
	struct tdm_convert_machine *conversions, size_t count, struct tdm_error *err);
/** The vCPU that a thread of a host runs, or NULL. */
const struct tdm_vcpu_thread *tdm_find_vcpu_thread(
	const struct tdm_convert_machine *host, int32_t tid);
enum tdm_status tdm_plan_sync_pairs(
	struct tdm_convert_machine *conversions, size_t count, struct tdm_error *err);
uint8_t *tdm_put_sync_fields(const struct tdm_convert_machine *conversion, uint8_t *out,
	const struct tdm_sync_point *sync);
extern const struct tdm_ctf_member tdm_sync_members[];
extern const size_t tdm_sync_member_count;

/* cpu_scan.c: the records of one CPU in order of time, before they are converted. */
struct tdm_cpu_scan; /* opaque */

struct tdm_scanned {
	const struct tdm_slot *slot; /* valid until the next call */
	size_t stream_index;
	uint64_t ordinal; /* in its stream */
	uint64_t time;    /* bias added */
};

struct tdm_cpu_scan *tdm_cpu_scan_create(struct tdm_convert_machine *conversion, uint32_t cpu);
bool tdm_cpu_scan_next(struct tdm_cpu_scan *scan, struct tdm_scanned *scanned);
/** Adds what the readers counted to a report. */
void tdm_cpu_scan_add_counts(const struct tdm_cpu_scan *scan, struct tdm_convert_report *report);
void tdm_cpu_scan_destroy(struct tdm_cpu_scan *scan);

/** Saved command lines of an input: @p use is called for each. */
void tdm_each_saved_comm(struct tdm_trace *trace,
	void (*use)(void *user, int32_t tid, const char *comm, size_t comm_bytes), void *user);

/* state_dump.c */
uint64_t tdm_state_dump_estimate(const struct tdm_convert_machine *conversion);
enum tdm_status tdm_put_state_dump(
	struct tdm_convert_machine *conversion, struct tdm_cpu_job *job, struct tdm_error *err);
extern const struct tdm_ctf_member tdm_state_dump_members[];
extern const size_t tdm_state_dump_member_count;

#endif
