// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The CPU sampler: runs at each tick of a cpu-clock event and sends who is running, the kernel's stack and the user's.
 * Every hit ends in exactly one of struct wire_counters' counts. A sample whose stack could not be walked is sent with
 * the reason: the time was spent, whoever can say where.
 *
 * User space loads one of the two programs at the end. The first is for nearly all hosts; the second is for kernels
 * without bpf_task_pt_regs (before 5.15) and for an agent in a pid namespace of its own. They are two because each
 * kernel type that a loaded program names costs a search of the kernel's BTF, 1 ms of each start.
 */
#include "code_witness.bpf.h"
#include "tracked.bpf.h"
#include "user_stack.bpf.h"
#include <bpf/bpf_core_read.h>

const volatile __u32 pid_namespace_inode = 0;
const volatile __u8 filter_processes = 0;
const volatile __u8 follow_children = 0;
const volatile __u32 wake_bytes = 256 << 10;	    /* data in the ring of samples at which the reader is woken */
const volatile __u32 kernel_stack_bytes = 16 << 10; /* THREAD_SIZE, for kernels without bpf_task_pt_regs */
const volatile __u8 use_task_pt_regs = 0;	    /* of the second program: the kernel has it */

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

/* Fills in the user registers; returns 0 or the reason why the stack can't be walked. */
static __always_inline int find_registers(struct scratch *scratch, struct perf_event_context *ctx,
					  struct task_struct *task, struct variant variant)
{
	struct user_registers *regs = &scratch->regs;

	if (!(scratch->sample.flags & WIRE_SAMPLE_IN_KERNEL)) {
		scratch->sample.ip = REGISTERS_IP(&ctx->regs);
		scratch->sample.sp = REGISTERS_SP(&ctx->regs);
		scratch->sample.fp = REGISTERS_FP(&ctx->regs);
		scratch->sample.lr = REGISTERS_LR(&ctx->regs);
		COPY_GENERAL_REGISTERS(scratch->sample.general, &ctx->regs);
		return REGISTERS_32BIT(&ctx->regs) ? WIRE_STOP_32BIT : 0;
	}
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

static __always_inline void take_kernel_stack(struct scratch *scratch, struct perf_event_context *ctx)
{
	long bytes = bpf_get_stack(ctx, scratch->words, WIRE_MAX_KERNEL_FRAMES * sizeof(__u64), 0);

	if (bytes <= 0 || bytes > (long)(WIRE_MAX_KERNEL_FRAMES * sizeof(__u64)))
		return; /* sent without: the flag says that the kernel was running */
	scratch->sample.kernel_frames = bytes / sizeof(__u64);
	scratch->used = bytes / sizeof(__u64);
}

/*
 * An instruction under a probe that the kernel does not emulate runs as a copy: on arm64 all that touch memory or sp.
 * The leaf is where the copy was taken from.
 */
static __always_inline void leave_copy(struct scratch *scratch, struct task_struct *task)
{
	struct uprobe_task *probed;
	__u64 distance;

	if (!bpf_core_field_exists(task->utask))
		return;
	probed = BPF_CORE_READ(task, utask);
	if (!probed)
		return;
	distance = scratch->sample.ip - BPF_CORE_READ(probed, xol_vaddr);
	if (distance <= MAX_INSTRUCTION_BYTES)
		scratch->sample.ip = BPF_CORE_READ(probed, vaddr) + distance;
}

/*
 * What return probes took off the stack, or on arm64 out of the link register: ours, which are on functions that
 * suspend a runtime, and those of others, which may stand on any.
 */
static __always_inline void find_returns(struct scratch *scratch, struct task_struct *task)
{
	struct return_instance *call = NULL;
	__u32 count = 0;

	if (!bpf_core_field_exists(task->utask))
		return;
	call = BPF_CORE_READ(task, utask, return_instances);
	for (__u32 i = 0; call && i < WIRE_MAX_RETURNS; i++) {
		scratch->returns[i].at = BPF_CORE_READ(call, stack);
		scratch->returns[i].address = BPF_CORE_READ(call, orig_ret_vaddr);
		call = BPF_CORE_READ(call, next);
		count = i + 1;
	}
	scratch->sample.flags |= count << WIRE_SAMPLE_RETURNS_SHIFT;
}

static __always_inline void send(struct scratch *scratch, struct wire_counters *counts)
{
	struct wire_cpu_sample *sample = &scratch->sample;
	__u64 used = scratch->used;
	__u64 bytes, flags = BPF_RB_NO_WAKEUP;

	barrier_var(used);
	if (sample->witnesses && used <= SCRATCH_WORDS - WIRE_MAX_WITNESSES * WITNESS_WORDS) {
		/* all eight, of which only those that are there are sent */
		bpf_probe_read_kernel(&scratch->words[used], sizeof(scratch->witnesses), scratch->witnesses);
		used += sample->witnesses * WITNESS_WORDS;
	} else {
		sample->witnesses = 0;
	}
	barrier_var(used);
	if (sample->flags >> WIRE_SAMPLE_RETURNS_SHIFT && used <= SCRATCH_WORDS - WIRE_MAX_RETURNS * RETURN_WORDS) {
		bpf_probe_read_kernel(&scratch->words[used], sizeof(scratch->returns), scratch->returns);
		used += (sample->flags >> WIRE_SAMPLE_RETURNS_SHIFT & WIRE_SAMPLE_RETURNS_MASK) * RETURN_WORDS;
	}
	bytes = used * sizeof(__u64);
	if (bytes > sizeof(scratch->words))
		bytes = sizeof(scratch->words);
	bytes += sizeof(*sample);
	sample->header.size = bytes;
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) + bytes >= wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&samples, sample, bytes, flags))
		counts->drops[WIRE_DROP_RING_FULL]++;
	else
		counts->sent++;
}

