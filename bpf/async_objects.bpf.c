// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The awaiters of what runs: the objects that lead from a resumed async method to the methods that await it.
 *
 * A resumed state machine has its box on the stack. A method that the runtime made async is resumed by a dispatcher,
 * which has the method's task there and the next continuation. Words of the stack that point to such objects are the
 * roots, and from each the chain of awaiters is followed. All links are read within the sample, while the thread stands
 * still. No collection can end meanwhile, so none has moved what the thread holds. User space judges the copies later,
 * since it knows all types, and leaves out what was copied in vain.
 *
 * All that is read belongs to the target and may be anything.
 */
#include "async_objects.bpf.h"

const volatile __u8 async_stacks = 0;

#define LINK_STEPS 60 /* of one root */
#define SCAN_BLOCK 32
#define SCAN_BLOCKS 128		     /* 4096 words: as many as a stack has, unless more are asked for */
#define MAX_STACK_BYTES (8ull << 20) /* pointers into the stack are no objects */
#define TASK_ENDED 0x1600000	     /* m_stateFlags: ran to completion, failed, or canceled */
#define LOWEST_ADDRESS (64ull << 10) /* vm.mmap_min_addr */
#if defined(__TARGET_ARCH_x86)
#define HIGHEST_ADDRESS (1ull << 47)
#else
#define HIGHEST_ADDRESS (1ull << 48)
#endif

static __always_inline bool may_be_pointer(__u64 word)
{
	return !(word & 7) && word >= LOWEST_ADDRESS && word < HIGHEST_ADDRESS;
}

static __always_inline __u32 tried_slot(__u64 word)
{
	return (word >> 3 ^ word >> 9) & (ASYNC_TRIED - 1);
}

/* Most words are no pointers, lead into the stack, or were met before. */
static __always_inline bool is_worth_a_try(struct scratch *scratch, __u64 word)
{
	__u32 slot = tried_slot(word);

	if (!may_be_pointer(word) || word - scratch->sample.sp < MAX_STACK_BYTES || scratch->async.tried[slot] == word)
		return false;
	scratch->async.tried[slot] = word;
	return true;
}

static __always_inline __u32 row_of_type(struct wire_async_layouts *layout, __u64 method_table)
{
	__u32 flags = 0;

	if (!may_be_pointer(method_table) || bpf_probe_read_user(&flags, sizeof(flags), (void *)(method_table + 8)))
		return ~0u;
	return flags >> (layout->tasks.row_shift & 31);
}

/*
 * The row of an object's type in the metadata of its assembly; 0: this is no object. A type that the runtime has made
 * has the row of Continuation, if it derives from that class.
 */
__attribute__((noinline)) int async_row_of(__u32 cpu, __u64 object)
{
	struct scratch *scratch = scratch_of(cpu);
	struct wire_runtime_async_layout *runtime;
	__u64 method_table = 0, parent = 0;
	__u32 row;

	if (!scratch || bpf_probe_read_user(&method_table, sizeof(method_table), (void *)object))
		return 0;
	runtime = &scratch->async.layout.runtime;
	row = row_of_type(&scratch->async.layout, method_table);
	if (row == ~0u)
		return 0;
	if (row || !runtime->task_row ||
	    bpf_probe_read_user(&parent, sizeof(parent), (void *)(method_table + runtime->parent_link)))
		return row;
	return row_of_type(&scratch->async.layout, parent) == runtime->continuation_rows[0]
		   ? runtime->continuation_rows[0]
		   : 0;
}

/* Appends the object; returns its place, -1: it is there already, there is no room, or it can't be read. */
__attribute__((noinline)) int copy_async_object(__u32 cpu, __u64 object)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 count;

	if (!scratch)
		return -1;
	count = scratch->async.count;
	if (count >= WIRE_MAX_ASYNC_OBJECTS)
		return -1;
	for (__u32 i = 0; i < WIRE_MAX_ASYNC_OBJECTS; i++) {
		if (i < count && (scratch->async_objects[i].address & ~(__u64)WIRE_ASYNC_MARKS) == object)
			return -1;
	}
	barrier_var(count);
	if (count >= WIRE_MAX_ASYNC_OBJECTS) /* for the verifier, which has forgotten */
		return -1;
	if (bpf_probe_read_user(scratch->async_objects[count].words, sizeof(scratch->async_objects[count].words),
				(void *)object))
		return -1;
	scratch->async_objects[count].address = object;
	scratch->async.count = count + 1;
	return count;
}

