/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notes that the scheduler itself takes of each task: when it last got a CPU, and how long it was in a queue.
 *
 * So a wake-up that ends a short wait needs no look at the thread's own times, which another CPU has written last. The
 * switch knows when the thread was woken.
 *
 * Kernels without CONFIG_SCHED_INFO have no notes (distributions' kernels have them), nor do kernels before 5.14 that
 * have it for delay accounting alone. All notes are 0 there.
 */
#ifndef CLRSAMPLER_SCHEDULER_NOTES_BPF_H_
#define CLRSAMPLER_SCHEDULER_NOTES_BPF_H_

#include "kernel_types.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

static __always_inline __u64 last_arrival(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.last_arrival) ? task->sched_info.last_arrival : 0;
}

/* How often the task has got a CPU: the third number of /proc/PID/task/TID/schedstat. */
static __always_inline __u64 arrivals(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.pcount) ? task->sched_info.pcount : 0;
}

/* How long the task was in queues up to now, by the clock of the one that it is in; `at` 0: up to its last arrival. */
static __always_inline __u64 time_in_queues(struct task_struct *task, __u64 at)
{
	__u64 queued;

	if (!bpf_core_field_exists(task->sched_info.last_queued))
		return 0;
	queued = task->sched_info.last_queued;
	return task->sched_info.run_delay + (queued && at > queued ? at - queued : 0);
}

#endif
