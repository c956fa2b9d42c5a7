/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Snapshots of transient code: which method stood at an address when the sample was taken. Dynamic methods live for
 * microseconds and their memory is used again at once. A reader that looks later finds another one there.
 */
#ifndef CLRSAMPLER_CODE_SNAPSHOT_BPF_H_
#define CLRSAMPLER_CODE_SNAPSHOT_BPF_H_

#include "shared_maps.bpf.h"

/* A global function, checked once by the verifier. Appends to scratch.snapshots of `cpu`; 0 always. */
int snapshot_code(__u32 cpu, __u64 address);

/*
 * A leaf may have made no frame yet, or may make none. Then its return address is in the link register or in one of the
 * first words of the stack, and not in the chain of frames. A snapshot of another address that lies there is as true.
 * Call it before the walk, whose window it uses. Returns 0.
 */
int snapshot_callers_of_leaf(__u32 cpu);

/* Before the walk: whether the process has transient code at all. */
static __always_inline void find_transient_code(struct scratch *scratch)
{
	__u32 tgid = scratch->sample.tgid;
	struct wire_transient_code *code = bpf_map_lookup_elem(&transient_code, &tgid);

	scratch->transient_begin = 0;
	scratch->transient_end = 0;
	if (!code)
		return;
	code->sampled_ns = scratch->sample.header.time_ns;
	scratch->transient_begin = code->begin;
	scratch->transient_end = code->end;
}

static __always_inline bool may_be_transient(struct scratch *scratch, __u64 address)
{
	return address >= scratch->transient_begin && address < scratch->transient_end;
}

#endif
