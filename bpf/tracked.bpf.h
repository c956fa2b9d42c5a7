/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tells which processes are followed. */
#ifndef CLRSAMPLER_TRACKED_BPF_H_
#define CLRSAMPLER_TRACKED_BPF_H_

#include "task_identity.bpf.h"

extern const volatile __u8 filter_processes; /* only those in tracked_processes */
extern const volatile __u8 follow_children;  /* and children that user space has not heard of yet */

/* Generations above a task in which a tracked process is looked for: make, sh, gcc, cc1 and some to spare. User space
 * tracks a descendant as soon as it reads of the fork, 50 ms later at the most; these are for shorter lives. */
#define MAX_GENERATIONS 8

static __always_inline bool is_tracked(struct task_struct *leader, __u32 tgid, bool in_namespace)
{
	struct task_struct *task = leader;
	__u32 parent;
	int i;

	if (bpf_map_lookup_elem(&tracked_processes, &tgid))
		return true;
	if (!follow_children)
		return false;
	for (i = 0; i < MAX_GENERATIONS; i++) {
		/* the parent may be any thread of its group */
		task = BPF_CORE_READ(task, real_parent, group_leader);
		if (!task)
			return false;
		parent = tgid_of(task, in_namespace);
		if (bpf_map_lookup_elem(&tracked_processes, &parent))
			return true;
		if (parent <= 1)
			return false;
	}
	return false;
}

#endif
