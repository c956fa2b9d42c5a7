/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that our programs read: only the fields in use, the same text for x86-64 and arm64. CO-RE looks up
 * the offsets in the running kernel's BTF, so the order of fields means nothing here and a build needs no kernel.
 *
 * The registers at the end are user-space ABI (asm/ptrace.h) and are not relocated.
 */
#ifndef CLRSAMPLER_KERNEL_TYPES_BPF_H_
#define CLRSAMPLER_KERNEL_TYPES_BPF_H_

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#define RELOCATED __attribute__((preserve_access_index))

struct mm_struct {
	unsigned long start_stack; /* where the main thread's stack begins */
} RELOCATED;

/* The thread pointer, as it was when the thread last left a CPU: THREAD_POINTER. */
struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#else
	struct {
		unsigned long tp_value;
	} uw;
#endif
} RELOCATED;

struct ns_common {
	unsigned int inum;
} RELOCATED;

struct pid_namespace {
	struct ns_common ns;
} RELOCATED;

struct upid {
	int nr;
	struct pid_namespace *ns;
} RELOCATED;

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* level + 1 of them */
} RELOCATED;

/* include/linux/uprobes.h: calls of a task that will return to the trampoline, innermost first */
struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
} RELOCATED;

struct uprobe_task {
	unsigned long vaddr;	 /* of the instruction that is stepped over */
	unsigned long xol_vaddr; /* of its copy */
	struct return_instance *return_instances;
} RELOCATED;

/* A CPU's queue of tasks. */
struct rq {
	__u64 clock; /* nanoseconds of no known beginning; read anew when the scheduler has begun to switch */
} RELOCATED;

struct cfs_rq {
	struct rq *rq;
} RELOCATED;

struct sched_entity {
	struct cfs_rq *cfs_rq; /* with CONFIG_FAIR_GROUP_SCHED, of every task */
} RELOCATED;

/* Times by the clock of the queue that the task was in. Without CONFIG_SCHED_INFO there are none. */
struct sched_info {
	unsigned long pcount;		 /* how often it has got a CPU */
	unsigned long long run_delay;	 /* how long it was in a queue, up to when it last got a CPU */
	unsigned long long last_arrival; /* when it last got a CPU; 0: it has not */
	unsigned long long last_queued;	 /* since when it is in a queue and on no CPU; 0: it is not */
} RELOCATED;

struct task_struct {
	struct sched_entity se;
	struct sched_info sched_info;
	long state;	      /* before 5.14 */
	unsigned int __state; /* since then; 0: it runs or can run */
	int exit_state;	      /* not 0: it has ended, and nobody has asked for its exit status yet */
	unsigned int flags;
	void *stack;
	struct mm_struct *mm;
	int on_cpu; /* with CONFIG_SMP */
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	char comm[16];
	unsigned long nvcsw, nivcsw; /* how often it has left a CPU, by itself and not */
	__u64 start_time;	     /* CLOCK_MONOTONIC */
	__u64 start_boottime;	     /* real_start_time before 5.5 */
	struct uprobe_task *utask;
	struct thread_struct thread;
} RELOCATED;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} RELOCATED;

/* The context of an iterator over tasks. */
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task; /* NULL: that was the last one */
} RELOCATED;

/* include/linux/sched.h; the values of flags have not changed since 2.6 and 3.9 */
#define TASK_DEAD 0x80 /* of a task that leaves its CPU for the last time, since 4.14 */
#define PF_VCPU 0x00000001
#define PF_KTHREAD 0x00200000

#if defined(__TARGET_ARCH_x86)

#define THREAD_POINTER(task) BPF_CORE_READ(task, thread.fsbase)

struct user_registers {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* the kernel's own name, for its size: FRED (6.9) and arm64 append to it */
struct pt_regs {
	unsigned long ip;
} RELOCATED;

#define REGISTERS_IP(r) ((r)->ip)
#define MAX_INSTRUCTION_BYTES 15
#define REGISTERS_SP(r) ((r)->sp)
#define REGISTERS_FP(r) ((r)->bp)
#define REGISTERS_LR(r) 0
/* in the order of their DWARF numbers */
#define COPY_GENERAL_REGISTERS(to, r)                                                                                  \
	do {                                                                                                           \
		(to)[0] = (r)->ax, (to)[1] = (r)->dx, (to)[2] = (r)->cx, (to)[3] = (r)->bx;                            \
		(to)[4] = (r)->si, (to)[5] = (r)->di, (to)[6] = (r)->bp, (to)[7] = (r)->sp;                            \
		(to)[8] = (r)->r8, (to)[9] = (r)->r9, (to)[10] = (r)->r10, (to)[11] = (r)->r11;                        \
		(to)[12] = (r)->r12, (to)[13] = (r)->r13, (to)[14] = (r)->r14, (to)[15] = (r)->r15;                    \
	} while (0)
#define REGISTERS_USER_MODE(r) (((r)->cs & 3) == 3)
#define REGISTERS_32BIT(r) ((r)->cs == 0x23) /* __USER32_CS */

#elif defined(__TARGET_ARCH_arm64)

#define THREAD_POINTER(task) BPF_CORE_READ(task, thread.uw.tp_value)

struct user_registers {
	__u64 regs[31], sp, pc, pstate;
};

struct pt_regs {
	__u64 pc;
	int syscallno; /* -1: none */
} RELOCATED;

#define REGISTERS_IP(r) ((r)->pc)
#define MAX_INSTRUCTION_BYTES 4
#define REGISTERS_SP(r) ((r)->sp)
#define REGISTERS_FP(r) ((r)->regs[29])
#define REGISTERS_LR(r) ((r)->regs[30])
#define COPY_GENERAL_REGISTERS(to, r)                                                                                  \
	do {                                                                                                           \
	} while (0)
#define REGISTERS_USER_MODE(r) (((r)->pstate & 0xf) == 0) /* EL0 */
#define REGISTERS_32BIT(r) (((r)->pstate & 0x10) != 0)	  /* AArch32 state */

#else
#error "x86-64 and arm64 only"
#endif

/* struct bpf_perf_event_data of asm/bpf_perf_event.h: what a perf_event program gets */
struct perf_event_context {
	struct user_registers regs;
	__u64 sample_period;
	__u64 addr;
};

#endif
