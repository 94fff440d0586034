/* SPDX-License-Identifier: MIT */
#include "ctf_views.h"
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* What the views need, each by any of a few names. */
enum need {
	NEED_SWITCH,
	NEED_WAKE,
	NEED_CALL_ENTRY,
	NEED_CALL_EXIT,
	NEED_FUTEX_ENTRY,
	NEED_FUTEX_EXIT,
	NEED_IRQ,
	NEED_SOFTIRQ,
	NEED_VECTORS,
	NEED_HRTIMER,
	NEED_BLOCK_ISSUE,
	NEED_BLOCK_COMPLETE,
	NEED_PAGE_ALLOC,
	NEED_PAGE_FREE,
	NEED_KVM_ENTRY,
	NEED_KVM_EXIT,
	NEED_SYNC_HOST,
	NEED_SYNC_GUEST,
	NEED_COUNT
};

static const struct {
	const char *shown;
	const char *names[3]; /* patterns */
} needs[NEED_COUNT] = {
	[NEED_SWITCH] = { "sched_switch", { "sched_switch" } },
	[NEED_WAKE] = { "sched_waking or sched_wakeup", { "sched_waking", "sched_wakeup*" } },
	[NEED_CALL_ENTRY] = { "syscall_entry_*", { "syscall_entry_*", "compat_syscall_entry_*" } },
	[NEED_CALL_EXIT] = { "syscall_exit_*", { "syscall_exit_*", "compat_syscall_exit_*" } },
	[NEED_FUTEX_ENTRY] = { "syscall_entry_futex", { "*syscall_entry_futex" } },
	[NEED_FUTEX_EXIT] = { "syscall_exit_futex", { "*syscall_exit_futex" } },
	[NEED_IRQ] = { "irq_handler_entry", { "irq_handler_entry" } },
	[NEED_SOFTIRQ] = { "irq_softirq_entry", { "irq_softirq_entry" } },
	[NEED_VECTORS] = { "x86_irq_vectors_*_entry", { "x86_irq_vectors_*_entry" } },
	[NEED_HRTIMER] = { "timer_hrtimer_expire_entry", { "timer_hrtimer_expire_entry" } },
	[NEED_BLOCK_ISSUE] = { "block_rq_issue", { "block_rq_issue" } },
	[NEED_BLOCK_COMPLETE] = { "block_rq_complete", { "block_rq_complete" } },
	[NEED_PAGE_ALLOC] = { "kmem_mm_page_alloc", { "kmem_mm_page_alloc" } },
	[NEED_PAGE_FREE] = { "kmem_mm_page_free", { "kmem_mm_page_free" } },
	[NEED_KVM_ENTRY] = { "kvm_x86_entry", { "kvm_x86_entry" } },
	[NEED_KVM_EXIT] = { "kvm_x86_exit", { "kvm_x86_exit" } },
	[NEED_SYNC_HOST] = { "vmsync_gh_host", { "vmsync_gh_host" } },
	[NEED_SYNC_GUEST] = { "vmsync_gh_guest", { "vmsync_gh_guest" } },
};

#define BIT(need) (UINT64_C(1) << NEED_##need)

static const struct {
	const char *name;
	uint64_t needed;
	bool of_host; /* asked of traces with KVM's events alone */
} views[] = {
	{ "Control Flow, Resources, CPU usage", BIT(SWITCH) | BIT(WAKE), false },
	{ "system call latency", BIT(CALL_ENTRY) | BIT(CALL_EXIT), false },
	{ "critical path",
		BIT(SWITCH) | BIT(WAKE) | BIT(IRQ) | BIT(SOFTIRQ) | BIT(VECTORS) | BIT(HRTIMER),
		false },
	{ "interrupts", BIT(IRQ) | BIT(SOFTIRQ), false },
	{ "futex contention", BIT(FUTEX_ENTRY) | BIT(FUTEX_EXIT), false },
	{ "disk I/O", BIT(BLOCK_ISSUE) | BIT(BLOCK_COMPLETE), false },
	{ "kernel memory", BIT(PAGE_ALLOC) | BIT(PAGE_FREE), false },
	{ "KVM exits", BIT(KVM_ENTRY) | BIT(KVM_EXIT), true },
};

uint64_t tdm_ctf_views_event(const char *name)
{
	uint64_t bits = 0;

	for (size_t need = 0; need < NEED_COUNT; need++) {
		for (size_t i = 0; i < 3 && needs[need].names[i]; i++) {
			if (fnmatch(needs[need].names[i], name, 0) == 0) {
				bits |= UINT64_C(1) << need;
			}
		}
	}
	return bits;
}

static void add_lacks(char lacks[TDM_CTF_LACKS_BYTES], uint64_t needed,
	const struct tdm_ctf_checked *checked, const char *where)
{
	const uint64_t missing = needed & ~checked->seen;

	for (size_t need = 0; need < NEED_COUNT; need++) {
		const size_t used = strlen(lacks);

		if (missing >> need & 1) {
			snprintf(lacks + used, TDM_CTF_LACKS_BYTES - used, "%s%s%s",
				used ? ", " : "", needs[need].shown, where);
		}
	}
}

/* The trace with the host's end of a guest's sync event, or else with KVM's events; NULL: none. */
static const struct tdm_ctf_checked *host_of(
	const struct tdm_ctf_checked *checked, size_t count, size_t guest)
{
	const struct tdm_ctf_checked *with_kvm = NULL;

	for (size_t i = 0; i < count; i++) {
		if (i == guest) {
			continue;
		}
		for (size_t j = 0; j < checked[i].sync_count; j++) {
			for (size_t k = 0; k < checked[guest].sync_count; k++) {
				const struct tdm_ctf_sync *const one = &checked[i].syncs[j];
				const struct tdm_ctf_sync *const other = &checked[guest].syncs[k];

				if (!one->is_guest && other->is_guest &&
					one->vm_uid == other->vm_uid) {
					return &checked[i];
				}
			}
		}
		with_kvm = checked[i].has_kvm ? &checked[i] : with_kvm;
	}
	return with_kvm;
}

void tdm_ctf_views(const struct tdm_ctf_checked *checked, size_t count, size_t index,
	void (*tell)(void *user, const char *view, const char *lacks), void *user)
{
	const struct tdm_ctf_checked *const one = &checked[index];
	const bool is_guest = one->seen & BIT(SYNC_GUEST);
	char lacks[TDM_CTF_LACKS_BYTES];

	if (!one->is_kernel || !one->has_lttng_names || !one->event_count) {
		return;
	}

	const struct tdm_ctf_checked *const host = host_of(checked, count, index);

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		if (views[i].of_host && !one->has_kvm && (is_guest || host)) {
			continue;
		}
		lacks[0] = '\0';
		add_lacks(lacks, views[i].needed, one, "");
		tell(user, views[i].name, lacks);
	}
	/* A host's own trace alone says nothing of guests' views; one that is a guest, or beside a host, is looked at. */
	if (is_guest || (host && !one->has_kvm)) {
		static const struct tdm_ctf_checked none;

		lacks[0] = '\0';
		add_lacks(lacks, BIT(SWITCH) | BIT(SYNC_GUEST), one, "");
		add_lacks(lacks, BIT(KVM_ENTRY) | BIT(KVM_EXIT) | BIT(SWITCH) | BIT(SYNC_HOST),
			host ? host : &none, " (host)");
		tell(user, "Virtual CPU, fused virtual machine view", lacks);
	}
}
