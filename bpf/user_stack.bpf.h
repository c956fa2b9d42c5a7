/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk of a user stack by frame pointer; the format of what it leaves is struct wire_cpu_sample's. */
#ifndef CLRSAMPLER_USER_STACK_BPF_H_
#define CLRSAMPLER_USER_STACK_BPF_H_

#include "shared_maps.bpf.h"

/*
 * All three are global functions, which the verifier checks once each and not once per call. One step inlined into a
 * loop of 512 exceeds the million instructions that it accepts, and a plain loop of 1024 calls still costs each start
 * of the agent 10 ms. They find their state in the scratch of `cpu`.
 *
 * walk_step: one frame. Appends its gap, saved frame pointer and return address; returns 0 to go on, else sample.stop
 * is set. walk_steps: up to WALK_STEPS of them; returns as walk_step. walk_tail: after the last step, appends the tail.
 */
#define WALK_STEPS 32
int walk_step(__u32 cpu);
int walk_steps(__u32 cpu);
int walk_tail(__u32 cpu);
int try_resume(__u32 cpu, __u64 at);
int resume_in_block(__u32 cpu, __u64 first);
__u64 stack_top(__u32 cpu);
__u64 read_upwards(__u32 cpu, __u64 bytes);
int is_outermost(__u32 cpu);
int search_stretch(__u32 cpu);
int ship_stretch(__u32 cpu);
int resume_walk(__u32 cpu);
int ship_first_half(__u32 cpu, __u64 half);

/* Walks from sample.sp and sample.fp, appending to words. */
static __always_inline void walk_user_stack(struct scratch *scratch, __u32 cpu)
{
	scratch->frame = scratch->sample.fp;
	scratch->end_of_last = scratch->sample.sp;
	scratch->first_user = scratch->used;
	scratch->window_begin = 0;
	scratch->window_broken = 0;
	scratch->resumed = 0;
	scratch->resumes = 0;
	scratch->outermost = 0;
	scratch->stack_top = 0;
	for (int i = 0; i <= WIRE_MAX_USER_FRAMES / WALK_STEPS; i++) { /* the last one meets max_frames */
		if (walk_steps(cpu))
			break;
	}
	walk_tail(cpu);
	scratch->sample.user_words = scratch->used - scratch->first_user;
}

#endif