static __always_inline __u64 word_at(struct wire_async_object *object, __u32 offset)
{
	__u32 word = offset / 8;

	barrier_var(word);
	return word < WIRE_ASYNC_WORDS ? object->words[word] : 0;
}

static __always_inline bool is_row_of_continuation(struct wire_runtime_async_layout *runtime, __u32 row)
{
	return row && (row == runtime->continuation_rows[0] || row == runtime->continuation_rows[1] ||
		       row == runtime->continuation_rows[2] || row == runtime->continuation_rows[3]);
}

/* Finds what the copied object leads to. */
__attribute__((noinline)) int leave_async_object(__u32 cpu, __u32 at)
{
	struct scratch *scratch = scratch_of(cpu);
	struct wire_runtime_async_layout *runtime;
	struct wire_async_layout *layout;
	struct wire_async_object *object;
	struct async_walk *walk;
	__u64 info, owner;
	__u32 row, bytes = 0;

	if (!scratch || at >= WIRE_MAX_ASYNC_OBJECTS)
		return 0;
	walk = &scratch->async;
	layout = &walk->layout.tasks;
	runtime = &walk->layout.runtime;
	object = &scratch->async_objects[at];
	row = async_row_of(cpu, object->address & ~(__u64)WIRE_ASYNC_MARKS);
	if (row == layout->action_row) {
		walk->next = word_at(object, layout->action_link);
	} else if (row == layout->await_rows[0] || row == layout->await_rows[1] || row == layout->await_rows[2]) {
		walk->next = word_at(object, layout->await_link);
	} else if (is_row_of_continuation(runtime, row)) {
		walk->next = word_at(object, runtime->next_link);
		/* One that is no method may say to which task its chain belongs. */
		owner = word_at(object, runtime->owner_link);
		if (row != runtime->continuation_rows[0] && !walk->after &&
		    (__u32)async_row_of(cpu, owner) == runtime->task_row)
			walk->after = owner;
		info = word_at(object, runtime->info_link);
		object->address |= WIRE_ASYNC_CONTINUATION;
		if (!may_be_pointer(info) || bpf_probe_read_user(&object->words[WIRE_ASYNC_SUSPENDED_AT], sizeof(__u64),
								 (void *)(info + runtime->suspended_at)))
			object->words[WIRE_ASYNC_SUSPENDED_AT] = 0;
	} else if (row && row == runtime->task_row) {
		walk->next = word_at(object, runtime->state_link);
		walk->after = word_at(object, layout->task_link);
	} else {
		/* Where it is no task at all, what lies behind the object is not its own. */
		walk->next = 0;
		if (!bpf_probe_read_user(&bytes, sizeof(bytes), (void *)(object->words[0] + 4)) &&
		    bytes >= layout->task_link + 16)
			walk->next = word_at(object, layout->task_link);
	}
	return 0;
}

/* One step from object to object; returns not 0 at the end. */
__attribute__((noinline)) int follow_async_link(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	struct async_walk *walk;
	__u32 at;

	if (!scratch)
		return 1;
	walk = &scratch->async;
	if (!may_be_pointer(walk->next)) {
		walk->next = walk->after;
		walk->after = 0;
		if (!may_be_pointer(walk->next))
			return 1;
	}
	at = copy_async_object(cpu, walk->next);
	walk->next = 0;
	if (at >= WIRE_MAX_ASYNC_OBJECTS)
		return !walk->after;
	leave_async_object(cpu, at);
	return 0;
}

__attribute__((noinline)) int follow_async_links(__u32 cpu)
{
	for (int i = 0; i < LINK_STEPS; i++) {
		if (follow_async_link(cpu))
			return 0;
	}
	return 0;
}

