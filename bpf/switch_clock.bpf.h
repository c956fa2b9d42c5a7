/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time of a switch, from what the scheduler has just read of the hardware. Reading the clock once more would double
 * what a switch costs: 105 ns and not 55 (x86-64 virtual machine).
 *
 * The scheduler's own clock begins elsewhere, has a small drift and may jump where the hardware's is not stable. So
 * each CPU compares the two every 10 ms.
 *
 * Whatever passes between the scheduler's reading and ours makes the difference greater: a host that takes a virtual
 * CPU away between the two adds milliseconds. So a difference that is greater than drift explains is not believed,
 * until all of several in a row say so.
 */
#ifndef CLRSAMPLER_SWITCH_CLOCK_BPF_H_
#define CLRSAMPLER_SWITCH_CLOCK_BPF_H_

#include "scheduler_notes.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define COMPARED_EVERY_NS 10000000
#define GREATER_IN_A_ROW 8
/* An interrupt between the two readings, and clocks that part by 1 in 1024 (NTP slews by 1 in 2000 at most). */
#define MAX_DRIFT_NS(elapsed_ns) (5000 + ((elapsed_ns) >> 10))

struct switch_clock {
	__u64 compared_at; /* by the scheduler's clock; 0: not yet */
	__u64 ahead_ns;	   /* how far CLOCK_MONOTONIC is ahead of it; modulo 2^64 */
	__u64 least_ns;	   /* of the greater ones in a row */
	__u64 greater;	   /* so many of them */
};

/* 32 bytes a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_clock);
} switch_clocks SEC(".maps");

static __always_inline void compare_clocks(struct switch_clock *clock, __u64 at, __u64 now)
{
	__u64 measured = now - at, elapsed = at - clock->compared_at;
	bool first = !clock->compared_at;

	clock->compared_at = at;
	if (!first && (__s64)(measured - clock->ahead_ns) > (__s64)MAX_DRIFT_NS(elapsed)) {
		if (!clock->greater || (__s64)(measured - clock->least_ns) < 0)
			clock->least_ns = measured;
		if (++clock->greater < GREATER_IN_A_ROW)
			return;
		measured = clock->least_ns;
	}
	clock->ahead_ns = measured;
	clock->greater = 0;
}

struct switch_time {
	__u64 ns;	 /* CLOCK_MONOTONIC, some microseconds off at most */
	__u64 scheduler; /* the same by the scheduler's clock; 0: not known */
};

/* `task` is of this CPU, where the scheduler is at work. */
static __always_inline struct switch_time time_of_switch(struct task_struct *task)
{
	struct switch_time time = {};
	struct switch_clock *clock;
	__u32 zero = 0;
	__u64 at = 0;

	/* without group scheduling there is no way from a task to its queue */
	if (bpf_core_field_exists(task->se.cfs_rq))
		at = task->se.cfs_rq->rq->clock;
	clock = bpf_map_lookup_elem(&switch_clocks, &zero);
	if (!at || !clock) {
		time.ns = bpf_ktime_get_ns();
		return time;
	}
	if (at - clock->compared_at > COMPARED_EVERY_NS)
		compare_clocks(clock, at, bpf_ktime_get_ns());
	time.ns = at + clock->ahead_ns;
	time.scheduler = at;
	return time;
}

/* Does the scheduler's note tell when the task, which leaves its CPU at `at`, has got it? */
static __always_inline bool has_arrival(struct task_struct *task, struct switch_time at)
{
	__u64 arrival = last_arrival(task);

	return arrival && arrival <= at.scheduler;
}

/* That time. */
static __always_inline struct switch_time arrival_before(struct task_struct *task, struct switch_time at)
{
	struct switch_time arrival = {.scheduler = last_arrival(task)};

	arrival.ns = at.ns - (at.scheduler - arrival.scheduler);
	return arrival;
}

/*
 * Has the task got a CPU within the last `limit_ns`? If so, it has waited for less. False where that is not sure: this
 * CPU has not compared the clocks, or so long ago that they may have parted by much.
 */
static __always_inline bool has_run_within(struct task_struct *task, __u64 limit_ns, __u64 now)
{
	__u64 ran = last_arrival(task), at;
	struct switch_clock *clock;
	__u32 zero = 0;

	clock = bpf_map_lookup_elem(&switch_clocks, &zero);
	if (!ran || !clock || !clock->compared_at)
		return false;
	at = now - clock->ahead_ns;
	if (at > clock->compared_at)
		at += MAX_DRIFT_NS(at - clock->compared_at);
	return at > ran && at - ran < limit_ns;
}

#endif
