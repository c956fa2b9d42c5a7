/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts that all hooks in runtimes share: the arguments of the function that was called, and the thread that called
 * it.
 *
 * A hit is made in the context of the calling thread, and a sample may interrupt it: nothing is shared with the sampler
 * but counters of which each has its own. Every hit ends in exactly one of wire_counters' hook counts.
 */
#ifndef CLRSAMPLER_RUNTIME_HOOK_BPF_H_
#define CLRSAMPLER_RUNTIME_HOOK_BPF_H_

#include "hook_ring.bpf.h"
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

/* One of some KiB, that has to be unwound and named. */
#define WEIGHT_OF_STACK 8

extern const volatile __u32 hook_hits_a_second;
extern const volatile __u32 hook_hits_at_once;
extern volatile __u32 hook_hits_were_lost;

struct hook_caller {
	__u64 process_start_ns;
	__u32 tgid;
	__u32 tid;
	__u32 missed;
};

/*
 * A program decides how often it collects and compiles. Its cost for the ring and the agent is bounded: a bucket of
 * hits, which fills all the time. An empty one sends nothing until an eighth of a second's worth is there, so that what
 * is sent are pauses as a whole, and not every other event of each. Two CPUs may take the same hit out of it at the
 * same time: the bound is no exact one.
 */
static __always_inline bool within_rate_limit(struct hook_caller *caller, __u64 now)
{
	struct wire_event_rate_limit *limit;
	__u64 passed_ms;

	if (!hook_hits_a_second && !hook_hits_were_lost) /* nothing to look up: 0.3 us of 2.3 */
		return true;
	limit = bpf_map_lookup_elem(&event_rate_limits, &caller->tgid);
	if (!limit || limit->process_start_ns != caller->process_start_ns) {
		struct wire_event_rate_limit full;

		__builtin_memset(&full, 0, sizeof(full));
		full.process_start_ns = caller->process_start_ns;
		full.filled_ns = now;
		full.left = hook_hits_at_once;
		bpf_map_update_elem(&event_rate_limits, &caller->tgid, &full, BPF_ANY);
		limit = bpf_map_lookup_elem(&event_rate_limits, &caller->tgid);
		if (!limit) /* somebody else needed the room */
			return true;
	}
	if (!hook_hits_a_second) {
		caller->missed = limit->missed;
		return true;
	}
	passed_ms = now > limit->filled_ns ? (now - limit->filled_ns) / 1000000 : 0;
	if (passed_ms >= 10) {
		__u64 left = limit->left + (passed_ms > 1000000 ? 1000000 : passed_ms) * hook_hits_a_second / 1000;

		limit->left = left > hook_hits_at_once ? hook_hits_at_once : left;
		limit->filled_ns = now;
	}
	if (limit->left < (limit->exhausted ? hook_hits_a_second / 8 : 1)) {
		limit->rate_limited = 1;
		limit->exhausted = 1;
		__sync_fetch_and_add(&limit->missed, 1);
		return false;
	}
	limit->exhausted = 0;
	limit->left--;
	caller->missed = limit->missed & ~WIRE_MISSED_RATE_LIMITED;
	if (limit->rate_limited)
		caller->missed |= WIRE_MISSED_RATE_LIMITED;
	return true;
}

static __always_inline void was_not_sent(struct wire_counters *counts, struct hook_caller *caller)
{
	struct wire_event_rate_limit *limit;

	counts->hook_lost++;
	if (!hook_hits_were_lost) {
		hook_hits_were_lost = 1;
		within_rate_limit(caller, bpf_ktime_get_ns()); /* makes the entry */
	}
	limit = bpf_map_lookup_elem(&event_rate_limits, &caller->tgid);
	if (limit)
		__sync_fetch_and_add(&limit->missed, 1);
}

/* Stacks are the first that a process goes without: when the bucket is half empty. */
static __always_inline bool within_rate_limit_for_stack(struct hook_caller *caller)
{
	struct wire_event_rate_limit *limit;

	if (!hook_hits_a_second)
		return true;
	limit = bpf_map_lookup_elem(&event_rate_limits, &caller->tgid);
	if (!limit)
		return true;
	if (limit->left < hook_hits_at_once / 2 + WEIGHT_OF_STACK)
		return false;
	limit->left -= WEIGHT_OF_STACK;
	return true;
}

static __always_inline void count_other(__u32 part)
{
	struct wire_hook_other other = {.tgid = bpf_get_current_pid_tgid() >> 32, .part = part};
	__u64 *hits = bpf_map_lookup_elem(&hook_others, &other), one = 1;

	if (hits)
		__sync_fetch_and_add(hits, 1);
	else
		bpf_map_update_elem(&hook_others, &other, &one, BPF_NOEXIST);
}

/*
 * Counts the hit; false: the caller is of no process that is followed.
 */
static __always_inline bool hook_is_followed(struct wire_counters *counts, struct hook_caller *caller, __u32 part)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	bool in_namespace = pid_namespace_inode != 0;

	counts->hook_hits++;
	if (in_namespace) {
		caller->tgid = number_in_namespace(BPF_CORE_READ(leader, thread_pid));
		caller->tid = number_in_namespace(BPF_CORE_READ(task, thread_pid));
	} else {
		__u64 id = bpf_get_current_pid_tgid();

		caller->tgid = id >> 32;
		caller->tid = (__u32)id;
	}
	/* a runtime's image is shared by all processes that map it, ours or not */
	if (!caller->tgid || (filter_processes && !is_tracked(leader, caller->tgid, in_namespace))) {
		counts->hook_filtered++;
		count_other(part);
		return false;
	}
	caller->process_start_ns = BPF_CORE_READ(leader, start_boottime);
	return true;
}

/* The same; false as well where the process has had its share. */
static __always_inline bool hook_is_hit(struct wire_counters *counts, struct hook_caller *caller, __u64 now, __u32 part)
{
	if (!hook_is_followed(counts, caller, part))
		return false;
	if (!within_rate_limit(caller, now)) {
		counts->hook_rate_limited++;
		return false;
	}
	return true;
}

static __always_inline int report(__u32 hook, __u64 first, __u64 second, __u64 third, __u64 fourth)
{
	struct wire_counters *counts = this_cpu_counters();
	struct wire_runtime_event event;
	struct hook_caller caller = {};

	if (!counts) /* can't be: the map has the one entry */
		return 0;
	__builtin_memset(&event, 0, sizeof(event));
	event.header.time_ns = bpf_ktime_get_ns();
	if (!hook_is_hit(counts, &caller, event.header.time_ns,
			 hook == WIRE_HOOK_COMPILE ? WIRE_PART_COMPILATIONS : WIRE_PART_SUSPENSIONS))
		return 0;
	event.header.size = sizeof(event);
	event.header.kind = WIRE_RUNTIME_EVENT;
	event.header.cpu = bpf_get_smp_processor_id();
	event.tgid = caller.tgid;
	event.tid = caller.tid;
	event.process_start_ns = caller.process_start_ns;
	event.hook = hook;
	event.missed = caller.missed;
	event.values[0] = first;
	event.values[1] = second;
	event.values[2] = third;
	event.values[3] = fourth;
	bpf_get_current_comm(event.comm, sizeof(event.comm));
	if (bpf_ringbuf_output(&hook_records, &event, sizeof(event), wake_by_fill(sizeof(event))))
		was_not_sent(counts, &caller);
	else
		counts->hook_sent++;
	return 0;
}

#endif
