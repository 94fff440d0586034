/* SPDX-License-Identifier: MIT */
/*
 * names_lttng.c - the one table: what events and fields of ftrace are called by LTTng, and who needs it.
 *
 * Names are those of LTTng's kernel tracer 2.13, which Trace Compass knows from its "LTTng 2.9" layout on. What is not
 * here has the same name on both sides. docs/trace-compass.md tells it to users.
 */
#include "names_priv.h"
#include <stdio.h>
#include <string.h>

struct event_rule {
	const char *system; /* NULL = any */
	const char *name; /* a trailing '*' stands for the rest, which the '*' of lttng takes up */
	const char *lttng;
	const char *
		reader; /* the analysis of Trace Compass that looks for it; "" = none, the name alone */
};

static const struct event_rule event_rules[] = {
	{ "irq", "softirq_*", "irq_softirq_*", "kernel state, IRQ analysis, critical path" },
	{ "timer", "hrtimer_*", "timer_hrtimer_*", "critical path" },
	{ "timer", "itimer_*", "timer_itimer_*", "" },
	{ "irq_vectors", "*", "x86_irq_vectors_*", "kernel state, critical path (IPI)" },
	{ "exceptions", "page_fault_*", "x86_exceptions_page_fault_*", "" },
	{ "power", "cpu_frequency", "power_cpu_frequency", "kernel state (CPU frequency)" },
	{ "power", "cpu_idle", "power_cpu_idle", "" },
	{ "power", "machine_suspend", "power_machine_suspend", "" },
	{ "power", "wakeup_source_*", "power_wakeup_source_*", "" },
	{ "power", "clock_*", "power_clock_*", "" },
	{ "kmem", "mm_page_*", "kmem_mm_page_*", "kernel memory" },
	{ "kmem", "kmalloc*", "kmem_kmalloc*", "" },
	{ "kmem", "kfree", "kmem_kfree", "" },
	{ "net", "netif_*", "net_if_*", "network matching, critical path" },
	{ "net", "napi_gro_*", "net_napi_gro_*", "" },
	{ "skb", "consume_skb", "skb_consume", "" },
	{ "skb", "kfree_skb", "skb_kfree", "" },
	{ "printk", "console", "printk_console", "" },
	{ "rcu", "rcu_utilization", "rcu_utilization", "" },
	{ "ftrace", "print", "tracing_mark_write", "events table, call stacks from markers" },
};

/* Events of kvm that LTTng counts to x86; the rest of the system is common to all machines and keeps its name. */
static const char *const kvm_x86_events[] = {
	"kvm_entry",
	"kvm_exit", /* virtual machine views, KVM exit statistics */
	"kvm_apic",
	"kvm_apic_accept_irq",
	"kvm_apic_ipi",
	"kvm_cpuid",
	"kvm_cr",
	"kvm_emulate_insn",
	"kvm_eoi",
	"kvm_hv_hypercall",
	"kvm_hypercall",
	"kvm_inj_exception",
	"kvm_inj_virq",
	"kvm_invlpga",
	"kvm_msr",
	"kvm_nested_intercepts",
	"kvm_nested_intr_vmexit",
	"kvm_nested_vmexit",
	"kvm_nested_vmexit_inject",
	"kvm_nested_vmrun",
	"kvm_page_fault",
	"kvm_pic_set_irq",
	"kvm_pio",
	"kvm_pv_eoi",
	"kvm_skinit",
	"kvm_track_tsc",
	"kvm_update_master_clock",
	"kvm_write_tsc_offset",
};

/* Fields of the scheduler's events: every thread id is a "tid" to LTTng, whose own "pid" is a process id. */
static const struct {
	const char *name, *lttng;
} sched_thread_fields[] = {
	{ "pid", "tid" },
	{ "prev_pid", "prev_tid" },
	{ "next_pid", "next_tid" },
	{ "parent_pid", "parent_tid" },
	{ "child_pid", "child_tid" },
	{ "old_pid", "old_tid" },
};

static const char *const sched_prio_fields[] = { "prio", "prev_prio", "next_prio", "oldprio",
	"newprio" };

static bool rule_fits(const struct event_rule *rule, const struct tdm_event_class *event_class)
{
	const size_t length = strlen(rule->name);

	if (rule->system && strcmp(rule->system, event_class->system) != 0) {
		return false;
	}
	if (rule->name[length - 1] == '*') {
		return strncmp(rule->name, event_class->name, length - 1) == 0;
	}
	return strcmp(rule->name, event_class->name) == 0;
}

static const char *apply_rule(const struct event_rule *rule,
	const struct tdm_event_class *event_class, char *room, size_t room_bytes)
{
	const size_t kept = strlen(rule->lttng) - 1;

	if (rule->lttng[kept] != '*') {
		return rule->lttng;
	}
	snprintf(room, room_bytes, "%.*s%s", (int)kept, rule->lttng,
		event_class->name + strlen(rule->name) - 1);
	return room;
}

