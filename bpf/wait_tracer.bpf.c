// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where threads wait: the scheduler's tracepoints, for every thread that is followed.
 *
 * - wait_switch: a thread leaves its CPU and another one comes. Times are added up, and it is chosen whether the wait
 *   that has ended is told.
 * - wait_waking: somebody ends a thread's wait. Records the thread that does it, and its stack.
 * - wait_stack: the stack of a chosen wait.
 *
 * At its switch nobody can read the memory of the thread that comes: the one that goes is still current. So wait_switch
 * asks for an interrupt of this CPU (an event whose ring has a page, of which nobody reads), and the kernel takes it as
 * soon as the switch is over. By then the thread is current, and has not run a single instruction of user code: its
 * stack is the one that it waited with. So only waits that are told cost a stack.
 *
 * Waits that have not ended are in open_waits.bpf.c.
 */
#include "hook_ring.bpf.h"
#include "sampling_pace.bpf.h"
#include "switch_clock.bpf.h"
#include "task_stack.bpf.h"
#include "thread_times.bpf.h"
#include <bpf/bpf_tracing.h>

/* Parts of waits that are told. The window is long enough for threads that are all woken at once. */
#define WAITS_A_CPU                                                                                                    \
	((struct pace_limit){.window_ns = 100000000, .largest = 10000000, .sent = 50, .thinning = wait_thinning})

const volatile __u8 use_task_storage = 0;
const volatile __u32 only_tgid = 0;
const volatile __u64 min_wait_ns = 0;
const volatile __u8 take_waker_stacks = 1;
const volatile __u32 wait_thinning = 1; /* of waits that are told; at least 1 */
volatile __u64 waits_began_ns = 0;
const volatile __u32 wait_table_threads = 16384;
volatile __u64 wait_table_used = 0;
volatile __u32 wait_table_was_full = 0;

struct thread_storage_map wait_storage SEC(".maps");
struct thread_table_map wait_times SEC(".maps");

/* 24 bytes a CPU. */
struct sampling_pace_map wait_paces SEC(".maps");

/* An event for each CPU, by which it interrupts itself. User space sets the number of CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} wait_alarms SEC(".maps");

/* The same of the current task, of which kernels before 5.11 give no pointer that can be followed. */
static __always_inline bool current_is_followed(void)
{
	struct task_struct *task = (void *)bpf_get_current_task(), *leader;
	bool in_namespace = pid_namespace_inode;

	if (only_tgid)
		return bpf_get_current_pid_tgid() >> 32 == only_tgid;
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return false;
	if (!filter_processes)
		return true;
	leader = BPF_CORE_READ(task, group_leader);
	return is_tracked(leader, tgid_of(leader, in_namespace), in_namespace);
}

/* Parts of waits that are below the threshold. */
static __always_inline void add_short(struct thread_times *times, __u64 ns, __u64 parts)
{
	struct wire_counters *counts = this_cpu_counters();

	if (!counts)
		return;
	counts->waits += parts;
	counts->wait_short += parts;
	times->short_ns += ns;
}

/* The weight of a part of a wait that has ended; 0: it is not told. */
static __always_inline __u32 choose(struct thread_times *times, __u64 part_ns, __u64 now)
{
	struct wire_counters *counts;
	struct sampling_pace *pace;
	__u32 zero = 0, weight;

	if (!part_ns)
		return 0;
	if (part_ns < min_wait_ns) {
		add_short(times, part_ns, 1);
		return 0;
	}
	counts = this_cpu_counters();
	if (!counts)
		return 0;
	counts->waits++;
	pace = bpf_map_lookup_elem(&wait_paces, &zero);
	if (!pace) /* can't be: the map has the one entry */
		return 0;
	weight = choose_by_size(pace, part_ns, WAITS_A_CPU, now);
	if (weight)
		counts->wait_kept++;
	else
		counts->wait_passed_over++;
	return weight;
}

static __always_inline void name_task(struct wire_cpu_sample *sample, __u16 kind, __u64 now)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	sample->header.kind = kind;
	sample->header.cpu = bpf_get_smp_processor_id();
	sample->header.time_ns = now;
	identify(task, BPF_CORE_READ(task, group_leader), sample, pid_namespace_inode);
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
}

