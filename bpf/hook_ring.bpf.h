/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring of what hooks and the scheduler's tracepoints report. */
#ifndef CLRSAMPLER_HOOK_RING_BPF_H_
#define CLRSAMPLER_HOOK_RING_BPF_H_

#include "shared_maps.bpf.h"

extern const volatile __u32 hook_wake_bytes;

/*
 * Wakes the reader with the record that makes another quarter of the ring full, and not with each one after it: a wake
 * costs an interrupt.
 */
static __always_inline __u64 wake_by_fill(__u64 bytes)
{
	__u64 waiting = bpf_ringbuf_query(&hook_records, BPF_RB_AVAIL_DATA);

	return (waiting ^ (waiting + bytes)) & hook_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

#endif
