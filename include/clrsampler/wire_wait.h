/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause OR Apache-2.0 */
/* Waits of threads, with what ended them. A part of wire.h. */
#ifndef CLRSAMPLER_WIRE_WAIT_H_
#define CLRSAMPLER_WIRE_WAIT_H_

#define WIRE_WAIT_HAS_STACK 1	    /* a WIRE_WAIT_STACK of the same time follows */
#define WIRE_WAIT_HAS_WAKER_STACK 2 /* a WIRE_WAKER_STACK of the time woken_ns was to come before this */
#define WIRE_WAIT_THREAD_ENDED 4    /* the thread's last record: totals, and no wait */
#define WIRE_WAIT_WAKER_OUTSIDE 16  /* the agent's pid namespace does not show the waker: tgid and tid are 0 */
#define WIRE_WAIT_OPEN 8 /* the wait was not over when the tracing ended; weights 0: the thread was running */

/* A wait that is sent stands for this many / 256 at least. */
#define WIRE_WAIT_ONE 256

/*
 * A thread has waited and runs again. The end of its wait came after blocked_ns; until it had a CPU it took runnable_ns
 * more. Both parts are chosen each for itself, with a weight in 1 / WIRE_WAIT_ONE; 0: the part is not chosen. Totals
 * are the thread's, from the time that it was first seen: all that it did, sent or not, this wait included.
 */
struct wire_wait {
	struct wire_header header;
	__u32 tgid; /* as in struct wire_cpu_sample */
	__u32 tid;
	__u64 process_start_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 woken_ns; /* 0: nobody was seen to wake it */
	__u64 seen_ns;	/* when the thread was first seen, or began */
	__u64 total_cpu_ns;
	__u64 total_blocked_ns;
	__u64 total_runnable_ns;
	__u64 total_short_ns; /* of both: parts below the threshold */
	__u64 total_waits;
	__u32 waker_tgid; /* 0 with woken_ns: an interrupt of an idle CPU, or WIRE_WAIT_WAKER_OUTSIDE */
	__u32 waker_tid;
	__u32 blocked_weight;
	__u32 runnable_weight;
	__u32 flags;   /* WIRE_WAIT_* */
	__s32 syscall; /* its number; -1: none, as in a page fault, or not known */
	char comm[16]; /* of the thread */
	char waker_comm[16];
};

/* The state of a thread when the tracing ended: read from the iterator over tasks. */
#define WIRE_OPEN_KERNEL_FRAMES 32
struct wire_open_wait {
	struct wire_wait wait; /* totals with the part that goes on; header: time_ns alone */
	__u64 ip, sp, fp, lr;  /* as in struct wire_cpu_sample; ip 0: there are no user registers */
	__u64 general[WIRE_GENERAL_REGISTERS];
	__u64 switches; /* how often it has left a CPU or got one: while that stays the same it has not run */
	__u32 reserved;
	__u32 kernel_frames;
	__u64 kernel[WIRE_OPEN_KERNEL_FRAMES]; /* addresses, leaf first */
};

#if defined(__cplusplus)
static_assert(sizeof(struct wire_wait) == 160, "wire_wait");
static_assert(sizeof(struct wire_open_wait) == 592, "wire_open_wait");
#else
_Static_assert(sizeof(struct wire_wait) == 160, "wire_wait");
_Static_assert(sizeof(struct wire_open_wait) == 592, "wire_open_wait");
#endif

#endif