/*
 * Interrupts are off wherever this is called, so that the CPU's slot for samples is free.
 */
static __always_inline void send_stack(void *ctx, struct scratch *scratch, __u32 cpu)
{
	struct variant variant = {.in_namespace = true, .task_pt_regs = false};
	struct task_struct *task = (void *)bpf_get_current_task();
	struct wire_cpu_sample *sample = &scratch->sample;
	__u64 bytes;

	sample->flags |= WIRE_SAMPLE_IN_KERNEL;
	take_kernel_stack(scratch, ctx);
	sample->stop = WIRE_STOP_NO_REGISTERS;
	if (!(sample->flags & WIRE_SAMPLE_KTHREAD))
		sample->stop = take_saved_registers(scratch, task, variant);
	if (!sample->stop)
		take_user_stack(scratch, task, cpu);
	bytes = close_stack(scratch);
	/* The kernel wakes the reader by an interrupt of its own, when no lock of the scheduler is held any more. */
	bpf_ringbuf_output(&hook_records, sample, bytes, wake_by_fill(bytes));
}

static __always_inline struct scratch *fresh_scratch(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);

	if (!scratch)
		return NULL;
	__builtin_memset(&scratch->sample, 0, sizeof(scratch->sample));
	scratch->used = 0;
	return scratch;
}

static __always_inline __s32 syscall_of(struct user_registers *regs, struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	struct variant variant = {.in_namespace = true, .task_pt_regs = false};
	struct pt_regs *saved = saved_registers(task, variant);

	return BPF_CORE_READ(saved, syscallno);
#endif
}

static __always_inline void fill_wait(struct wire_wait *wait, struct thread_times *times, struct scratch *scratch,
				      struct task_struct *task)
{
	struct wire_cpu_sample *sample = &scratch->sample;

	__builtin_memset(wait, 0, sizeof(*wait));
	wait->header = sample->header;
	wait->header.kind = WIRE_WAIT;
	wait->header.size = sizeof(*wait);
	wait->tgid = sample->tgid;
	wait->tid = sample->tid;
	wait->process_start_ns = sample->process_start_ns;
	wait->blocked_ns = times->last_blocked_ns;
	wait->runnable_ns = times->last_runnable_ns;
	wait->woken_ns = times->last_woken_ns;
	wait->seen_ns = times->seen_ns;
	wait->total_cpu_ns = times->cpu_ns;
	wait->total_blocked_ns = times->blocked_ns;
	wait->total_runnable_ns = times->runnable_ns;
	wait->total_short_ns = times->short_ns;
	wait->total_waits = times->waits;
	if (times->last_woken_ns) {
		wait->waker_tgid = times->waker_tgid;
		wait->waker_tid = times->waker_tid;
		__builtin_memcpy(wait->waker_comm, times->waker_comm, sizeof(wait->waker_comm));
	}
	wait->blocked_weight = times->blocked_weight;
	wait->runnable_weight = times->runnable_weight;
	wait->flags = times->flags;
	wait->syscall = -1;
	__builtin_memcpy(wait->comm, sample->comm, sizeof(wait->comm));
}

/* A thread that ends may have given its numbers in the agent's namespace back before it leaves its CPU. */
static __always_inline void name_by_last(struct wire_cpu_sample *sample, struct thread_times *times)
{
	if (sample->tid) {
		times->tgid = sample->tgid;
		times->tid = sample->tid;
	} else if (times->tid) {
		sample->tgid = times->tgid;
		sample->tid = times->tid;
	}
}

