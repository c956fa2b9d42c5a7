// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "code_snapshot.bpf.h"
#include "frame_check.bpf.h"
#include "user_stack.bpf.h"
#include <bpf/bpf_core_read.h>

/*
 * Words of each gap that are sent. Managed code on x86-64 is often frameless, and the return addresses that the chain
 * skips lie in the gaps: 200 words for 40 such methods in a row. A longer gap sends half of them from each
 * of its ends, since it is long by large local variables of the callers at one end or the other.
 */
const volatile __u32 gap_words = 1024;
/* Words of the tail where the chain ended as it should, and where it broke (native code with data in rbp). */
const volatile __u32 tail_words = 32;
const volatile __u32 broken_tail_words = 512;
/* From so many words on, frames are sent without their gaps. */
const volatile __u32 word_limit = 4096;
const volatile __u32 max_frames = 512;

/*
 * Where a frame pointer may have been saved: within so many words (the 90th percentile of native frames that the
 * callers of ICU and OpenSSL stand behind), pointing up at most so far. A read costs 85 ns, so only some are tried.
 * Where none is found the next words are searched: ICU compiling a collation stands on more than 4 KB of frames without
 * a pointer.
 */
#define RESUME_WORDS 512
#define RESUME_BLOCK 32
#define RESUME_STRETCHES 3
#define MAX_RESUME_BYTES (64 << 10)
#define MAX_RESUME_TRIES 32
#define MAX_RESUMES 16

/*
 * From the last frame to the thread pointer of threads that end there: 2 KB with glibc, most of it thread-local
 * variables (of .NET 8.0.30 and 10.0.14 alike: 2016 bytes).
 */
#define MAX_START_BYTES 4096

static __always_inline int stop(struct scratch *scratch, int reason)
{
	scratch->sample.stop = reason;
	return 1;
}

/*
 * A read of user memory costs 85 ns however short it is, one of a whole window not twice as much: most frames of a
 * stack come from two or three windows. This one makes the window begin at `last`; returns 0 where that can't be.
 */
__attribute__((noinline)) int move_window(__u32 cpu, __u64 last)
{
	struct scratch *scratch = scratch_of(cpu);

	if (!scratch || scratch->window_broken || (last & 7))
		return 0;
	scratch->window_begin = last;
	if (!bpf_probe_read_user(scratch->window, WINDOW_WORDS * 8, (void *)last))
		return 1;
	scratch->window_begin = 0;
	scratch->window_broken = 1; /* near the top of the stack: frame by frame from here */
	return 0;
}

/* Copies `count` gap words and the frame out of the window to words[used + 1]; returns 0 where that can't be. */
__attribute__((noinline)) int copy_from_window(__u32 cpu, __u64 last, __u64 frame, __u64 used, __u64 count)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 from, at;

	if (!scratch || !scratch->window_begin)
		return 0;
	from = (last - scratch->window_begin) / 8;
	at = (frame - scratch->window_begin) / 8;
	barrier_var(from); /* else clang checks other registers than it uses */
	barrier_var(at);
	barrier_var(used);
	barrier_var(count);
	if (from >= WINDOW_WORDS || at >= WINDOW_WORDS - 1 || used >= SCRATCH_WORDS - WINDOW_BLOCK - 3 ||
	    count > WINDOW_BLOCK)
		return 0;
	/* always the whole block: that needs no loop, and what is too much is overwritten next */
	__builtin_memcpy(&scratch->words[used + 1], &scratch->window[from], WINDOW_BLOCK * 8);
	scratch->words[used + 1 + count] = scratch->window[at];
	scratch->words[used + 2 + count] = scratch->window[at + 1];
	return 1;
}

/* ... moving it there if need be. */
static __always_inline int read_from_window(__u32 cpu, __u64 last, __u64 frame, __u64 used, __u64 count)
{
	if (copy_from_window(cpu, last, frame, used, count))
		return 1;
	if (frame - last > (WINDOW_WORDS - 2) * 8 || count > WINDOW_BLOCK)
		return 0;
	return move_window(cpu, last) && copy_from_window(cpu, last, frame, used, count);
}

/*
 * Reads up to `limit` bytes of the gap and the frame; returns the number of gap bytes, or -1. A gap that can't be read
 * is left out.
 */
