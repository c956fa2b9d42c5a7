// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shared_maps.bpf.h"

/*
 * Samples of all CPUs, in one order. User space sets the size before load: by default two seconds of samples of 4 KiB
 * from each CPU (capture/sampler.h), longer than any stall of the reader.
 */
struct ring_map samples SEC(".maps");

/*
 * The records of hooks. How often they are hit is the targets' choice, so no number of hits may take a sample's room.
 * User space sets the size before load: 4 MiB, which is 240 ms of 70,000 compilations a second at 240 bytes each, 16
 * MiB where all compilations come with stacks, one page without hooks.
 */
struct ring_map hook_records SEC(".maps");

/* One value per CPU, so that counting needs no atomics; 96 bytes each. */
struct counters_map counters SEC(".maps");

/*
 * Thread group ids in the agent's pid namespace, with a filter only (else user space makes it one entry long). 8192:
 * those given by the user and their descendants that live at the same time. Preallocated (some 0.6 MB), because kernels
 * refuse other hash maps to perf_event programs. When it is full user space is told so by the failing update.
 */
struct tracked_map tracked_processes SEC(".maps");

/*
 * Transient code by tgid, as user space finds it in .NET processes, and what hooks in the JIT must know to name dynamic
 * methods. 1024 processes, 0.1 MB, preallocated for the same reason. When it is full user space is told, and dynamic
 * methods of further processes are named only where two readings agree.
 */
struct transient_map transient_code SEC(".maps");

/*
 * The heaps of that code by page: 16384 pages are 1 GB of it, 1.6 MB here. A process that compiles and frees 35,000
 * methods a second had 43 heaps after three seconds, most of one page. When it is full as with the one above.
 */
struct transient_heaps_map transient_heaps SEC(".maps");

/*
 * By tgid, of .NET processes, where async callers are wanted (else user space makes it one entry long). 1024 processes,
 * 0.1 MB, preallocated as the others. When it is full user space is told, and stacks of further processes stay as they
 * are.
 */
struct async_layouts_map async_layouts SEC(".maps");

/*
 * By tgid, of processes whose threads publish the trace and the span that they work for. 1024 processes, 0.1 MB,
 * preallocated as the others. When it is full user space is told, and samples of further processes have no ids.
 */
struct thread_contexts_map thread_contexts SEC(".maps");

/*
 * By tgid, of those that are hooked. 1024 processes, 0.1 MB; one that is pushed out by others, who have done something
 * more recently, begins anew.
 */
struct event_rate_limit_map event_rate_limits SEC(".maps");

/*
 * Hits of processes that are not followed, so that user space knows what they pay. 2048: of 1024 processes both kinds,
 * 0.2 MB; one that is pushed out is counted from 0 on. Where all are followed user space makes it one entry long.
 */
struct hook_others_map hook_others SEC(".maps");

/*
 * By thread group in the initial pid namespace. 1024 processes, 0.1 MB; one that is pushed out begins its sum anew, and
 * user space sees that it fell. One entry without hooks of allocations, as the two below.
 */
struct allocation_sum_map allocation_sums SEC(".maps");

/* By thread in the initial pid namespace. 8192 threads, 0.8 MB; the type of one that is pushed out is not seen. */
struct allocation_pending_map allocations_pending SEC(".maps");

/* 24 bytes a CPU. */
struct sampling_pace_map allocation_paces SEC(".maps");

/*
 * The limits of one process: so many hits a second on average, and so many at once; 0: no limit. A stack counts as
 * WEIGHT_OF_STACK.
 */
const volatile __u32 hook_hits_a_second = 0;
const volatile __u32 hook_hits_at_once = 0;
/*
 * Hits of any process were lost. From then on event_rate_limits are looked up without a limit, too, since they say how
 * many are missing.
 */
volatile __u32 hook_hits_were_lost = 0;

/* Stacks of allocations are so many times fewer than the programs choose by themselves; at least 1. */
const volatile __u32 allocation_thinning = 1;

/* A power of two, a quarter of the hooks' ring. */
const volatile __u32 hook_wake_bytes = 256 << 10;

/* Indexed by CPU; user space sets max_entries to the number of possible CPUs, twice that if hooks take stacks. */
struct scratch_map scratch_by_cpu SEC(".maps");

char LICENSE[] SEC("license") = "Dual BSD/GPL";
