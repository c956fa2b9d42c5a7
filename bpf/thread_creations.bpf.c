// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads that make threads: the creator, and the stack with which it came into the kernel.
 *
 * The tracepoint is in clone itself, so that threads of native code and of the runtime are told too. The kernel runs it
 * where it may be preempted, as it runs hooks: a stack goes into the slot for hooks.
 */
#include "hook_stack.bpf.h"
#include "task_stack.bpf.h"

/* The slot with the registers that the thread entered the kernel with; 0: there is no slot, or no registers. */
static __always_inline struct scratch *begin_stack(struct task_struct *task, struct hook_caller *caller, __u64 now)
{
	struct variant variant = {.in_namespace = true, .task_pt_regs = false};
	struct scratch *scratch = has_room_for_stack() ? take_hook_slot(WIRE_THREAD_STACK, now, caller) : 0;

	if (!scratch || !take_saved_registers(scratch, task, variant))
		return scratch;
	scratch->owner = 0;
	return 0;
}

/* sched_process_fork(parent, child) */
SEC("?raw_tp/sched_process_fork")
int thread_created(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (void *)bpf_get_current_task(), *child = (void *)context->args[1];
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct wire_counters *counts = this_cpu_counters();
	bool in_namespace = pid_namespace_inode != 0;
	struct hook_caller caller = {};
	struct wire_thread record;
	struct scratch *scratch;

	if (!counts || BPF_CORE_READ(child, group_leader) != leader) /* a process */
		return 0;
	caller.tgid = tgid_of(leader, in_namespace);
	if (!caller.tgid || (filter_processes && !is_tracked(leader, caller.tgid, in_namespace)))
		return 0;
	caller.tid = in_namespace ? number_in_namespace(BPF_CORE_READ(task, thread_pid)) : BPF_CORE_READ(task, pid);
	caller.process_start_ns = BPF_CORE_READ(leader, start_boottime);

	__builtin_memset(&record, 0, sizeof(record));
	record.header.size = sizeof(record);
	record.header.kind = WIRE_THREAD;
	record.header.cpu = bpf_get_smp_processor_id();
	record.header.time_ns = bpf_ktime_get_ns();
	record.tgid = caller.tgid;
	record.tid = caller.tid;
	record.process_start_ns = caller.process_start_ns;
	record.created_tid =
	    in_namespace ? number_in_namespace(BPF_CORE_READ(child, thread_pid)) : BPF_CORE_READ(child, pid);
	scratch = begin_stack(task, &caller, record.header.time_ns);
	record.has_stack = scratch != 0;
	if (bpf_ringbuf_output(&hook_records, &record, sizeof(record), wake_by_fill(sizeof(record)))) {
		counts->threads_lost++;
	} else {
		counts->threads_sent++;
		if (scratch)
			walk_and_send(first_hook_slot + scratch->sample.header.cpu, scratch);
	}
	if (scratch)
		scratch->owner = 0;
	return 0;
}
