/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that several programs use, defined once in shared_maps.bpf.c. */
#ifndef CLRSAMPLER_SHARED_MAPS_BPF_H_
#define CLRSAMPLER_SHARED_MAPS_BPF_H_

#include "kernel_types.bpf.h"
#include "clrsampler/wire.h"
#include "clrsampler/wire_allocation_sum.h"
#include "clrsampler/wire_runtime_async.h"
#include <bpf/bpf_helpers.h>

#define SNAPSHOT_WORDS (sizeof(struct wire_code_snapshot) / 8)
#define RETURN_WORDS (sizeof(struct wire_replaced_return) / 8)
#define ASYNC_WORDS (sizeof(struct wire_async_object) / 8)
#define TRACE_WORDS (sizeof(struct wire_trace_context) / 8)
#define ASYNC_TRIED 64
#define SCRATCH_WORDS                                                                                                  \
	(WIRE_MAX_KERNEL_FRAMES + WIRE_MAX_USER_WORDS + WIRE_MAX_GAP_WORDS + WIRE_MAX_TAIL_WORDS + 8 +                 \
	 WIRE_MAX_SNAPSHOTS * SNAPSHOT_WORDS + WIRE_MAX_RETURNS * RETURN_WORDS +                                       \
	 WIRE_MAX_ASYNC_OBJECTS * ASYNC_WORDS + TRACE_WORDS)

#define WINDOW_WORDS 256
#define WINDOW_BLOCK 32

/* Where the search for objects of async code is (async_objects.bpf.c). */
struct async_walk {
	struct wire_async_layouts layout; /* of the process */
	__u64 count;			  /* of async_objects */
	__u64 roots;			  /* of these */
	__u64 next;			  /* the object to be copied next; 0: none */
	__u64 after;			  /* the one to be copied behind a chain of continuations; 0: none */
	__u64 above[2];			  /* the words behind the one at hand, nearest first */
	__u64 tried[ASYNC_TRIED];	  /* words that were looked at, by a hash of theirs */
};

/*
 * Where one sample is put together: 112 KB, which neither the BPF stack (512 bytes) nor a per-CPU map value (32 KiB)
 * can hold. The walk keeps its state here too: what is in memory the verifier forgets between two steps, so that it
 * checks one step and not a thousand.
 *
 * A CPU has one slot for samples: their program runs in a timer interrupt, which does not interrupt itself. A program
 * in NMI context (hardware events) would need slots of its own; hooks that take stacks, which a sample may interrupt,
 * have them (jit_hooks.bpf.c).
 */
struct scratch {
	struct user_registers regs;
	__u64 owner;	     /* the thread whose hook uses this slot; 0: none, or a sample */
	__u64 frame;	     /* address of the next frame, not read yet */
	__u64 end_of_last;   /* end of the frame before it; at first sp */
	__u64 used;	     /* of words */
	__u64 first_user;    /* of words */
	__u64 window_begin;  /* the stack memory that window holds a copy of; 0: nothing */
	__u64 window_broken; /* a window could not be read: no more tries for this stack */
	__u64 resumed;	     /* WIRE_FRAME_RESUMED: the next frame is where a broken chain goes on */
	__u64 resumes;	     /* how often this stack's chain broke */
	__u64 resume_tries;  /* words that were followed the last time */
	__u64 outermost;     /* an end_of_last behind which the thread began; 0: none so far */
	__u64 stack_top;     /* what is above the stack; 0: nobody has asked */
	__u64 window[WINDOW_WORDS + WINDOW_BLOCK]; /* copied in blocks, the last of which may begin at its end */
	__u64 transient_begin, transient_end;	   /* around all transient code of the process; 0, 0: none */
	struct wire_transient_heap heap;	   /* that the address at hand lies in */
	struct wire_code_snapshot snapshot;	   /* the one that is being made */
	struct wire_code_snapshot snapshots[WIRE_MAX_SNAPSHOTS];
	struct wire_replaced_return returns[WIRE_MAX_RETURNS];
	struct async_walk async;
	struct wire_async_object async_objects[WIRE_MAX_ASYNC_OBJECTS];
	struct wire_trace_context trace;
	struct wire_cpu_sample sample; /* followed by its words: sent as one piece */
	__u64 words[SCRATCH_WORDS];
};

struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};
extern struct ring_map samples SEC(".maps");
extern struct ring_map hook_records SEC(".maps");

struct counters_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wire_counters);
};
extern struct counters_map counters SEC(".maps");

struct tracked_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u8);
};
extern struct tracked_map tracked_processes SEC(".maps");

struct transient_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct wire_transient_code);
};
extern struct transient_map transient_code SEC(".maps");

struct transient_heaps_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct wire_transient_page);
	__type(value, struct wire_transient_heap);
};
extern struct transient_heaps_map transient_heaps SEC(".maps");

struct async_layouts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct wire_async_layouts);
};
extern struct async_layouts_map async_layouts SEC(".maps");

struct thread_contexts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct wire_thread_variable);
};
extern struct thread_contexts_map thread_contexts SEC(".maps");

struct event_rate_limit_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct wire_event_rate_limit);
};
extern struct event_rate_limit_map event_rate_limits SEC(".maps");

struct hook_others_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WIRE_MAX_HOOK_OTHERS);
	__type(key, struct wire_hook_other);
	__type(value, __u64);
};
extern struct hook_others_map hook_others SEC(".maps");

/* By thread group id as user space sees it. */
struct allocation_sum_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct wire_allocation_sum);
};
extern struct allocation_sum_map allocation_sums SEC(".maps");

/* The object of a thread's last record, whose type is not known yet. */
struct allocation_pending {
	__u64 object; /* 0: nothing is awaited */
	__u64 time_ns;
};

struct allocation_pending_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct allocation_pending);
};
extern struct allocation_pending_map allocations_pending SEC(".maps");

/* How much comes on a CPU: sampling_pace.bpf.h. */
struct sampling_pace {
	__u64 window_began_ns;
	__u64 sum;	   /* of the sizes in this window so far */
	__u64 size_of_one; /* that one which is sent stands for, by the window before */
};

struct sampling_pace_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sampling_pace);
};
extern struct sampling_pace_map allocation_paces SEC(".maps");

struct scratch_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
};
extern struct scratch_map scratch_by_cpu SEC(".maps");

static __always_inline struct wire_counters *this_cpu_counters(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

static __always_inline struct scratch *scratch_of(__u32 cpu)
{
	return bpf_map_lookup_elem(&scratch_by_cpu, &cpu);
}

#endif