/* Whether enough roots were found. If `word` points to one, it is copied with what it leads to. */
__attribute__((noinline)) int try_async_root(__u32 cpu, __u64 word)
{
	struct scratch *scratch = scratch_of(cpu);
	struct wire_runtime_async_layout *runtime;
	struct wire_async_layout *layout;
	struct async_walk *walk;
	__u32 row, at, flags = 0;

	if (!scratch)
		return 0;
	walk = &scratch->async;
	layout = &walk->layout.tasks;
	runtime = &walk->layout.runtime;
	row = async_row_of(cpu, word);
	if (!row || (row != layout->box_rows[0] && row != layout->box_rows[1] && row != layout->box_rows[2] &&
		     row != runtime->task_row && !is_row_of_continuation(runtime, row)))
		return 0;
	/*
	 * In the info of a dispatcher the task stands behind the continuation. Any other one was left behind. The walk
	 * may take the info of a dispatcher within another one for a frame, since it begins with a pointer into the
	 * stack. The head of the next frame is between the two words then.
	 */
	if (is_row_of_continuation(runtime, row) && (__u32)async_row_of(cpu, walk->above[0]) != runtime->task_row &&
	    (__u32)async_row_of(cpu, walk->above[1]) != runtime->task_row) {
		walk->tried[tried_slot(word)] = 0; /* another word may be it */
		return 0;
	}
	/* A machine that has ended runs nothing any more. Its box would take the room of one that does. */
	if (!is_row_of_continuation(runtime, row) &&
	    bpf_probe_read_user(&flags, sizeof(flags), (void *)(word + layout->task_flags)))
		return 0;
	if ((flags & TASK_ENDED) && row != runtime->task_row)
		return 0;
	at = copy_async_object(cpu, word);
	if (at >= WIRE_MAX_ASYNC_OBJECTS)
		return 0;
	scratch->async_objects[at].address |= WIRE_ASYNC_ROOT;
	walk->roots++;
	walk->after = 0;
	/* The task of methods that have ended proves what its dispatcher's frame is. Nothing awaits it any more. */
	if (flags & TASK_ENDED)
		return walk->roots >= WIRE_MAX_ASYNC_ROOTS;
	leave_async_object(cpu, at);
	follow_async_links(cpu);
	return walk->roots >= WIRE_MAX_ASYNC_ROOTS;
}

/*
 * Tries words of the stack, from the outermost one but `first` inwards; returns not 0 where there is nothing more to
 * try. Innermost there are frames of native code, whose unused words still hold what earlier calls have left there.
 * Boxes of other methods are among that, and they must not take the room of the ones that matter.
 */
__attribute__((noinline)) int scan_async_block(__u32 cpu, __u64 first)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 begin, end, word;

	if (!scratch)
		return 1;
	begin = scratch->first_user;
	end = scratch->used;
	for (__u32 i = 0; i < SCAN_BLOCK; i++) {
		__u64 now = end - 1 - first - i; /* wraps around where there is no such word */

		barrier_var(now); /* else clang checks other registers than it uses */
		if (now >= SCRATCH_WORDS || now < begin)
			return 1;
		word = scratch->words[now];
		if (is_worth_a_try(scratch, word) && try_async_root(cpu, word))
			return 1;
		scratch->async.above[1] = scratch->async.above[0];
		scratch->async.above[0] = word;
	}
	return 0;
}

__attribute__((noinline)) int find_async_objects_of(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	struct wire_async_layouts *layout;
	__u32 tgid;

	if (!scratch)
		return 0;
	tgid = scratch->sample.tgid;
	layout = bpf_map_lookup_elem(&async_layouts, &tgid);
	if (!layout)
		return 0;
	__builtin_memset(&scratch->async, 0, sizeof(scratch->async));
	scratch->async.layout = *layout;
	/* A pointer that no function has saved is in a register still. */
	for (int i = 0; i < WIRE_GENERAL_REGISTERS; i++) {
		__u64 word = scratch->sample.general[i];

		if (is_worth_a_try(scratch, word) && try_async_root(cpu, word))
			break;
	}
	for (__u32 i = 0; i < SCAN_BLOCKS; i++) {
		if (scan_async_block(cpu, i * SCAN_BLOCK))
			break;
	}
	scratch->sample.flags |= (scratch->async.count & WIRE_SAMPLE_ASYNC_MASK) << WIRE_SAMPLE_ASYNC_SHIFT;
	return 0;
}
