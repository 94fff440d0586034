/* SPDX-License-Identifier: MIT */
/*
 * What happens at each system call: entry event, the call, exit event, and the calls that need a way
 * of their own. The guard (inside_sp) is set while LTTng records and clear during the call itself, so
 * that the calls of signal handlers are recorded.
 */
#include "hook_priv.h"
#include <asm/unistd.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/single_threaded.h>

__thread struct tdm_thread tdm_thread __attribute__((tls_model("initial-exec")));
struct tdm_process tdm_process;

/* What the exit hook has to do; in the frame's scratch. */
enum exit_work {
	WORK_NONE = TDM_SCRATCH_LOOK,
	WORK_QUICK = TDM_SCRATCH_QUICK, /* record, and nothing else: what the first look found */
	WORK_RECORD,
	WORK_OWN,       /* a call of lttng-ust's own */
	WORK_OWN_QUIET, /* the same from a thread of the program: descriptors stay where they are */
	WORK_WAIT,      /* of a forked child that LTTng does not know yet */
	WORK_FORK       /* record; then lttng-ust must be told of a fork */
};

/*
 * glibc makes a call cancellable by switching to asynchronous cancellation around it, and the hooks
 * run in between: a thread cancelled while LTTng records would leave its locks held. So cancellation
 * is off while the thread is inside. The word is read first: few calls are cancellable.
 */
