// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The CPU sampler. It runs at each tick of a cpu-clock event. It sends the running thread, the kernel's stack and the
 * user's.
 * Every hit ends in exactly one of struct wire_counters' counts. A sample whose stack could not be walked is sent with
 * the reason, since the time was spent.
 *
 * User space loads one of the two programs at the end. The first is for nearly all hosts; the second is for kernels
 * without bpf_task_pt_regs (before 5.15) and for an agent in a pid namespace of its own. They are two because each
 * kernel type that a loaded program names costs a search of the kernel's BTF, 1 ms of each start.
 */
#include "task_stack.bpf.h"
#include "trace_context.bpf.h"
#include "tracked.bpf.h"

const volatile __u32 pid_namespace_inode = 0;
const volatile __u8 filter_processes = 0;
const volatile __u8 follow_children = 0;
const volatile __u32 wake_bytes = 256 << 10;	    /* data in the ring of samples at which the reader is woken */
const volatile __u32 kernel_stack_bytes = 16 << 10; /* THREAD_SIZE, for kernels without bpf_task_pt_regs */
const volatile __u8 use_task_pt_regs = 0;	    /* of the second program: the kernel has it */

/* Fills in the user registers; returns 0 or the reason why the stack can't be walked. */
static __always_inline int find_registers(struct scratch *scratch, struct perf_event_context *ctx,
					  struct task_struct *task, struct variant variant)
{
	if (!(scratch->sample.flags & WIRE_SAMPLE_IN_KERNEL)) {
		scratch->sample.ip = REGISTERS_IP(&ctx->regs);
		scratch->sample.sp = REGISTERS_SP(&ctx->regs);
		scratch->sample.fp = REGISTERS_FP(&ctx->regs);
		scratch->sample.lr = REGISTERS_LR(&ctx->regs);
		COPY_GENERAL_REGISTERS(scratch->sample.general, &ctx->regs);
		return REGISTERS_32BIT(&ctx->regs) ? WIRE_STOP_32BIT : 0;
	}
	return take_saved_registers(scratch, task, variant);
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

static __always_inline void send(struct scratch *scratch, struct wire_counters *counts)
{
	struct wire_cpu_sample *sample = &scratch->sample;
	__u64 bytes = close_stack(scratch), flags = BPF_RB_NO_WAKEUP;

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
			take_user_stack(scratch, task, cpu);
			if (threads_publish)
				read_trace_context(cpu);
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
