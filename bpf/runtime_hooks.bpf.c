// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hooks in .NET runtimes: uprobes on functions that user space located in the runtime's image (clr/hooks). Each hit
 * sends one short record; what it means is user space's business. Every hit ends in exactly one of wire_counters' hook
 * counts.
 *
 * A hit is made in the context of the calling thread, and a sample may interrupt it: nothing is shared with the sampler
 * but the ring and counters of which each has its own. The record is put together on the stack.
 */
#include "tracked.bpf.h"

#if defined(__TARGET_ARCH_x86)
#define ARGUMENT_1(r) ((r)->di)
#define ARGUMENT_2(r) ((r)->si)
#define ARGUMENT_3(r) ((r)->dx)
#define ARGUMENT_4(r) ((r)->cx)
#define ARGUMENT_5(r) ((r)->r8)
#else
#define ARGUMENT_1(r) ((r)->regs[0])
#define ARGUMENT_2(r) ((r)->regs[1])
#define ARGUMENT_3(r) ((r)->regs[2])
#define ARGUMENT_4(r) ((r)->regs[3])
#define ARGUMENT_5(r) ((r)->regs[4])
#endif

static __always_inline int report(__u32 hook, __u64 first, __u64 second, __u64 third, __u64 fourth)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct wire_counters *counts = this_cpu_counters();
	struct wire_runtime_event event;
	bool in_namespace = pid_namespace_inode != 0;

	if (!counts) /* can't be: the map has the one entry */
		return 0;
	counts->hook_hits++;
	__builtin_memset(&event, 0, sizeof(event));
	event.header.time_ns = bpf_ktime_get_ns();
	event.header.size = sizeof(event);
	event.header.kind = WIRE_RUNTIME_EVENT;
	event.header.cpu = bpf_get_smp_processor_id();
	if (in_namespace) {
		event.tgid = number_in_namespace(BPF_CORE_READ(leader, thread_pid));
		event.tid = number_in_namespace(BPF_CORE_READ(task, thread_pid));
	} else {
		__u64 id = bpf_get_current_pid_tgid();

		event.tgid = id >> 32;
		event.tid = (__u32)id;
	}
	/* a runtime's image is shared by all processes that map it, ours or not */
	if (!event.tgid || (filter_processes && !is_tracked(leader, event.tgid, in_namespace))) {
		counts->hook_filtered++;
		return 0;
	}
	event.process_start_ns = BPF_CORE_READ(leader, start_boottime);
	event.hook = hook;
	event.values[0] = first;
	event.values[1] = second;
	event.values[2] = third;
	event.values[3] = fourth;
	bpf_get_current_comm(event.comm, sizeof(event.comm));
	if (bpf_ringbuf_output(&records, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		counts->hook_lost++;
	else
		counts->hook_sent++;
	return 0;
}

SEC("?uprobe")
int hook_suspend(struct user_registers *regs)
{
	return report(WIRE_HOOK_SUSPEND, (__u32)ARGUMENT_1(regs), 0, 0, 0);
}

SEC("?uretprobe")
int hook_suspended(struct user_registers *regs)
{
	return report(WIRE_HOOK_SUSPENDED, 0, 0, 0, 0);
}

SEC("?uprobe")
int hook_restart(struct user_registers *regs)
{
	return report(WIRE_HOOK_RESTART, (__u32)ARGUMENT_1(regs), (__u32)ARGUMENT_2(regs), 0, 0);
}

SEC("?uretprobe")
int hook_restarted(struct user_registers *regs)
{
	return report(WIRE_HOOK_RESTARTED, 0, 0, 0, 0);
}

SEC("?uprobe")
int hook_gc_start(struct user_registers *regs)
{
	return report(WIRE_HOOK_GC_START, (__u32)ARGUMENT_1(regs), (__u8)ARGUMENT_2(regs), 0, 0);
}

SEC("?uprobe")
int hook_gc_end(struct user_registers *regs)
{
	return report(WIRE_HOOK_GC_END, ARGUMENT_1(regs), (__u32)ARGUMENT_2(regs), (__u32)ARGUMENT_3(regs),
		      (__u8)ARGUMENT_4(regs));
}

/* The same as members of a class, `this` first: what .NET 8 gives to a GC in a library of its own. */
SEC("?uprobe")
int hook_gc_start_member(struct user_registers *regs)
{
	return report(WIRE_HOOK_GC_START, (__u32)ARGUMENT_2(regs), (__u8)ARGUMENT_3(regs), 0, 0);
}

SEC("?uprobe")
int hook_gc_end_member(struct user_registers *regs)
{
	return report(WIRE_HOOK_GC_END, ARGUMENT_2(regs), (__u32)ARGUMENT_3(regs), (__u32)ARGUMENT_4(regs),
		      (__u8)ARGUMENT_5(regs));
}
