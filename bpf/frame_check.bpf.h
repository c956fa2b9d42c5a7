/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether words of a stack look like a frame: a saved frame pointer with a return address above it. Nothing is read. */
#ifndef CLRSAMPLER_FRAME_CHECK_BPF_H_
#define CLRSAMPLER_FRAME_CHECK_BPF_H_

#include "kernel_types.bpf.h"
#include <clrsampler/wire.h>

/* The largest plausible frame. Managed stacks are 1.5 MB by default, main threads' 8 MiB. */
#define MAX_FRAME_BYTES (8 << 20)

/* Reading tells what the addresses can't: a page that is not there ends the walk. */
static __always_inline int judge_frame(__u64 frame, __u64 end_of_last)
{
	if (!frame)
		return WIRE_STOP_END;
	if (frame < end_of_last || (frame & 7) || frame - end_of_last > MAX_FRAME_BYTES ||
	    frame > WIRE_FRAME_ADDRESS_MASK)
		return WIRE_STOP_BAD_FP;
	return 0;
}

/* No return address on any machine. Bits that pointer authentication on arm64 leaves are above the mask. */
static __always_inline int is_no_code(__u64 address)
{
#if defined(__TARGET_ARCH_x86)
	return address < 0x10000 || address > WIRE_FRAME_ADDRESS_MASK;
#else
	return (address & WIRE_FRAME_ADDRESS_MASK) < 0x10000;
#endif
}

/* Whether what lies at `frame` is data, to which a frame pointer happens to point that is used for something else. */
static __always_inline int is_no_frame(__u64 saved, __u64 address, __u64 frame, __u64 last)
{
#if !defined(__TARGET_ARCH_x86)
	if (!address) /* the outermost frame */
		return 0;
#endif
	if (is_no_code(address))
		return 1;
	if (saved < frame || saved - frame > MAX_FRAME_BYTES)
		saved = frame;
	return address >= last && address < saved + 4096; /* a pointer into the stack */
}

/*
 * Whether {frame pointer, return address} at `at` look like a frame's, seen from a stack that ends at `last`. Code lies
 * in the first 4 GB or among the mappings, far above; numbers and pointers into the stack do not pass for it.
 */
static __always_inline int looks_like_frame(const __u64 pair[2], __u64 at, __u64 last)
{
	__u64 code = pair[1] & WIRE_FRAME_ADDRESS_MASK;

	if (pair[0] <= at || pair[0] - at > MAX_FRAME_BYTES || (pair[0] & 7) || is_no_code(pair[1]))
		return 0;
	return (code < 1ull << 32 || code > 1ull << 40) && code - last > 2 * MAX_FRAME_BYTES;
}

#endif /* CLRSAMPLER_FRAME_CHECK_BPF_H_ */