static bool is_kvm_x86(const char *name)
{
	for (size_t i = 0; i < sizeof(kvm_x86_events) / sizeof(kvm_x86_events[0]); i++) {
		if (strcmp(kvm_x86_events[i], name) == 0) {
			return true;
		}
	}
	return false;
}

const char *tdm_lttng_event_name(const struct tdm_event_class *event_class,
	enum tdm_machine machine, char *room, size_t room_bytes)
{
	const char *const name = event_class->name;

	if (strcmp(event_class->system, "kvm") == 0) {
		if (machine == TDM_MACHINE_ARM64 || !is_kvm_x86(name)) {
			return name;
		}
		snprintf(room, room_bytes, "kvm_x86_%s", name + strlen("kvm_"));
		return room;
	}
	if (strcmp(event_class->system, "syscalls") == 0) {
		if (strncmp(name, "sys_enter_", 10) == 0) {
			snprintf(room, room_bytes, "syscall_entry_%s", name + 10);
			return room;
		}
		if (strncmp(name, "sys_exit_", 9) == 0) {
			snprintf(room, room_bytes, "syscall_exit_%s", name + 9);
			return room;
		}
		return name;
	}
	for (size_t i = 0; i < sizeof(event_rules) / sizeof(event_rules[0]); i++) {
		if (rule_fits(&event_rules[i], event_class)) {
			return apply_rule(&event_rules[i], event_class, room, room_bytes);
		}
	}
	return name;
}

static bool is_integer(const struct tdm_field *field)
{
	return !field->is_array && field->place == TDM_PLACE_FIXED &&
	       (field->kind == TDM_FIELD_SIGNED || field->kind == TDM_FIELD_UNSIGNED);
}

struct tdm_lttng_field tdm_lttng_field(
	const struct tdm_event_class *event_class, const struct tdm_field *field)
{
	struct tdm_lttng_field shown = { field->unique_name, TDM_CONVERT_NONE };

	if (strcmp(event_class->system, "block") == 0) {
		if (strcmp(field->name, "rwbs") == 0 && field->kind == TDM_FIELD_TEXT) {
			shown.conversion = TDM_CONVERT_RWBS;
		}
		return shown;
	}
	if (strcmp(event_class->system, "sched") != 0 || !is_integer(field)) {
		return shown;
	}
	for (size_t i = 0; i < sizeof(sched_thread_fields) / sizeof(sched_thread_fields[0]); i++) {
		if (strcmp(sched_thread_fields[i].name, field->unique_name) == 0) {
			shown.name = sched_thread_fields[i].lttng;
		}
	}
	for (size_t i = 0; i < sizeof(sched_prio_fields) / sizeof(sched_prio_fields[0]); i++) {
		if (strcmp(sched_prio_fields[i], field->name) == 0) {
			shown.conversion = TDM_CONVERT_PRIO;
		}
	}
	return shown;
}

uint32_t tdm_names_rwbs(const uint8_t *text, size_t text_bytes)
{
	enum {
		WRITE = 1 << 0,
		DISCARD = 1 << 1,
		READ = 1 << 2,
		RAHEAD = 1 << 3,
		SYNC = 1 << 5,
		META = 1 << 6,
		SECURE = 1 << 7,
		FLUSH = 1 << 8,
		FUA = 1 << 9,
		PREFLUSH = 1 << 10
	};

	uint32_t flags = 0;
	size_t at = 0;

	while (at < text_bytes && text[at]) {
		at++;
	}
	text_bytes = at;
	at = 0;
	/* A leading F is the preflush flag where an operation follows, else the flush operation itself. */
	if (text_bytes > 1 && text[0] == 'F' && strchr("WDFRNZ", text[1])) {
		flags |= PREFLUSH;
		at++;
	}
	if (at < text_bytes) {
		switch (text[at++]) {
		case 'W':
			flags |= WRITE;
			break;
		case 'D':
			flags |= DISCARD;
			if (at < text_bytes && text[at] == 'E') {
				flags |= SECURE;
				at++;
			}
			break;
		case 'F':
			flags |= FLUSH;
			break;
		case 'R':
			flags |= READ;
			break;
		default: /* N: neither; Z and what comes: zone operations, which LTTng has no flags for */
			break;
		}
	}
	for (; at < text_bytes; at++) {
		flags |= text[at] == 'F'   ? FUA
			 : text[at] == 'A' ? RAHEAD
			 : text[at] == 'S' ? SYNC
			 : text[at] == 'M' ? META
					   : 0;
	}
	return flags;
}