static __always_inline long read_frame(struct scratch *scratch, __u64 last, __u64 frame, __u64 used, __u64 limit)
{
	__u64 bytes = frame - last;

	barrier_var(limit); /* Linux 5.10 forgets what it knew of it before a call */
	if (limit > WIRE_MAX_GAP_WORDS * 8)
		return -1;
	if (bytes <= limit) { /* the gap and the frame are one piece: one read for both */
		bytes &= ~7ull;
		if (bytes <= WIRE_MAX_GAP_WORDS * 8 &&
		    !bpf_probe_read_user(&scratch->words[used + 1], bytes + 16, (void *)frame - bytes))
			return bytes;
	} else if (limit && !bpf_probe_read_user(&scratch->words[used + 1], limit, (void *)last)) {
		if (bpf_probe_read_user(&scratch->words[used + 1 + limit / 8], 16, (void *)frame))
			return -1;
		return limit;
	}
	return bpf_probe_read_user(&scratch->words[used + 1], 16, (void *)frame) ? -1 : 0;
}

/*
 * The end of this thread's frames: above it are a main thread's arguments, or another thread's thread-local variables.
 * It is far above the frames where a program made the stack for itself.
 */
__attribute__((noinline)) __u64 stack_top(__u32 cpu)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct scratch *scratch = scratch_of(cpu);
	__u64 end, main_top, top;

	if (!scratch)
		return 0;
	if (scratch->stack_top)
		return scratch->stack_top;
	end = scratch->end_of_last;
	main_top = BPF_CORE_READ(task, mm, start_stack);
	top = THREAD_POINTER(task);
	if (main_top - end < top - end)
		top = main_top;
	if (top - end > MAX_FRAME_BYTES)
		top = WIRE_FRAME_ADDRESS_MASK;
	scratch->stack_top = top;
	return top;
}

/*
 * Copies up to `bytes` of the stack from the end of the last frame on to words[used + 1]; returns how many. A read
 * gives all or nothing, and pages above the frames may be missing: the kernel leaves up to 8 KB between a main thread's
 * first frame and its environment that nobody ever touches. So what lies in the first page is asked for alone if need
 * be.
 */
__attribute__((noinline)) __u64 read_upwards(__u32 cpu, __u64 bytes)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 used, from, left;

	if (!scratch)
		return 0;
	used = scratch->used;
	from = scratch->end_of_last;
	left = stack_top(cpu) - from;
	if (bytes > left)
		bytes = left;
	if (used >= WIRE_MAX_KERNEL_FRAMES + WIRE_MAX_USER_WORDS + WIRE_MAX_GAP_WORDS)
		return 0;
	for (int i = 0; i < 2; i++) {
		bytes &= ~7ull;
		if (!bytes || bytes > WIRE_MAX_TAIL_WORDS * 8)
			return 0;
		if (!bpf_probe_read_user(&scratch->words[used + 1], bytes, (void *)from))
			return bytes;
		if (bytes <= 4096 - (from & 4095))
			return 0;
		bytes = 4096 - (from & 4095);
	}
	return 0;
}

/*
 * Whether the thread began behind the last frame. Then a zero there is the end of its chain and not data. A main thread
 * begins at the top of its stack, as far as the tail reaches. Any other one begins below its thread pointer, where
 * glibc and musl both have the data of the thread. On stacks that a program made for
 * itself the answer is wrong, and too much is sent.
 */
__attribute__((noinline)) int is_outermost(__u32 cpu)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct scratch *scratch = scratch_of(cpu);
	__u64 end;

	if (!scratch)
		return 1;
	end = scratch->end_of_last;
	if (scratch->outermost == end)
		return 1;
	if (BPF_CORE_READ(task, mm, start_stack) - end > tail_words * 8 && THREAD_POINTER(task) - end > MAX_START_BYTES)
		return 0;
	scratch->outermost = end;
	return 1;
}

/* Whether a frame lies at `at`; then the walk goes on there. */
__attribute__((noinline)) int try_resume(__u32 cpu, __u64 at)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 pair[2];

	if (!scratch || scratch->resume_tries >= MAX_RESUME_TRIES)
		return 0;
	scratch->resume_tries++;
	if (bpf_probe_read_user(pair, sizeof(pair), (void *)at) || !looks_like_frame(pair, at, scratch->end_of_last))
		return 0;
	scratch->frame = at;
	scratch->resumed = WIRE_FRAME_RESUMED;
	return 1;
}

/* Tries the words from `first` on, of those that resume_walk read; as that one, with -1 when there is nothing more to
 * try. */
