/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The times of each thread that is followed: since when it runs or waits, its sums, and the wait that is to be told.
 *
 * A thread may migrate while it waits, so all of it is stored with its task.
 */
#ifndef CLRSAMPLER_THREAD_TIMES_BPF_H_
#define CLRSAMPLER_THREAD_TIMES_BPF_H_

#include "scheduler_notes.bpf.h"
#include "shared_maps.bpf.h"
#include "tracked.bpf.h"

extern const volatile __u8 use_task_storage; /* the kernel has it and it is safe here (6.4); else wait_times is used */
extern const volatile __u32 only_tgid;	     /* in the initial pid namespace; 0: is_tracked tells */
extern const volatile __u64 min_wait_ns;     /* shorter parts only add to their thread's sums */
extern volatile __u64 waits_began_ns;	     /* a thread that was there then has waited or run since then */
extern const volatile __u32 wait_table_threads; /* so many have room in wait_times, whichever CPUs they came by */
extern volatile __u64 wait_table_used;		/* entries that were made and not deleted; pushed out ones count */
extern volatile __u32 wait_table_was_full;	/* some may have been pushed out */

/* The times of a thread's present state, and its sums. */
struct thread_times {
	/* When it left its CPU, or got one; 0: not seen yet. It never goes back, though clocks of two CPUs may be some
	 * microseconds apart: no time counts twice. */
	__u64 since_ns;
	__u64 woken_ns;	 /* in a wait: when it became runnable; 0: it has not, or the wait was short by then */
	__u64 queues_ns; /* time_in_queues, when it last left its CPU */
	__u64 cpu_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 short_ns;
	__u64 waits;
	__u32 waiting; /* it is off its CPU */
	__u32 blocked; /* it has left because there was nothing to do for it */
	/* The wait at hand, or the last one: */
	__u32 pending; /* it is told, and was not yet */
	__u32 blocked_weight;
	__u32 runnable_weight;
	__u32 flags; /* WIRE_WAIT_* */
	__u32 waker_tgid;
	__u32 waker_tid;
	__u32 tgid, tid; /* of the thread itself, as they were last told; 0: not yet */
	__u64 seen_ns;
	__u64 born_ns; /* in wait_times: when the thread began, which tells reused ids apart */
	__u64 last_blocked_ns;
	__u64 last_runnable_ns;
	__u64 last_woken_ns;
	char waker_comm[16];
};

/* 160 bytes a thread that was seen, gone with it. */
struct thread_storage_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_times);
};
extern struct thread_storage_map wait_storage SEC(".maps");

/*
 * The same by thread id, in the initial pid namespace, of kernels without task storage. 16384 threads, 3.5 MB, and 128
 * more for each CPU, which keeps so many free for itself. A thread that may have been pushed out is seen anew: user
 * space knows its stretches apart by seen_ns. One entry where it is not used.
 */
struct thread_table_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct thread_times);
};
extern struct thread_table_map wait_times SEC(".maps");

static __always_inline struct thread_times *times_in_table(struct task_struct *task, bool create)
{
	struct thread_times fresh, *times;
	__u32 pid = task->pid;

	times = bpf_map_lookup_elem(&wait_times, &pid);
	if (times && times->born_ns == task->start_time)
		return times;
	if (!create)
		return NULL;
	if (times) { /* of another thread of that number, whose end was not seen */
		__builtin_memset(times, 0, sizeof(*times));
		times->born_ns = task->start_time;
		return times;
	}
	__builtin_memset(&fresh, 0, sizeof(fresh));
	fresh.born_ns = task->start_time;
	if (!bpf_map_update_elem(&wait_times, &pid, &fresh, BPF_NOEXIST)) {
		__sync_fetch_and_add(&wait_table_used, 1);
		if (wait_table_used > wait_table_threads)
			wait_table_was_full = 1;
	}
	return bpf_map_lookup_elem(&wait_times, &pid);
}

static __always_inline struct thread_times *times_of(struct task_struct *task, bool create)
{
	if (use_task_storage)
		return bpf_task_storage_get(&wait_storage, task, NULL, create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	return times_in_table(task, create);
}

/* The task has left its CPU for the last time. */
static __always_inline void forget_times(struct task_struct *task)
{
	__u32 pid = task->pid;

	if (!use_task_storage && !bpf_map_delete_elem(&wait_times, &pid))
		__sync_fetch_and_add(&wait_table_used, -1);
}

static __always_inline bool is_followed(struct task_struct *task)
{
	bool in_namespace = pid_namespace_inode;
	struct task_struct *leader;

	if (only_tgid)
		return (__u32)task->tgid == only_tgid;
	if (task->flags & PF_KTHREAD)
		return false;
	if (!filter_processes)
		return true;
	leader = task->group_leader;
	return is_tracked(leader, tgid_of(leader, in_namespace), in_namespace);
}

static __always_inline __u32 state_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return task->state;
}

static __always_inline bool is_runnable(struct task_struct *task)
{
	return !state_of(task);
}

/* Without CONFIG_SMP there is one CPU, and one thread on it. */
static __always_inline bool is_on_cpu(struct task_struct *task)
{
	if (bpf_core_field_exists(task->on_cpu))
		return task->on_cpu;
	return task == (void *)bpf_get_current_task();
}

/* Its entry may have been pushed out of the table. A thread that has never left a CPU had none. */
static __always_inline bool may_be_forgotten(struct task_struct *task)
{
	return !use_task_storage && wait_table_was_full &&
	       (task->start_time <= waits_began_ns || task->nvcsw + task->nivcsw);
}

/*
 * The time of a thread before it was seen is known as little as the time before all of this began. Where some of it may
 * have been told, what follows is a stretch of its own, so that no time counts twice.
 */
static __always_inline void see(struct thread_times *times, struct task_struct *task, __u64 now)
{
	__u64 born = task->start_time;

	times->seen_ns = born > waits_began_ns ? born : waits_began_ns;
	if (may_be_forgotten(task)) {
		struct wire_counters *counts = this_cpu_counters();

		times->seen_ns = now;
		if (counts)
			counts->wait_seen_anew++;
	}
	times->since_ns = times->seen_ns;
	times->queues_ns = time_in_queues(task, 0);
}

static __always_inline __u64 passed(__u64 from, __u64 to)
{
	return to > from ? to - from : 0;
}

/*
 * How much of the `off_ns` that a thread is off its CPU there was nothing to do for it. `at` is the time by the
 * scheduler's clock; 0: not known.
 */
static __always_inline __u64 blocked_part(const struct thread_times *times, struct task_struct *task, __u64 off_ns,
					  __u64 at)
{
	__u64 blocked;

	if (!times->blocked)
		return 0;
	if (times->woken_ns)
		blocked = passed(times->since_ns, times->woken_ns);
	else
		blocked = passed(at ? passed(times->queues_ns, time_in_queues(task, at)) : 0, off_ns);
	return blocked < off_ns ? blocked : off_ns;
}

#endif
