/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells which task is running: numbers as the agent's pid namespace shows them, and a start time that tells reused
 * numbers apart.
 */
#ifndef CLRSAMPLER_TASK_IDENTITY_BPF_H_
#define CLRSAMPLER_TASK_IDENTITY_BPF_H_

#include "shared_maps.bpf.h"
#include <bpf/bpf_core_read.h>

/*
 * Inode of the agent's pid namespace, unless that is the initial one. There all numbers can be had without a walk:
 * in_namespace, a constant of the calling program, is false.
 */
extern const volatile __u32 pid_namespace_inode;

/* Namespaces nest at most 32 deep (MAX_PID_NS_LEVEL, include/linux/pid_namespace.h). */
#define MAX_PID_NAMESPACE_LEVEL 32

/* The number of `pid` in the agent's namespace, or 0 where that namespace does not show it. */
static __always_inline __u32 number_in_namespace(struct pid *pid)
{
	__u32 level = BPF_CORE_READ(pid, level);

	for (__u32 i = 0; i <= MAX_PID_NAMESPACE_LEVEL && i <= level; i++) {
		struct upid *upid =
		    (void *)pid + bpf_core_field_offset(struct pid, numbers) + i * bpf_core_type_size(struct upid);

		if (BPF_CORE_READ(upid, ns, ns.inum) == pid_namespace_inode)
			return BPF_CORE_READ(upid, nr);
	}
	return 0;
}

static __always_inline __u32 tgid_of(struct task_struct *leader, bool in_namespace)
{
	if (in_namespace)
		return number_in_namespace(BPF_CORE_READ(leader, thread_pid));
	return BPF_CORE_READ(leader, tgid);
}

static __always_inline void identify(struct task_struct *task, struct task_struct *leader,
				     struct wire_cpu_sample *sample, bool in_namespace)
{
	if (in_namespace) {
		sample->tgid = tgid_of(leader, in_namespace);
		sample->tid = number_in_namespace(BPF_CORE_READ(task, thread_pid));
		if (!sample->tgid)
			sample->flags |= WIRE_SAMPLE_OUTSIDE;
	} else {
		__u64 id = bpf_get_current_pid_tgid();

		sample->tgid = id >> 32;
		sample->tid = (__u32)id;
	}
	sample->process_start_ns = BPF_CORE_READ(leader, start_boottime);
}

#endif