static __always_inline int take_sample(struct perf_event_context *ctx, struct variant variant)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 cpu = bpf_get_smp_processor_id();
	struct wire_counters *counts = this_cpu_counters();
	struct task_struct *task, *leader;
	struct wire_cpu_sample *sample;
	struct scratch *scratch;
	__u32 task_flags;

	if (!counts) /* can't be: the map has the one entry */
		return 0;
	counts->hits++;
	if (!(__u32)bpf_get_current_pid_tgid()) {
		counts->idle++;
		return 0;
	}
	scratch = scratch_of(cpu);
	if (!scratch) {
		counts->drops[WIRE_DROP_NO_SCRATCH]++;
		return 0;
	}
	sample = &scratch->sample;
	__builtin_memset(sample, 0, sizeof(*sample));
	scratch->used = 0;

	task = (void *)bpf_get_current_task();
	leader = BPF_CORE_READ(task, group_leader);
	identify(task, leader, sample, variant.in_namespace && pid_namespace_inode);
	if (filter_processes && !is_tracked(leader, sample->tgid, variant.in_namespace && pid_namespace_inode)) {
		counts->filtered++;
		return 0;
	}

	sample->header.kind = WIRE_CPU_SAMPLE;
	sample->header.cpu = cpu;
	sample->header.time_ns = now;
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	task_flags = BPF_CORE_READ(task, flags);
	if (task_flags & PF_VCPU)
		sample->flags |= WIRE_SAMPLE_VCPU;
	if (!REGISTERS_USER_MODE(&ctx->regs)) {
		sample->flags |= WIRE_SAMPLE_IN_KERNEL;
		take_kernel_stack(scratch, ctx);
	}
	if (task_flags & PF_KTHREAD) {
		sample->flags |= WIRE_SAMPLE_KTHREAD;
	} else {
		sample->stop = find_registers(scratch, ctx, task, variant);
		if (!sample->stop) {
			leave_copy(scratch, task);
			find_transient_code(scratch);
			if (may_be_transient(scratch, sample->ip))
				witness_code(cpu, sample->ip);
			walk_user_stack(scratch, cpu);
			find_returns(scratch, task);
		}
	}
	send(scratch, counts);
	return 0;
}

SEC("?perf_event")
int cpu_sample(struct perf_event_context *ctx)
{
	return take_sample(ctx, (struct variant){.in_namespace = false, .task_pt_regs = true});
}

SEC("?perf_event")
int cpu_sample_general(struct perf_event_context *ctx)
{
	return take_sample(ctx, (struct variant){.in_namespace = true, .task_pt_regs = false});
}
