/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause OR Apache-2.0 */
/* A value of the map of sums of allocations, one for each process. Records tell it: struct wire_allocation. */
#ifndef CLRSAMPLER_WIRE_ALLOCATION_SUM_H_
#define CLRSAMPLER_WIRE_ALLOCATION_SUM_H_

#include "clrsampler/wire.h"

/* The bytes that a process has allocated since it was first seen. */
struct wire_allocation_sum {
	__u64 process_start_ns;
	__u64 bytes;
	__u64 hits;	    /* of all probes */
	__u64 suspended_ns; /* when its runtime last began to stop its threads */
	__u64 memory;	    /* the mm of its program */
	__u64 told_ns;	    /* when user space last heard of it */
	__u64 hit_ns;	    /* when it last grew */
};

#endif
