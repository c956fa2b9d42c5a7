// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hooks where the collector reports that 100 KB more were allocated, or a large object. Where these are:
 * clr/hooks/allocation_search.h.
 *
 * Every hit adds to the sum of its process. Some are sent with their stacks: sampling_pace.bpf.h.
 *
 * The object's type is written only after the hit. So it is read at the next hit of the same thread: by then it is
 * there, and the object is where it was unless the runtime has stopped its threads meanwhile.
 */
#include "hook_stack.bpf.h"
#include "sampling_pace.bpf.h"

/* The thinning leaves a part of these stacks. Most hits are of 100 KB. */
#define STACKS_A_CPU                                                                                                   \
	((struct pace_limit){.window_ns = 10000000, .largest = 1 << 20, .sent = 4, .thinning = allocation_thinning})

extern const volatile __u32 allocation_thinning;

/* A hit of more is none of a runtime: 1 TB at once. Anybody may call the function, with any number. */
#define MOST_BYTES (1ull << 40)
/* A process's sum is told so often at least, although no stack of it is due. More often, a hundred programs would take
 * more than 5 % of the events that a host may report. */
#define SUM_TOLD_EVERY_NS 500000000

struct allocation {
	__u64 bytes;
	__u64 heap;
	__u64 object;
};

static __always_inline __u32 heap_of_generation(__u32 generation)
{
	return generation == 3 ? WIRE_HEAP_LARGE : generation == 4 ? WIRE_HEAP_PINNED : WIRE_HEAP_SMALL;
}

static __always_inline __u32 choose(__u64 bytes, __u64 now)
{
	__u32 zero = 0;
	struct sampling_pace *pace = bpf_map_lookup_elem(&allocation_paces, &zero);

	return pace ? choose_by_size(pace, bytes, STACKS_A_CPU, now) : WIRE_ALLOCATION_ONE;
}

/* The MethodTable of the object of the thread's record before; 0: it cannot be told any more. */
static __always_inline __u64 take_type_before(__u32 thread, struct wire_allocation_sum *sum, __u64 *time)
{
	struct allocation_pending *pending = bpf_map_lookup_elem(&allocations_pending, &thread);
	__u64 type = 0;

	if (!pending || !pending->object)
		return 0;
	if (sum->suspended_ns < pending->time_ns && bpf_probe_read_user(&type, sizeof(type), (void *)pending->object))
		type = 0;
	pending->object = 0;
	*time = pending->time_ns;
	return type;
}

static __always_inline void await_type(__u32 thread, __u64 object, __u64 now)
{
	struct allocation_pending pending = {.object = object, .time_ns = now};

	bpf_map_update_elem(&allocations_pending, &thread, &pending, BPF_ANY);
}

static __always_inline struct wire_allocation_sum *sum_of(struct hook_caller *caller)
{
	struct wire_allocation_sum *sum = bpf_map_lookup_elem(&allocation_sums, &caller->tgid);
	struct task_struct *task = (void *)bpf_get_current_task();
	struct wire_allocation_sum fresh = {.process_start_ns = caller->process_start_ns};

	/* An exec brings other memory, and what the program before has allocated is not this one's. */
	fresh.memory = (__u64)BPF_CORE_READ(task, mm);
	if (sum && sum->process_start_ns == caller->process_start_ns && sum->memory == fresh.memory)
		return sum;
	/* Whether threads were stopped before is not known: objects from before have no type. */
	fresh.suspended_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&allocation_sums, &caller->tgid, &fresh, BPF_ANY);
	return bpf_map_lookup_elem(&allocation_sums, &caller->tgid);
}