__attribute__((noinline)) int resume_in_block(__u32 cpu, __u64 first)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 used, at;

	if (!scratch || first > RESUME_WORDS - RESUME_BLOCK)
		return -1;
	used = scratch->used;
	if (used >= WIRE_MAX_KERNEL_FRAMES + WIRE_MAX_USER_WORDS)
		return -1;
	at = scratch->end_of_last + first * 8;
	for (int i = 0; i < RESUME_BLOCK; i++, at += 8) {
		__u64 word = scratch->words[used + 1 + first + i];
		__u64 distance = word - at;

		/* up, not too far, and aligned as `at` is */
		if (distance - 1 >= MAX_RESUME_BYTES || (distance & 7))
			continue;
		if (try_resume(cpu, word))
			return 1;
	}
	return scratch->resume_tries >= MAX_RESUME_TRIES ? -1 : 0;
}

/*
 * Looks for a word that can be the saved frame pointer among the RESUME_WORDS behind the last frame. Returns 1 with
 * scratch->frame set, 0 where there is none, -1 where the stack can't be read that far.
 *
 * It goes in blocks, of which the verifier checks one. As one loop it took two thirds of the agent's time for loading.
 */
__attribute__((noinline)) int search_stretch(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 used, bytes;

	if (!scratch)
		return -1;
	used = scratch->used;
	scratch->resume_tries = 0;
	if ((scratch->end_of_last & 7) || used >= WIRE_MAX_KERNEL_FRAMES + WIRE_MAX_USER_WORDS)
		return -1;
	bytes = read_upwards(cpu, RESUME_WORDS * 8);
	for (__u32 i = 0; i < RESUME_WORDS / RESUME_BLOCK; i++) {
		int found;

		if ((i + 1) * RESUME_BLOCK * 8 > bytes)
			return -1;
		found = resume_in_block(cpu, i * RESUME_BLOCK);

		if (found)
			return found > 0;
	}
	return 0;
}

/* Sends the stretch that was just searched, which is in its place already, as words that belong to no frame. */
__attribute__((noinline)) int ship_stretch(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 used;

	if (!scratch)
		return 0;
	used = scratch->used;
	if (used >= WIRE_MAX_KERNEL_FRAMES + WIRE_MAX_USER_WORDS || used - scratch->first_user >= word_limit ||
	    scratch->sample.user_frames >= max_frames)
		return 0;
	scratch->words[used] = (scratch->end_of_last + (RESUME_WORDS - 2) * 8) |
			       (__u64)(RESUME_WORDS - 2) << WIRE_GAP_SHIFT | WIRE_FRAME_WORDS_ONLY | scratch->resumed;
	scratch->used = used + 1 + RESUME_WORDS;
	scratch->end_of_last += RESUME_WORDS * 8;
	scratch->sample.user_frames++;
	return 1;
}

/*
 * The frame pointer holds data: native code without frame pointers, which has saved its caller's in its own frame.
 * Looks for a word that can be it; returns 1 with scratch->frame set. The find decides only which words are sent: user
 * space follows the code's unwind data.
 */
__attribute__((noinline)) int resume_walk(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);

	if (!scratch || scratch->resumes >= MAX_RESUMES)
		return 0;
	scratch->resumes++;
	for (int i = 0; i < RESUME_STRETCHES; i++) {
		int found = search_stretch(cpu);

		if (found)
			return found > 0;
		/* A zero is data more seldom than the end of a stack that a program made for itself. */
		if (i == RESUME_STRETCHES - 1 || !scratch->frame || !ship_stretch(cpu))
			return 0;
	}
	return 0;
}

/*
 * Sends the first half of a gap that is longer than its limit, and leaves the walk at the beginning of the last half.
 * Returns 0 where that can't be.
 */
__attribute__((noinline)) int ship_first_half(__u32 cpu, __u64 half)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 used;

	if (!scratch || half < 2)
		return 0;
	barrier_var(half); /* else clang makes one comparison of both, of another register than it uses */
	if (half > WIRE_MAX_GAP_WORDS)
		return 0;
	used = scratch->used;
	if (used >= WIRE_MAX_KERNEL_FRAMES + WIRE_MAX_USER_WORDS)
		return 0;
	if (bpf_probe_read_user(&scratch->words[used + 1], half * 8, (void *)scratch->end_of_last))
		return 0;
	scratch->words[used] = (scratch->end_of_last + (half - 2) * 8) | (half - 2) << WIRE_GAP_SHIFT |
			       WIRE_FRAME_WORDS_ONLY | scratch->resumed;
	scratch->used = used + 1 + half;
	scratch->end_of_last = scratch->frame - half * 8;
	scratch->sample.user_frames++;
	return 1;
}

