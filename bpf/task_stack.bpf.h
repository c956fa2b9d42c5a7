/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Takes the stacks of the current task, of the kernel and of its user code. They begin at the registers that it entered
 * the kernel with.
 */
#ifndef CLRSAMPLER_TASK_STACK_BPF_H_
#define CLRSAMPLER_TASK_STACK_BPF_H_

#include "async_objects.bpf.h"
#include "code_snapshot.bpf.h"
#include "stack_record.bpf.h"
#include "user_stack.bpf.h"
#include <bpf/bpf_core_read.h>

extern const volatile __u32 kernel_stack_bytes;
extern const volatile __u8 use_task_pt_regs;

/* Constants, one per program, so that the compiler leaves out what is not needed. */
struct variant {
	bool in_namespace; /* the agent's pid namespace may not be the initial one */
	bool task_pt_regs; /* the kernel is known to have the helper (since 5.15, dd6e10fbd9fb) */
};

/* The user registers of a task that is in the kernel: on top of its kernel stack. */
static __always_inline void *saved_registers(struct task_struct *task, struct variant variant)
{
	if (variant.task_pt_regs || use_task_pt_regs)
		return (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return BPF_CORE_READ(task, stack) + kernel_stack_bytes - bpf_core_type_size(struct pt_regs);
}

static __always_inline void copy_registers(struct wire_cpu_sample *sample, const struct user_registers *regs)
{
	sample->ip = REGISTERS_IP(regs);
	sample->sp = REGISTERS_SP(regs);
	sample->fp = REGISTERS_FP(regs);
	sample->lr = REGISTERS_LR(regs);
	COPY_GENERAL_REGISTERS(sample->general, regs);
}

/* Fills in the registers of a task that is in the kernel; returns 0 or the reason why its stack can't be walked. */
static __always_inline int take_saved_registers(struct scratch *scratch, struct task_struct *task,
						struct variant variant)
{
	struct user_registers *regs = &scratch->regs;

	if (!BPF_CORE_READ(task, mm))
		return WIRE_STOP_NO_REGISTERS;
	if (bpf_probe_read_kernel(regs, sizeof(*regs), saved_registers(task, variant)))
		return WIRE_STOP_NO_REGISTERS;
	/* a wrong guess of the stack's size, or a thread of io_uring, which has no user code (ip 0) */
	if (!REGISTERS_USER_MODE(regs) || !REGISTERS_IP(regs) || (__s64)REGISTERS_IP(regs) < 0)
		return WIRE_STOP_NO_REGISTERS;
	copy_registers(&scratch->sample, regs);
	return REGISTERS_32BIT(regs) ? WIRE_STOP_32BIT : 0;
}

static __always_inline void take_kernel_stack(struct scratch *scratch, void *ctx)
{
	long bytes = bpf_get_stack(ctx, scratch->words, WIRE_MAX_KERNEL_FRAMES * sizeof(__u64), 0);

	if (bytes <= 0 || bytes > (long)(WIRE_MAX_KERNEL_FRAMES * sizeof(__u64)))
		return; /* sent without: the flag says that the kernel was running */
	scratch->sample.kernel_frames = bytes / sizeof(__u64);
	scratch->used = bytes / sizeof(__u64);
}

/* The user stack of a task whose registers were taken, with what user space needs to unwind and to name it. */
static __always_inline void take_user_stack(struct scratch *scratch, struct task_struct *task, __u32 cpu)
{
	__u64 ip = scratch->sample.ip;

	find_transient_code(scratch);
	if (may_be_transient(scratch, ip))
		snapshot_code(cpu, ip);
	if (scratch->transient_end)
		snapshot_callers_of_leaf(cpu);
	walk_with_awaiters(scratch, cpu);
	find_returns(scratch, task);
}

#endif