/* Adds the hit to its process's sum. 0: the sum has no place for it. */
static __always_inline struct wire_allocation_sum *sum_up(struct wire_counters *counts, struct hook_caller *caller,
							  const struct allocation *allocation, __u64 now)
{
	struct wire_allocation_sum *sum;

	if (allocation->bytes > MOST_BYTES) {
		counts->hook_rate_limited++;
		return NULL;
	}
	sum = sum_of(caller);
	if (!sum) { /* somebody else needed the room */
		was_not_sent(counts, caller);
		return NULL;
	}
	/* To be read behind the addition: before Linux 5.12 an addition does not say what was there. */
	__sync_fetch_and_add(&sum->bytes, allocation->bytes);
	__sync_fetch_and_add(&sum->hits, 1);
	sum->hit_ns = now;
	barrier();
	return sum;
}

static __always_inline void fill(struct wire_allocation *record, const struct hook_caller *caller,
				 const struct allocation *allocation, __u64 now)
{
	record->header.size = sizeof(*record);
	record->header.kind = WIRE_ALLOCATION;
	record->header.cpu = bpf_get_smp_processor_id();
	record->header.time_ns = now;
	record->tgid = caller->tgid;
	record->tid = caller->tid;
	record->process_start_ns = caller->process_start_ns;
	record->missed = caller->missed;
	record->bytes = allocation->bytes;
	record->object = allocation->object;
	record->heap = allocation->heap;
	__builtin_memset(record->comm, 0, sizeof(record->comm));
	bpf_get_current_comm(record->comm, sizeof(record->comm));
}

static __always_inline int allocated(struct user_registers *regs, struct allocation *allocation)
{
	struct wire_counters *counts = this_cpu_counters();
	__u64 now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid();
	struct hook_caller caller = {};
	struct wire_allocation *record;
	struct wire_allocation_sum *sum;
	__u64 sum_bytes, sum_hits, type_before, time_before = 0, wake = wake_by_fill(sizeof(*record));
	bool with_stack;
	__u32 weight;

	if (!counts || !hook_is_followed(counts, &caller, WIRE_PART_ALLOCATIONS))
		return 0;
	sum = sum_up(counts, &caller, allocation, now);
	if (!sum)
		return 0;
	sum_bytes = sum->bytes;
	sum_hits = sum->hits;
	type_before = take_type_before(id, sum, &time_before);
	weight = choose(allocation->bytes, now);
	if (!weight && !type_before && now - sum->told_ns < SUM_TOLD_EVERY_NS) {
		counts->hook_summed++;
		return 0;
	}
	/* Only what is sent counts: a program may allocate more often than it may collect and compile. */
	if (!within_rate_limit(&caller, now)) {
		counts->hook_rate_limited++;
		return 0;
	}
	with_stack = weight && has_room_for_stack() && within_rate_limit_for_stack(&caller);
	/* in the ring itself: on the BPF stack there is no room for it beside a walk */
	record = bpf_ringbuf_reserve(&hook_records, sizeof(*record), 0);
	if (!record) {
		was_not_sent(counts, &caller);
		return 0;
	}
	sum->told_ns = now;
	fill(record, &caller, allocation, now);
	record->type_before = type_before;
	record->time_before = time_before;
	record->total_bytes = sum_bytes;
	record->total_hits = sum_hits;
	record->weight = weight;
	record->has_stack = with_stack;
	bpf_ringbuf_submit(record, wake);
	counts->hook_sent++;
	if (weight && allocation->object)
		await_type(id, allocation->object, now);
	if (with_stack)
		send_hook_stack(regs, WIRE_ALLOCATION_STACK, now, &caller);
	return 0;
}

/*
 * SuspendEE is called: the runtime is about to stop its threads, objects may move, and others come to be where they
 * were. Nothing is sent; the sum of hits says it.
 */
SEC("?uprobe")
int hook_suspend_noted(struct user_registers *regs)
{
	struct wire_counters *counts = this_cpu_counters();
	struct hook_caller caller = {};
	struct wire_allocation_sum *sum;
	__u64 now = bpf_ktime_get_ns();

	if (!counts || !hook_is_followed(counts, &caller, WIRE_PART_ALLOCATIONS))
		return 0;
	counts->hook_summed++;
	sum = sum_of(&caller);
	if (!sum)
		return 0;
	sum->suspended_ns = now;
	__sync_fetch_and_add(&sum->hits, 1);
	return 0;
}

