/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses the events that are sent among those that each have a size: bytes, or nanoseconds. The larger one is, the
 * more likely it is sent, so that each that is sent stands for as much. They are chosen at random, so that no rhythm of
 * a program can meet a rhythm of ours; at low rates it is all of them.
 */
#ifndef CLRSAMPLER_SAMPLING_PACE_BPF_H_
#define CLRSAMPLER_SAMPLING_PACE_BPF_H_

#include "shared_maps.bpf.h"

/* The weight of an event that stands for itself alone: WIRE_ALLOCATION_ONE, WIRE_WAIT_ONE. */
#define PACE_ONE 256

/*
 * Constants: some `sent` / `thinning` events of one CPU in `window_ns`. Larger events are as likely to be sent as one
 * of size `largest`: all processes share a CPU's pace, and one alone must not hide the others.
 */
struct pace_limit {
	__u64 window_ns;
	__u64 largest;
	__u32 sent;
	__u32 thinning;
};

/*
 * How many events this one stands for, in 1 / PACE_ONE. 0: it is not sent. `pace` is that of the CPU. The rate is that
 * of the window before, or of what has come in this one if that is more.
 */
static __always_inline __u32 choose_by_size(struct sampling_pace *pace, __u64 size, struct pace_limit limit, __u64 now)
{
	__u64 passed, weight, measured, size_of_one;

	if (size > limit.largest)
		size = limit.largest;
	/* An event may be told later than it was. */
	passed = now > pace->window_began_ns ? now - pace->window_began_ns : 0;
	if (passed >= limit.window_ns) {
		/* It falls by half at most: probes that were detached come back to what they left. */
		measured = pace->sum / limit.sent * limit.thinning / (passed / limit.window_ns);
		pace->size_of_one = measured > pace->size_of_one / 2 ? measured : pace->size_of_one / 2;
		pace->sum = 0;
		pace->window_began_ns = now;
	}
	size_of_one = pace->sum / limit.sent * limit.thinning;
	if (size_of_one < pace->size_of_one)
		size_of_one = pace->size_of_one;
	pace->sum += size;
	if (!size || size_of_one <= size)
		return PACE_ONE;
	weight = size_of_one * PACE_ONE / size;
	if (weight > 0xffffffff)
		weight = 0xffffffff;
	return (__u64)bpf_get_prandom_u32() * weight >> 32 >= PACE_ONE ? 0 : weight;
}

#endif
