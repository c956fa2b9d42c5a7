/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stack of a thread that runs into a hook. The walk and its format are the sampler's. */
#ifndef CLRSAMPLER_HOOK_STACK_BPF_H_
#define CLRSAMPLER_HOOK_STACK_BPF_H_

#include "async_objects.bpf.h"
#include "code_snapshot.bpf.h"
#include "runtime_hook.bpf.h"
#include "stack_record.bpf.h"
#include "user_stack.bpf.h"

extern const volatile __u32 first_hook_slot;

/* Where the walk begins. */
static __always_inline void set_registers(struct wire_cpu_sample *sample, struct user_registers *regs)
{
	sample->ip = REGISTERS_IP(regs);
	sample->sp = REGISTERS_SP(regs);
	sample->fp = REGISTERS_FP(regs);
	sample->lr = REGISTERS_LR(regs);
	COPY_GENERAL_REGISTERS(sample->general, regs);
}

/*
 * Walks the stack in the slot that the caller has taken, and sends it.
 */
static __always_inline void walk_and_send(__u32 slot, struct scratch *scratch)
{
	struct wire_cpu_sample *sample = &scratch->sample;
	__u64 bytes;

	find_transient_code(scratch);
	/* where an exception was thrown, the leaf is a method */
	if (may_be_transient(scratch, sample->ip))
		snapshot_code(slot, sample->ip);
	walk_with_awaiters(scratch, slot);
	find_returns(scratch, (void *)bpf_get_current_task());
	bytes = close_stack(scratch);
	/* the hit is counted already; user space sees that its stack is missing */
	bpf_ringbuf_output(&hook_records, sample, bytes, wake_by_fill(bytes));
}

/* The events themselves go first: these have 88 to 192 bytes each, a stack some KiB. */
static __always_inline bool has_room_for_stack(void)
{
	return bpf_ringbuf_query(&hook_records, BPF_RB_AVAIL_DATA) <
	       bpf_ringbuf_query(&hook_records, BPF_RB_RING_SIZE) / 2;
}

/*
 * For what follows the record of a hit; who takes it sets its owner to 0 again. Where hooks may be preempted, another
 * thread may come by on this CPU while its slot is in use. It goes without a stack then: 0.
 */
static __always_inline struct scratch *take_hook_slot(__u16 kind, __u64 now, struct hook_caller *caller)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *scratch = scratch_of(first_hook_slot + cpu);
	struct wire_cpu_sample *sample;

	if (!scratch || scratch->owner)
		return 0;
	scratch->owner = caller->tid;
	sample = &scratch->sample;
	__builtin_memset(sample, 0, sizeof(*sample));
	scratch->used = 0;
	sample->header.kind = kind;
	sample->header.cpu = cpu;
	sample->header.time_ns = now;
	sample->tgid = caller->tgid;
	sample->tid = caller->tid;
	sample->process_start_ns = caller->process_start_ns;
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	return scratch;
}

/* The stack of the hook itself. */
static __always_inline void send_hook_stack(struct user_registers *regs, __u16 kind, __u64 now,
					    struct hook_caller *caller)
{
	struct scratch *scratch = take_hook_slot(kind, now, caller);

	if (!scratch)
		return;
	set_registers(&scratch->sample, regs);
	walk_and_send(first_hook_slot + scratch->sample.header.cpu, scratch);
	scratch->owner = 0;
}

#endif
