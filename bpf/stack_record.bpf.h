/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The end of a stack that was walked in a scratch. */
#ifndef CLRSAMPLER_STACK_RECORD_BPF_H_
#define CLRSAMPLER_STACK_RECORD_BPF_H_

#include "shared_maps.bpf.h"
#include <bpf/bpf_core_read.h>

/*
 * The returns that return probes took off the stack, or on arm64 out of the link register. Some are ours, on functions
 * that suspend a runtime. Others may stand on any function.
 */
static __always_inline void find_returns(struct scratch *scratch, struct task_struct *task)
{
	struct return_instance *call = NULL;
	__u32 count = 0;

	if (!bpf_core_field_exists(task->utask))
		return;
	call = BPF_CORE_READ(task, utask, return_instances);
	for (__u32 i = 0; call && i < WIRE_MAX_RETURNS; i++) {
		scratch->returns[i].at = BPF_CORE_READ(call, stack);
		scratch->returns[i].address = BPF_CORE_READ(call, orig_ret_vaddr);
		call = BPF_CORE_READ(call, next);
		count = i + 1;
	}
	scratch->sample.flags |= count << WIRE_SAMPLE_RETURNS_SHIFT;
}

/*
 * Appends snapshots, replaced return addresses, async objects and ids of a trace, and sets the size; returns the bytes
 * of the whole record.
 */
static __always_inline __u64 close_stack(struct scratch *scratch)
{
	struct wire_cpu_sample *sample = &scratch->sample;
	__u64 used = scratch->used, bytes;

	barrier_var(used);
	if (sample->snapshots && used <= SCRATCH_WORDS - WIRE_MAX_SNAPSHOTS * SNAPSHOT_WORDS) {
		/* all eight, of which only those that are there are sent */
		bpf_probe_read_kernel(&scratch->words[used], sizeof(scratch->snapshots), scratch->snapshots);
		used += sample->snapshots * SNAPSHOT_WORDS;
	} else {
		sample->snapshots = 0;
	}
	barrier_var(used);
	if (sample->flags >> WIRE_SAMPLE_RETURNS_SHIFT & WIRE_SAMPLE_RETURNS_MASK &&
	    used <= SCRATCH_WORDS - WIRE_MAX_RETURNS * RETURN_WORDS) {
		bpf_probe_read_kernel(&scratch->words[used], sizeof(scratch->returns), scratch->returns);
		used += (sample->flags >> WIRE_SAMPLE_RETURNS_SHIFT & WIRE_SAMPLE_RETURNS_MASK) * RETURN_WORDS;
	}
	barrier_var(used);
	if (sample->flags >> WIRE_SAMPLE_ASYNC_SHIFT && used <= SCRATCH_WORDS - WIRE_MAX_ASYNC_OBJECTS * ASYNC_WORDS) {
		bpf_probe_read_kernel(&scratch->words[used], sizeof(scratch->async_objects), scratch->async_objects);
		used += (sample->flags >> WIRE_SAMPLE_ASYNC_SHIFT & WIRE_SAMPLE_ASYNC_MASK) * ASYNC_WORDS;
	} else {
		sample->flags &= (1u << WIRE_SAMPLE_ASYNC_SHIFT) - 1;
	}
	barrier_var(used);
	if ((sample->flags & WIRE_SAMPLE_TRACE) && used <= SCRATCH_WORDS - TRACE_WORDS) {
		bpf_probe_read_kernel(&scratch->words[used], sizeof(scratch->trace), &scratch->trace);
		used += TRACE_WORDS;
	} else {
		sample->flags &= ~WIRE_SAMPLE_TRACE;
	}
	bytes = used * sizeof(__u64);
	if (bytes > sizeof(scratch->words))
		bytes = sizeof(scratch->words);
	bytes += sizeof(*sample);
	sample->header.size = bytes;
	return bytes;
}

#endif