static bool cancel_off(void)
{
	int old;

	if (__libc_single_threaded) {
		return false;
	}
	if (tdm_process.cancel_word_at) {
		const volatile int *word = (const int *)((const char *)__builtin_thread_pointer() +
							 tdm_process.cancel_word_at);

		if (!(*word & 2)) { /* asynchronous cancellation, in every glibc since 2.3 */
			return false;
		}
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old == PTHREAD_CANCEL_ENABLE;
}

static void cancel_on(bool was_on)
{
	int old;

	if (was_on) {
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	}
}

static void init_thread(struct tdm_thread *thread)
{
	thread->excluded_depth++;
	thread->slot = tdm_counts_take();
	/* Its first event would take LTTng's locks: they are taken now, with none of the program's held. */
	tdm_process.provider->init_thread();
	thread->excluded_depth--;
	thread->state = TDM_THREAD_READY;
}

static inline __attribute__((always_inline)) void record_entry(
	const struct tdm_call_row *row, const struct tdm_frame *frame)
{
	const uint32_t paths = row->fields & TDM_CALL_PATHS;
	struct tdm_call call;

	/* Not copied: a copy of what was just written waits until the writing is done. */
	call.nr = (int32_t)frame->nr;
	call.args = frame->args;
	if (paths) {
		const uint32_t others = paths & (paths - 1);

		call.path[1] = "";
		call.path_at = (uint8_t)__builtin_ctz(paths);
		call.path[0] = tdm_user_string(frame->args[call.path_at]);
		if (others) {
			call.path[1] = tdm_user_string(frame->args[__builtin_ctz(others)]);
		}
	}
	row->entry(&call);
}

static inline __attribute__((always_inline)) void record_exit(
	const struct tdm_call_row *row, const struct tdm_frame *frame)
{
	const uint32_t fds = row->fields >> TDM_CALL_FDS_SHIFT & 15;
	struct tdm_call call;

	call.nr = (int32_t)frame->nr;
	call.args = frame->args;
	call.ret = frame->ret;
	if (fds) {
		call.fds[0] = -1;
		call.fds[1] = -1;
		if (frame->ret == 0) {
			/* The kernel has just written them. */
			memcpy(call.fds, (const void *)(uintptr_t)frame->args[fds - 1],
				sizeof(call.fds));
		}
	}
	row->exit(&call);
}

static bool is_on(const int *state)
{
	return *(volatile const int *)state != 0;
}

/* The flags of a clone, 0 for other calls; clone3 keeps them in memory that may be bad. */
static uint64_t clone_flags(const struct tdm_frame *frame, uint64_t *new_stack)
{
	*new_stack = 0;
	if (frame->nr == __NR_clone) {
		*new_stack = frame->args[1];
		return frame->args[0];
	}
	if (frame->nr == __NR_clone3 && frame->args[1] >= 64 && tdm_user_readable(frame->args[0]) &&
		tdm_user_readable(frame->args[0] + 56)) {
		const uint64_t *args = (const uint64_t *)(uintptr_t)frame->args[0];

		*new_stack = args[5];
		return args[0];
	}
	return frame->nr == __NR_vfork ? CLONE_VFORK | CLONE_VM : 0;
}

/* Calls that make a process or a thread. */
static unsigned int enter_clone(struct tdm_thread *thread, struct tdm_frame *frame)
{
	uint64_t new_stack;
	const uint64_t flags = clone_flags(frame, &new_stack);

	thread->post_nr = (uint32_t)frame->nr;
	if (flags & CLONE_VM) {
		if (flags & CLONE_VFORK) {
			/* The child runs in this thread's storage until it execs: its events get its own id. */
			thread->vfork_child++;
			tdm_process_vtid_forget();
		} else if (!(flags & CLONE_SETTLS)) {
			/* Two threads with one storage, guards and all: neither can be recorded. */
			tdm_say("a thread shares the storage of its maker: both run unrecorded",
				NULL, NULL);
			thread->state = TDM_THREAD_EXCLUDED;
		}
		return TDM_ENTRY_POST;
	}
	if (!thread->in_fork_handlers) {
		thread->excluded_depth++;
		tdm_process.provider->before_fork(&thread->fork_signals);
		thread->excluded_depth--;
	}
	tdm_process.fork_in_flight++;
	if (new_stack) {
		return TDM_ENTRY_POST;
	}
	frame->scratch = WORK_FORK;
	return TDM_ENTRY_CALL;
}

/* A call that does not come back: no exit event, where one would be recorded. */
static void count_no_exit(const struct tdm_frame *frame)
{
	if (is_on(tdm_row(frame->nr)->exit_state)) {
		TDM_COUNT(no_exit);
	}
}

static unsigned int enter_special(struct tdm_thread *thread, struct tdm_frame *frame)
{
	switch (frame->nr) {
	case __NR_fork:
	case __NR_vfork:
	case __NR_clone:
	case __NR_clone3:
		return enter_clone(thread, frame);
	case __NR_execve:
		thread->excluded_depth++;
		tdm_exec_check(frame->args[0]);
		thread->excluded_depth--;
		count_no_exit(frame);
		if (!thread->vfork_child) {
			tdm_process_end("exec");
		}
		break;
	case __NR_execveat:
		count_no_exit(frame);
		if (!thread->vfork_child) {
			tdm_process_end("exec");
		}
		break;
	case __NR_exit_group:
		count_no_exit(frame);
		if (!thread->vfork_child) {
			tdm_process_end("exit");
		}
		break;
	case __NR_exit:
		count_no_exit(frame);
		if (!thread->vfork_child) {
			tdm_counts_release(thread->slot);
			tdm_process_thread_end();
		}
		break;
	case __NR_close:
		if (tdm_fds_is_own(frame->args[0])) {
			frame->ret = -EBADF; /* what the program would get if we were not here */
			return TDM_ENTRY_SKIP;
		}
		break;
	case __NR_close_range:
		if (!thread->vfork_child && tdm_fds_close_range(frame)) {
			return TDM_ENTRY_SKIP;
		}
		break;
	case __NR_prctl:
		if (frame->args[0] == PR_SET_SECCOMP && frame->args[1] == SECCOMP_MODE_STRICT) {
			tdm_process.probes_off = 1;
		}
		break;
	case __NR_seccomp:
		if (frame->args[0] == SECCOMP_SET_MODE_STRICT) {
			tdm_process.probes_off = 1;
		}
		break;
	default:
		break;
	}
	if (tdm_process.complete && tdm_dispatch_guard(frame)) {
		return TDM_ENTRY_SKIP;
	}
	return TDM_ENTRY_CALL;
}

/* A call of lttng-ust, from a thread of its own or from one of the program's. */
static unsigned int enter_own(struct tdm_thread *thread, struct tdm_frame *frame)
{
	frame->scratch = thread->state == TDM_THREAD_EXCLUDED ? WORK_OWN : WORK_OWN_QUIET;
	if (frame->nr == __NR_mmap && (frame->args[3] & MAP_SHARED)) {
		/*
		 * lttng-ust asks for every page of its rings at once: 3 to 4 ms an exec for the default
		 * profile. Pages that a short program never writes need not be there.
		 */
		frame->args[3] &= ~(uint64_t)MAP_POPULATE;
	}
	if ((thread->state == TDM_THREAD_EXCLUDED || thread->is_loading) &&
		tdm_sends_own_call(thread, frame)) {
		return TDM_ENTRY_SKIP;
	}
	return TDM_ENTRY_CALL;
}

/* Counts a call and records its entry where that is wanted. */
static inline __attribute__((always_inline)) void count_entry(
	const struct tdm_call_row *row, const struct tdm_frame *frame)
{
	TDM_COUNT(calls);
	if (is_on(row->entry_state)) {
		TDM_COUNT(entries);
		record_entry(row, frame);
	} else if (!is_on(row->exit_state)) {
		TDM_COUNT(not_chosen);
	}
}

/* A call that is only recorded, of a thread that is recorded: nearly all are. */
static unsigned int enter_quickly(struct tdm_thread *thread, const struct tdm_frame *frame)
{
	const struct tdm_call_row *row = frame->row;
	const bool cancel = cancel_off();

	thread->inside_sp = (uint64_t)(uintptr_t)frame;
	count_entry(row, frame);
	thread->inside_sp = 0;
	cancel_on(cancel);
	return TDM_ENTRY_CALL;
}

static void leave_quickly(struct tdm_thread *thread, const struct tdm_frame *frame)
{
	const struct tdm_call_row *row = frame->row;

	if (is_on(row->exit_state)) {
		const uint64_t outer = thread->inside_sp;
		const bool cancel = cancel_off();

		thread->inside_sp = (uint64_t)(uintptr_t)frame;
		TDM_COUNT(exits);
		record_exit(row, frame);
		thread->inside_sp = outer;
		cancel_on(cancel);
	}
}

unsigned int tdm_hook_entry(struct tdm_frame *frame)
{
	struct tdm_thread *thread = &tdm_thread;

	if (__builtin_expect(frame->scratch == WORK_QUICK, 1)) {
		return enter_quickly(thread, frame);
	}
	if (thread->state == TDM_THREAD_EXCLUDED || thread->excluded_depth) {
		return enter_own(thread, frame);
	}
	if (thread->state == TDM_THREAD_NEW && atomic_load(&tdm_process.excluded_starting)) {
		return TDM_ENTRY_CALL; /* perhaps one of lttng-ust's: it will say so */
	}
	if (!tdm_process.provider) {
		frame->scratch = WORK_WAIT;
		return TDM_ENTRY_CALL;
	}
	if (tdm_process.fork_in_flight && thread->state != TDM_THREAD_FORKED &&
		tdm_raw(__NR_getpid, 0, 0, 0, 0, 0, 0) != tdm_process.pid) {
		thread->state = TDM_THREAD_FORKED;
		if (!thread->in_fork_handlers) {
			tdm_process_fork_child();
		}
	}
	if (thread->state == TDM_THREAD_FORKED) {
		frame->scratch = WORK_WAIT;
		return TDM_ENTRY_CALL;
	}
	if (thread->state == TDM_THREAD_NEW) {
		init_thread(thread);
	}

	const struct tdm_call_row *row = tdm_row(frame->nr);
	const uint64_t outer = thread->inside_sp;
	const bool cancel = cancel_off();
	unsigned int plan = TDM_ENTRY_CALL;

	frame->scratch = WORK_RECORD;
	thread->inside_sp = (uint64_t)(uintptr_t)frame;
	count_entry(row, frame);
	if (tdm_is_special(frame->nr)) {
		plan = enter_special(thread, frame);
	}
	thread->inside_sp = outer;
	cancel_on(cancel);
	if (plan == TDM_ENTRY_POST && tdm_process.complete) {
		tdm_dispatch_pause();
	}
	return plan;
}

static void leave_record(struct tdm_thread *thread, struct tdm_frame *frame)
{
	const struct tdm_call_row *row = tdm_row(frame->nr);
	const uint64_t outer = thread->inside_sp;
	const bool cancel = cancel_off();

	thread->inside_sp = (uint64_t)(uintptr_t)frame;
	if (tdm_process.complete) {
		tdm_dispatch_give_back(frame);
	}
	if (is_on(row->exit_state)) {
		TDM_COUNT(exits);
		record_exit(row, frame);
	}
	if (tdm_is_special(frame->nr)) {
		switch (frame->nr) {
		case __NR_execve:
		case __NR_execveat:
			if (is_on(row->exit_state)) {
				__asm__ volatile("decq %0" : "+m"(thread->slot->counts.no_exit));
			}
			break;
		case __NR_seccomp:
			if (frame->args[0] == SECCOMP_SET_MODE_FILTER && frame->ret >= 0) {
				tdm_process.is_sandboxed = 1;
			}
			break;
		case __NR_prctl:
			if (frame->args[0] == PR_SET_SECCOMP && frame->ret == 0) {
				tdm_process.is_sandboxed = 1;
			}
			if (frame->args[0] == PR_SET_NAME) {
				tdm_process.provider->identity_changed((int32_t)frame->nr);
			}
			break;
		case __NR_setuid:
		case __NR_setgid:
		case __NR_setreuid:
		case __NR_setregid:
		case __NR_setresuid:
		case __NR_setresgid:
		case __NR_unshare:
		case __NR_setns:
			tdm_process.provider->identity_changed((int32_t)frame->nr);
			break;
		default:
			break;
		}
	}
	thread->inside_sp = outer;
	cancel_on(cancel);
}

void tdm_hook_exit(struct tdm_frame *frame)
{
	struct tdm_thread *thread = &tdm_thread;

	if (__builtin_expect(frame->scratch == WORK_QUICK, 1)) {
		leave_quickly(thread, frame);
		return;
	}
	switch (frame->scratch) {
	case WORK_RECORD:
		leave_record(thread, frame);
		break;
	case WORK_OWN:
		tdm_process_own_identity(frame);
		tdm_fds_own_call(frame, true);
		break;
	case WORK_OWN_QUIET:
		tdm_fds_own_call(frame, false);
		break;
	case WORK_WAIT:
		tdm_waiting_add(frame);
		break;
	case WORK_FORK:
		if (frame->ret == 0) {
			thread->state = TDM_THREAD_FORKED;
			if (!thread->in_fork_handlers) {
				tdm_process_fork_child();
			}
			break;
		}
		leave_record(thread, frame);
		if (!thread->in_fork_handlers) {
			tdm_process_fork_parent();
		}
		tdm_process.fork_in_flight--;
		break;
	default:
		break;
	}
}

/* The maker of a process or thread comes back; the made one never comes here. */
void tdm_hook_post(struct tdm_frame *frame)
{
	struct tdm_thread *thread = &tdm_thread;

	frame->nr = frame->site->nr != TDM_SITE_ANY ? frame->site->nr : thread->post_nr;
	if (tdm_process.complete) {
		tdm_dispatch_resume();
	}
	if (thread->vfork_child) {
		thread->vfork_child--;
		tdm_process_vtid_forget();
	}
	if (thread->state == TDM_THREAD_EXCLUDED) {
		return;
	}
	leave_record(thread, frame);
	if (tdm_process.fork_in_flight) {
		uint64_t new_stack;

		if (!(clone_flags(frame, &new_stack) & CLONE_VM)) {
			if (!thread->in_fork_handlers) {
				tdm_process_fork_parent();
			}
			tdm_process.fork_in_flight--;
		}
	}
}
