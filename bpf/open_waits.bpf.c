// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The waits that nothing has ended yet, by an iterator over all tasks.
 */
#include "task_stack.bpf.h"
#include "thread_times.bpf.h"
#include <bpf/bpf_tracing.h>

/* The record that wait_threads is putting together: more than the BPF stack holds. One reader at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wire_open_wait);
} wait_open SEC(".maps");

static __always_inline void take_task_registers(struct wire_open_wait *open, struct task_struct *task)
{
	struct user_registers regs;
	void *saved;

	if (use_task_pt_regs)
		saved = (void *)bpf_task_pt_regs(task);
	else
		saved = BPF_CORE_READ(task, stack) + kernel_stack_bytes - bpf_core_type_size(struct pt_regs);
	open->ip = 0;
	if (!BPF_CORE_READ(task, mm) || bpf_probe_read_kernel(&regs, sizeof(regs), saved))
		return;
	if (!REGISTERS_USER_MODE(&regs) || (__s64)REGISTERS_IP(&regs) < 0 || REGISTERS_32BIT(&regs))
		return;
	open->ip = REGISTERS_IP(&regs);
	open->sp = REGISTERS_SP(&regs);
	open->fp = REGISTERS_FP(&regs);
	open->lr = REGISTERS_LR(&regs);
	COPY_GENERAL_REGISTERS(open->general, &regs);
#if defined(__TARGET_ARCH_x86)
	open->wait.syscall = regs.orig_ax;
#else
	open->wait.syscall = BPF_CORE_READ((struct pt_regs *)saved, syscallno);
#endif
}

static __always_inline void name_thread(struct wire_wait *wait, struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	if (pid_namespace_inode) {
		wait->tgid = number_in_namespace(BPF_CORE_READ(leader, thread_pid));
		wait->tid = number_in_namespace(BPF_CORE_READ(task, thread_pid));
	} else {
		wait->tgid = BPF_CORE_READ(task, tgid);
		wait->tid = BPF_CORE_READ(task, pid);
	}
	wait->process_start_ns = BPF_CORE_READ(leader, start_boottime);
	BPF_CORE_READ_STR_INTO(&wait->comm, task, comm);
}

/* The end of a wait whose thread has no CPU yet. Nobody has noted who ended one that is not told. */
static __always_inline void note_end(struct wire_wait *wait, const struct thread_times *times)
{
	if (!times->woken_ns || !times->blocked_weight)
		return;
	wait->woken_ns = times->woken_ns;
	wait->waker_tgid = times->waker_tgid;
	wait->waker_tid = times->waker_tid;
	__builtin_memcpy(wait->waker_comm, times->waker_comm, sizeof(wait->waker_comm));
	wait->flags |= times->flags & (WIRE_WAIT_HAS_WAKER_STACK | WIRE_WAIT_WAKER_OUTSIDE);
}

/*
 * Sums with the state that goes on, as of now. A thread that nobody has seen has been in its state since the beginning.
 * So the state is read before it is looked for: a thread that leaves its state is seen first.
 */
static __always_inline void sum_up(struct wire_wait *wait, struct task_struct *task)
{
	bool runnable = is_runnable(task), on_cpu = is_on_cpu(task);
	struct thread_times now_seen = {}, *times;
	__u64 now, open, blocked;

	barrier();
	times = times_of(task, false);
	now = bpf_ktime_get_ns();
	if (times) {
		times->tgid = wait->tgid;
		times->tid = wait->tid;
		now_seen = *times;
	}
	if (!now_seen.seen_ns) {
		see(&now_seen, task, now);
		now_seen.waiting = !on_cpu;
		now_seen.blocked = !runnable;
	}
	open = passed(now_seen.since_ns, now);
	blocked = blocked_part(&now_seen, task, open, 0);
	if (runnable && !now_seen.woken_ns)
		blocked = 0; /* it was short when something ended it: see has_run_within */
	wait->header.time_ns = now;
	wait->seen_ns = now_seen.seen_ns;
	wait->total_cpu_ns = now_seen.cpu_ns;
	wait->total_blocked_ns = now_seen.blocked_ns;
	wait->total_runnable_ns = now_seen.runnable_ns;
	wait->total_short_ns = now_seen.short_ns;
	wait->total_waits = now_seen.waits;
	if (!now_seen.waiting) {
		wait->total_cpu_ns += open;
		return;
	}
	wait->blocked_ns = blocked;
	wait->runnable_ns = open - blocked;
	note_end(wait, &now_seen);
	wait->total_blocked_ns += blocked;
	wait->total_runnable_ns += open - blocked;
	if (blocked && blocked >= min_wait_ns)
		wait->blocked_weight = WIRE_WAIT_ONE;
	else
		wait->total_short_ns += blocked;
	if (open > blocked && open - blocked >= min_wait_ns)
		wait->runnable_weight = WIRE_WAIT_ONE;
	else
		wait->total_short_ns += open - blocked;
}

/* At the end: what each thread is at, and its sums. */
SEC("?iter/task")
int wait_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wire_open_wait *open;
	__u32 zero = 0;
	long bytes;

	if (!task || !is_followed(task))
		return 0;
	/* It waits for nothing any more, and its last record has its sums. */
	if (BPF_CORE_READ(task, exit_state))
		return 0;
	open = bpf_map_lookup_elem(&wait_open, &zero);
	if (!open)
		return 0;
	__builtin_memset(open, 0, sizeof(*open));
	open->wait.flags = WIRE_WAIT_OPEN;
	open->wait.syscall = -1;
	name_thread(&open->wait, task);
	if (!open->wait.tgid)
		return 0;
	sum_up(&open->wait, task);
	open->switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw) + arrivals(task);
	if (open->wait.blocked_weight || open->wait.runnable_weight) {
		take_task_registers(open, task);
		bytes = bpf_get_task_stack(task, open->kernel, sizeof(open->kernel), 0);
		if (bytes > 0)
			open->kernel_frames = bytes / sizeof(__u64);
	}
	bpf_seq_write(ctx->meta->seq, open, sizeof(*open));
	return 0;
}
