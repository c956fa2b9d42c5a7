/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time of a switch, from what the scheduler has just read of the hardware. Reading the clock once more would double
 * what a switch costs: 105 ns and not 55 (x86-64 virtual machine).
 *
 * The scheduler's own clock begins elsewhere, has a small drift and may jump where the hardware's is not stable. So
 * each CPU compares the two every 10 ms.
 */
#ifndef CLRSAMPLER_SWITCH_CLOCK_BPF_H_
#define CLRSAMPLER_SWITCH_CLOCK_BPF_H_

#include "kernel_types.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define COMPARED_EVERY_NS 10000000

struct switch_clock {
	__u64 compared_at; /* by the scheduler's clock */
	__u64 ahead_ns;	   /* how far CLOCK_MONOTONIC is ahead of it; modulo 2^64 */
};

/* 16 bytes a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_clock);
} switch_clocks SEC(".maps");

/* CLOCK_MONOTONIC, some microseconds late at most. `task` is of this CPU, where the scheduler is at work. */
static __always_inline __u64 time_of_switch(struct task_struct *task)
{
	struct switch_clock *clock;
	__u32 zero = 0;
	__u64 at;

	/* without group scheduling there is no way from a task to its queue */
	if (!bpf_core_field_exists(task->se.cfs_rq))
		return bpf_ktime_get_ns();
	at = task->se.cfs_rq->rq->clock;
	clock = bpf_map_lookup_elem(&switch_clocks, &zero);
	if (!at || !clock)
		return bpf_ktime_get_ns();
	if (at - clock->compared_at > COMPARED_EVERY_NS) {
		clock->ahead_ns = bpf_ktime_get_ns() - at;
		clock->compared_at = at;
	}
	return at + clock->ahead_ns;
}

#endif
