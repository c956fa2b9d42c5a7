/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies the objects that lead to the awaiters of what runs on the stack; their format is struct wire_async_object's.
 */
#ifndef CLRSAMPLER_ASYNC_OBJECTS_BPF_H_
#define CLRSAMPLER_ASYNC_OBJECTS_BPF_H_

#include "shared_maps.bpf.h"
#include "user_stack.bpf.h"

extern const volatile __u8 async_stacks; /* they are wanted */

/* Global functions, for the same reason as those of the walk (user_stack.bpf.h). Their state is in the scratch. */
int async_row_of(__u32 cpu, __u64 object);
int copy_async_object(__u32 cpu, __u64 object);
int leave_async_object(__u32 cpu, __u32 at);
int follow_async_link(__u32 cpu);
int follow_async_links(__u32 cpu);
int try_async_root(__u32 cpu, __u64 word);
int scan_async_block(__u32 cpu, __u64 first);
int find_async_objects_of(__u32 cpu);

/* The walk of the stack copies the words that are searched. */
static __always_inline void walk_with_awaiters(struct scratch *scratch, __u32 cpu)
{
	walk_user_stack(scratch, cpu);
	if (async_stacks)
		find_async_objects_of(cpu);
}

#endif