/* fire_etw_allocation_event(bytes, generation, object, size) */
SEC("?uprobe")
int hook_allocated(struct user_registers *regs)
{
	struct allocation allocation = {
	    .bytes = ARGUMENT_1(regs),
	    .heap = heap_of_generation(ARGUMENT_2(regs)),
	    .object = ARGUMENT_3(regs),
	};

	return allocated(regs, &allocation);
}

/* The same as a member of one of several heaps. */
SEC("?uprobe")
int hook_allocated_member(struct user_registers *regs)
{
	struct allocation allocation = {
	    .bytes = ARGUMENT_2(regs),
	    .heap = heap_of_generation(ARGUMENT_3(regs)),
	    .object = ARGUMENT_4(regs),
	};

	return allocated(regs, &allocation);
}

#if defined(__TARGET_ARCH_x86)
/* The barrier keeps the compiler from making one load of a computed place of all, which no verifier accepts. */
#define REGISTER_CASE(number, name)                                                                                    \
	case number:                                                                                                   \
		value = regs->name;                                                                                    \
		barrier_var(value);                                                                                    \
		break
static __always_inline __u64 register_by_number(struct user_registers *regs, __u32 number)
{
	__u64 value = 0;

	switch (number) {
		REGISTER_CASE(0, ax);
		REGISTER_CASE(1, dx);
		REGISTER_CASE(2, cx);
		REGISTER_CASE(3, bx);
		REGISTER_CASE(4, si);
		REGISTER_CASE(5, di);
		REGISTER_CASE(6, bp);
		REGISTER_CASE(7, sp);
		REGISTER_CASE(8, r8);
		REGISTER_CASE(9, r9);
		REGISTER_CASE(10, r10);
		REGISTER_CASE(11, r11);
		REGISTER_CASE(12, r12);
		REGISTER_CASE(13, r13);
		REGISTER_CASE(14, r14);
		REGISTER_CASE(15, r15);
	}
	return value;
}
#undef REGISTER_CASE
#else
static __always_inline __u64 register_by_number(struct user_registers *regs, __u32 number)
{
	__u64 value = 0;

	if (number > 30)
		return 0;
	/* by a helper, since the verifier lets no program look into a context by a variable */
	bpf_probe_read_kernel(&value, sizeof(value), &regs->regs[number]);
	return value;
}
#endif

static __always_inline __u64 value_at(struct user_registers *regs, __u64 cookie, __u32 index)
{
	__u64 place = cookie >> index * WIRE_PLACE_BITS & ((1 << WIRE_PLACE_BITS) - 1);
	__s64 number = (__s64)(place << (64 - WIRE_PLACE_NUMBER_BITS)) >> (64 - WIRE_PLACE_NUMBER_BITS);
	__u64 word = 0;

	switch (place >> WIRE_PLACE_NUMBER_BITS) {
	case WIRE_PLACE_REGISTER:
		return register_by_number(regs, number);
	case WIRE_PLACE_FRAME:
		if (bpf_probe_read_user(&word, sizeof(word), (void *)(REGISTERS_FP(regs) + number)))
			return 0;
		return word;
	case WIRE_PLACE_CONSTANT:
		return number;
	default:
		return 0;
	}
}

/* Inside of a function; the cookie says where the facts are. */
SEC("?uprobe")
int hook_allocated_inside(struct user_registers *regs)
{
	__u64 cookie = bpf_get_attach_cookie(regs);
	__u64 heap_place = cookie >> (WIRE_PLACE_BITS + WIRE_PLACE_NUMBER_BITS) & 3;
	struct allocation allocation;

	allocation.bytes = value_at(regs, cookie, 0);
	allocation.heap = heap_place == WIRE_PLACE_NONE ? WIRE_HEAP_UNKNOWN : value_at(regs, cookie, 1) & 3;
	allocation.object = value_at(regs, cookie, 2);
	return allocated(regs, &allocation);
}