/* How many words of the next gap are sent. */
static __always_inline __u64 gap_limit(const struct scratch *scratch, __u64 used)
{
	__u64 limit = gap_words;

	if (used - scratch->first_user >= word_limit)
		limit = 0;
	if (limit > WIRE_MAX_GAP_WORDS)
		limit = WIRE_MAX_GAP_WORDS;
	return limit;
}

/* The frame with its gap of `count` words, which are in their places behind words[used], is the last one from here on.
 */
static __always_inline void take_frame(struct scratch *scratch, __u64 frame, __u64 used, __u64 count)
{
	scratch->words[used] = frame | count << WIRE_GAP_SHIFT | scratch->resumed;
	scratch->resumed = 0;
	scratch->frame = scratch->words[used + 1 + count];
	scratch->end_of_last = frame + 16;
	scratch->used = used + count + 3;
	scratch->sample.user_frames++;
}

__attribute__((noinline)) int walk_step(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 frame, last, used, limit, count, caller;
	int reason;

	if (!scratch)
		return 1;
	frame = scratch->frame;
	last = scratch->end_of_last;
	used = scratch->used;

	reason = judge_frame(frame, last);
	/* A zero is the end of a chain, but not of one that broke, or that never began, or in the middle of a stack. */
	if (reason &&
	    (reason == WIRE_STOP_BAD_FP || scratch->resumes || !scratch->sample.user_frames || !is_outermost(cpu))) {
		if (resume_walk(cpu))
			return 0;
		reason = frame || !scratch->sample.user_frames ? WIRE_STOP_BAD_FP : WIRE_STOP_END;
	}
	if (reason)
		return stop(scratch, reason);
	if (scratch->sample.user_frames >= max_frames || scratch->sample.user_frames >= WIRE_MAX_USER_FRAMES)
		return stop(scratch, WIRE_STOP_MAX_FRAMES);
	if (used >= WIRE_MAX_KERNEL_FRAMES + WIRE_MAX_USER_WORDS - 3)
		return stop(scratch, WIRE_STOP_MAX_WORDS);

	limit = gap_limit(scratch, used);
	count = (frame - last) / 8;
	if (count > limit && limit >= 4 && ship_first_half(cpu, limit / 2))
		return 0;
	if (count > limit)
		count = limit;
	if (!read_from_window(cpu, last, frame, used, count)) {
		long bytes = read_frame(scratch, last, frame, used, limit * 8);

		if (bytes < 0)
			return stop(scratch, WIRE_STOP_FAULT);
		count = (__u64)bytes / 8;
		if (count > WIRE_MAX_GAP_WORDS) /* can't be; for the verifier */
			return stop(scratch, WIRE_STOP_FAULT);
	}
	caller = scratch->words[used + 2 + count];
	if (is_no_frame(scratch->words[used + 1 + count], caller, frame, last)) {
		if (resume_walk(cpu))
			return 0;
		return stop(scratch, caller || !scratch->sample.user_frames ? WIRE_STOP_BAD_FP : WIRE_STOP_END);
	}
	take_frame(scratch, frame, used, count);
	caller &= WIRE_FRAME_ADDRESS_MASK;
	if (!caller) {
		if (!scratch->resumes)
			return stop(scratch, WIRE_STOP_END);
		scratch->frame = 0; /* what is there belongs to no chain */
		return 0;
	}
	if (may_be_transient(scratch, caller - 1)) /* inside the call */
		snapshot_code(cpu, caller - 1);
	return 0;
}

__attribute__((noinline)) int walk_steps(__u32 cpu)
{
	for (int i = 0; i < WALK_STEPS; i++) {
		if (walk_step(cpu))
			return 1;
	}
	return 0;
}

__attribute__((noinline)) int walk_tail(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 used, bytes;

	if (!scratch)
		return 1;
	bytes = scratch->sample.stop == WIRE_STOP_END && is_outermost(cpu) ? tail_words : broken_tail_words;
	if (scratch->sample.stop == WIRE_STOP_MAX_FRAMES || scratch->sample.stop == WIRE_STOP_MAX_WORDS)
		bytes = 0;
	bytes *= 8;
	if (bytes > WIRE_MAX_TAIL_WORDS * 8)
		bytes = WIRE_MAX_TAIL_WORDS * 8;
	bytes = read_upwards(cpu, bytes);
	used = scratch->used;
	if (used >= WIRE_MAX_KERNEL_FRAMES + WIRE_MAX_USER_WORDS + WIRE_MAX_GAP_WORDS)
		return 1;
	scratch->words[used] = bytes / 8 << WIRE_GAP_SHIFT;
	scratch->used = used + 1 + bytes / 8;
	return 0;
}