/* Tells the wait of the current thread that is pending, or that the thread ends. */
static __always_inline void tell(void *ctx, struct thread_times *times, bool with_stack, __u64 now)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct wire_counters *counts = this_cpu_counters();
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *scratch = fresh_scratch(cpu);
	struct wire_wait *wait;

	if (!scratch || !counts)
		return;
	name_task(&scratch->sample, WIRE_WAIT_STACK, now);
	name_by_last(&scratch->sample, times);
	if (!scratch->sample.tgid) {
		counts->wait_outside++;
		return;
	}
	wait = bpf_ringbuf_reserve(&hook_records, sizeof(*wait), 0);
	if (!wait) {
		counts->wait_records_lost++;
		return;
	}
	fill_wait(wait, times, scratch, task);
	if (with_stack) {
		struct variant variant = {.in_namespace = true, .task_pt_regs = false};

		/* system calls of 32-bit programs have other numbers */
		if (!bpf_probe_read_kernel(&scratch->regs, sizeof(scratch->regs), saved_registers(task, variant)) &&
		    !REGISTERS_32BIT(&scratch->regs))
			wait->syscall = syscall_of(&scratch->regs, task);
		wait->flags |= WIRE_WAIT_HAS_STACK;
	}
	bpf_ringbuf_submit(wait, wake_by_fill(sizeof(*wait)));
	counts->wait_records_sent++;
	if (with_stack)
		send_stack(ctx, scratch, cpu);
	else if (!(times->flags & WIRE_WAIT_THREAD_ENDED))
		counts->wait_without_stack++;
}

/*
 * Ends the wait that has taken `off_ns`, of which the thread was blocked for so long. Returns what is left to be chosen
 * of that: of a longer one wait_waking has chosen.
 */
static __always_inline __u64 end_wait(struct thread_times *times, __u64 off_ns, __u64 blocked_ns)
{
	times->blocked_ns += blocked_ns;
	times->runnable_ns += off_ns - blocked_ns;
	times->waits++;
	times->waiting = 0;
	return times->woken_ns ? 0 : blocked_ns;
}

static __always_inline void end_short_wait(struct thread_times *times, __u64 off_ns, __u64 blocked_ns)
{
	__u64 left = end_wait(times, off_ns, blocked_ns), runnable_ns = off_ns - blocked_ns;

	add_short(times, left + runnable_ns, !!left + !!runnable_ns);
}

/*
 * Nobody has seen the thread before it comes, not even a wake-up: it has wanted a CPU all the time. Its notes don't say
 * so where it has changed queues meanwhile.
 */
static __always_inline void see_off_cpu(struct thread_times *times, struct task_struct *task, __u64 now)
{
	see(times, task, now);
	times->waiting = 1;
	times->blocked = 0;
}

/* The wait ends: its time is added up, and it is chosen whether it is told. */
static __always_inline void arrives(struct thread_times *times, struct task_struct *task, struct switch_time at)
{
	__u64 off = passed(times->since_ns, at.ns), blocked = blocked_part(times, task, off, at.scheduler), left;

	times->since_ns += off;
	if (off < min_wait_ns) {
		end_short_wait(times, off, blocked);
		return;
	}
	left = end_wait(times, off, blocked);
	if (left)
		times->blocked_weight = choose(times, left, at.ns);
	times->runnable_weight = choose(times, off - blocked, at.ns);
	times->last_blocked_ns = blocked;
	times->last_runnable_ns = off - blocked;
	times->last_woken_ns = times->woken_ns;
	times->pending = times->blocked_weight || times->runnable_weight;
}

static __always_inline void leaves_cpu(void *ctx, bool preempted, struct task_struct *task, struct switch_time at)
{
	struct thread_times *times = times_of(task, true);
	bool ends = state_of(task) & TASK_DEAD;
	__u64 now = at.ns, ran;

	if (!times)
		return;
	if (!times->seen_ns)
		see(times, task, now);
	/* Its arrival was not seen: some kernels call no tracer while chosen tasks are current. */
	if (times->waiting && has_arrival(task, at))
		arrives(times, task, arrival_before(task, at));
	ran = passed(times->since_ns, now);
	times->cpu_ns += ran;
	times->since_ns += ran;
	times->queues_ns = time_in_queues(task, 0);
	times->woken_ns = 0;
	times->waiting = 1;
	times->blocked = !preempted && !is_runnable(task);
	if (times->pending) {
		times->pending = 0;
		tell(ctx, times, false, now);
	}
	times->blocked_weight = 0;
	times->flags = 0;
	if (ends && times->blocked) {
		times->flags = WIRE_WAIT_THREAD_ENDED;
		times->runnable_weight = 0;
		times->last_blocked_ns = 0;
		times->last_runnable_ns = 0;
		tell(ctx, times, false, now);
		forget_times(task);
	}
}

static __always_inline void gets_cpu(void *ctx, struct task_struct *task, struct switch_time at)
{
	struct thread_times *times = times_of(task, true);
	__u32 alarm = 0;

	if (!times)
		return;
	if (!times->seen_ns)
		see_off_cpu(times, task, at.ns);
	arrives(times, task, at);
	if (times->pending)
		bpf_perf_event_output(ctx, &wait_alarms, BPF_F_CURRENT_CPU, &alarm, sizeof(alarm));
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(wait_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	bool leaves = is_followed(prev), comes = is_followed(next);
	struct switch_time at;

	if (!leaves && !comes)
		return 0;
	at = time_of_switch(prev);
	if (leaves)
		leaves_cpu(ctx, preempted, prev, at);
	if (comes)
		gets_cpu(ctx, next, at);
	return 0;
}

static __always_inline void note_waker(void *ctx, struct thread_times *times, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *scratch;
	struct wire_cpu_sample *sample;

	times->waker_tgid = 0;
	times->waker_tid = 0;
	times->waker_comm[0] = 0;
	if (!(__u32)bpf_get_current_pid_tgid()) /* an interrupt has found the CPU idle */
		return;
	scratch = fresh_scratch(cpu);
	if (!scratch)
		return;
	sample = &scratch->sample;
	name_task(sample, WIRE_WAKER_STACK, now);
	times->waker_tgid = sample->tgid;
	times->waker_tid = sample->tid;
	__builtin_memcpy(times->waker_comm, sample->comm, sizeof(times->waker_comm));
	if (!sample->tgid)
		times->flags |= WIRE_WAIT_WAKER_OUTSIDE;
	if (!take_waker_stacks)
		return;
	/* A task that is not followed keeps its user stack to itself; the kernel's shows whether it was interrupted. */
	if (!sample->tgid || !current_is_followed()) {
		sample->tgid = 0;
		sample->process_start_ns = 0;
		sample->flags |= WIRE_SAMPLE_OUTSIDE | WIRE_SAMPLE_KTHREAD;
	}
	/* also where the ring has no room for it: user space counts that it did not come */
	send_stack(ctx, scratch, cpu);
	times->flags |= WIRE_WAIT_HAS_WAKER_STACK;
}

/* sched_waking and not sched_wakeup: only there the waker is surely current. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(wait_waking, struct task_struct *task)
{
	struct thread_times *times;
	__u64 now;

	if (!is_followed(task))
		return 0;
	now = bpf_ktime_get_ns();
	if (has_run_within(task, min_wait_ns, now))
		return 0; /* nothing but its time counts */
	/* One that is on its CPU is woken before it has left. */
	if (is_on_cpu(task))
		return 0;
	times = times_of(task, true);
	if (!times)
		return 0;
	if (!times->seen_ns) { /* it has waited since before all of this began */
		see(times, task, now);
		times->waiting = 1;
		times->blocked = 1;
	}
	if (!times->waiting || !times->blocked || times->woken_ns)
		return 0;
	times->woken_ns = now;
	times->blocked_weight = choose(times, passed(times->since_ns, now), now);
	if (times->blocked_weight)
		note_waker(ctx, times, now);
	return 0;
}

static __always_inline int take_pending(void *ctx)
{
	struct task_struct *task;
	struct thread_times *times;
	__u32 pid;

	if (use_task_storage) {
		task = bpf_get_current_task_btf();
		if (!is_followed(task))
			return 0;
		times = bpf_task_storage_get(&wait_storage, task, NULL, 0);
	} else {
		pid = bpf_get_current_pid_tgid();
		times = bpf_map_lookup_elem(&wait_times, &pid);
	}
	if (!times || !times->pending)
		return 0;
	times->pending = 0;
	tell(ctx, times, true, bpf_ktime_get_ns());
	return 0;
}

/* The interrupt that wait_switch asked for, or one that came first: what it interrupts is the end of the switch. */
#if defined(__TARGET_ARCH_x86)
SEC("?tp_btf/irq_work_entry")
int BPF_PROG(wait_stack, int vector)
{
	return take_pending(ctx);
}
#else
SEC("?tp_btf/ipi_entry")
int BPF_PROG(wait_stack, const char *reason)
{
	return take_pending(ctx);
}
#endif
