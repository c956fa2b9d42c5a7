// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hooks in the JIT compiler of a .NET runtime: compileMethod is called, and is done. Where these are, and what the
 * registers hold there: clr/hooks/hook_locator.h.
 */
#include "hook_stack.bpf.h"
#include "method_desc.bpf.h"

/*
 * Slots of scratch_by_cpu that are the hooks': a sample may interrupt a hook, so it must not find its slot half full.
 */
const volatile __u32 first_hook_slot = 0;

#if defined(__TARGET_ARCH_x86)
#define DONE_RESULT(r) ((__u32)(r)->ax)
#define DONE_INFO(r) ((r)->r15)
#define DONE_ENTRY_REGISTER(r) ((r)->bx)
#define DONE_BYTES(r) ((r)->r14)
#define FLAGS_FROM_FRAME (-64)
#define DONE_RESULT_ON_FRAME(r) DONE_RESULT(r)
#define DONE_BYTES_ON_FRAME(r) DONE_BYTES(r)
#define ENTRY_FROM_FRAME_ON_FRAME (-128)
#else
#define DONE_RESULT(r) ((__u32)(r)->regs[0])
#define DONE_INFO(r) ((r)->regs[21])
#define DONE_ENTRY_REGISTER(r) ((r)->regs[19])
#define DONE_BYTES(r) ((r)->regs[20])
#define FLAGS_FROM_FRAME (-32)
#define DONE_RESULT_ON_FRAME(r) ((__u32)(r)->regs[27])
#define DONE_BYTES_ON_FRAME(r) user_word((r)->regs[29] - 320)
#define ENTRY_FROM_FRAME_ON_FRAME (-312)
#endif
/* of CompileForm::kEntryOnFrame, on both machines */
#define FLAGS_FROM_FRAME_ON_FRAME (-80)

/* CORINFO_METHOD_INFO: src/coreclr/inc/corinfo.h, the same in .NET 8 to 11 */
#define INFO_METHOD 0
#define INFO_IL_BYTES 24

static __always_inline __u64 user_word(__u64 address)
{
	__u64 word = 0;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)address))
		return 0;
	return word;
}

static __always_inline __u32 user_half_word(__u64 address)
{
	__u32 word = 0;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)address))
		return 0;
	return word;
}

SEC("?uprobe")
int hook_compile(struct user_registers *regs)
{
	__u64 info = ARGUMENT_3(regs);

	return report(WIRE_HOOK_COMPILE, info, user_word(info + INFO_METHOD), REGISTERS_SP(regs), 0);
}

/* The facts that decide how much of a compilation is reported. */
struct compiled {
	__u64 time_ns;
	__u64 method_info;
	__u64 method;
	__u64 entry;
	__u64 flags;
	__u64 start_words[WIRE_START_WORDS];
};

static __always_inline void read_results(struct compiled *done, struct user_registers *regs, bool on_frame)
{
	__u64 frame = REGISTERS_FP(regs);

	done->method = user_word(done->method_info + INFO_METHOD);
	if (on_frame) {
		done->entry = user_word(user_word(frame + ENTRY_FROM_FRAME_ON_FRAME));
		done->flags = user_word(frame + FLAGS_FROM_FRAME_ON_FRAME);
	} else {
		done->entry = user_word(DONE_ENTRY_REGISTER(regs));
		done->flags = user_word(frame + FLAGS_FROM_FRAME);
	}
}

static __always_inline void read_start_words(struct compiled *done)
{
#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_user(&done->start_words[0], 16, (void *)(done->method_info + WIRE_START_PLACE_0 - 8));
	bpf_probe_read_user(&done->start_words[2], 16, (void *)(done->method_info + WIRE_START_PLACE_1 - 8));
#endif
}

/*
 * No sample of the process since this compilation began: nobody will ask what was compiled. Where no place on the stack
 * holds a time that may be its beginning, it may have begun at any time. The earlier of two errs on the safe side.
 */
static __always_inline bool was_not_sampled(struct compiled *done, struct wire_transient_code *code)
{
	__u64 now = done->time_ns, began = now;
	int i;

	for (i = 1; i < WIRE_START_WORDS; i += 2) {
		__u64 word = done->start_words[i];

		if (word < began && now - word < 1000000000)
			began = word;
	}
	return began < now && code->sampled_ns < began;
}

/*
 * The first method of a heap that user space has not heard of: it has to be told at once, since the method runs next,
 * and without the heap its samples have no snapshot. Wakes once a millisecond at most.
 */
static __always_inline __u64 wake_for_new_heap(struct compiled *done, __u32 tgid, struct wire_transient_code *code)
{
	struct wire_transient_page page = {.tgid = tgid, .page = done->entry >> WIRE_CODE_PAGE_SHIFT};

	if (page.page == code->compiled_page)
		return BPF_RB_NO_WAKEUP;
	if (bpf_map_lookup_elem(&transient_heaps, &page) || !is_dynamic(done->method, code)) {
		code->compiled_page = page.page;
		return BPF_RB_NO_WAKEUP;
	}
	if (done->time_ns - code->woken_ns < 1000000)
		return BPF_RB_NO_WAKEUP;
	code->woken_ns = done->time_ns;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline void fill_in(struct wire_compiled *record, struct user_registers *regs, struct compiled *done,
				    struct hook_caller *caller, bool on_frame, bool each)
{
	record->header.kind = WIRE_COMPILED;
	record->header.cpu = bpf_get_smp_processor_id();
	record->header.time_ns = done->time_ns;
	record->tgid = caller->tgid;
	record->tid = caller->tid;
	record->process_start_ns = caller->process_start_ns;
	record->method_info = done->method_info;
	record->method = done->method;
	record->entry = done->entry;
	record->flags = done->flags;
	record->bytes = each ? user_half_word(on_frame ? DONE_BYTES_ON_FRAME(regs) : DONE_BYTES(regs)) : 0;
	record->il_bytes = each ? user_half_word(done->method_info + INFO_IL_BYTES) : 0;
	record->result = on_frame ? DONE_RESULT_ON_FRAME(regs) : DONE_RESULT(regs);
	record->missed = caller->missed;
	__builtin_memcpy(record->start_words, done->start_words, sizeof(record->start_words));
	__builtin_memset(record->comm, 0, sizeof(record->comm));
	if (each)
		bpf_get_current_comm(record->comm, sizeof(record->comm));
}

/*
 * `each`: user space reports each compilation. Else what nobody will read is not fetched: 1 us of 2.3. Written in the
 * ring itself: on the BPF stack there is no room for it beside a walk (512 bytes in all until Linux 6.6).
 */
static __always_inline bool report_compiled(struct user_registers *regs, __u64 now, struct wire_counters *counts,
					    struct hook_caller *caller, bool on_frame, bool each)
{
	struct wire_transient_code *code = bpf_map_lookup_elem(&transient_code, &caller->tgid);
	struct compiled done = {.time_ns = now, .method_info = DONE_INFO(regs)};
	struct wire_compiled *record;
	__u64 wake = wake_by_fill(sizeof(*record)), name = 0;

	read_results(&done, regs, on_frame);
	read_start_words(&done);
	if (code) {
		/* Dynamic methods may be gone when user space comes to look, their memory used again. */
		if ((each || !was_not_sampled(&done, code)) && is_dynamic(done.method, code))
			name = user_word(done.method + code->dynamic_name);
		wake |= wake_for_new_heap(&done, caller->tgid, code);
	}
	if (name) {
		record = bpf_ringbuf_reserve(&hook_records, sizeof(*record), 0);
		if (!record)
			goto lost;
		fill_in(record, regs, &done, caller, on_frame, each);
		record->header.size = sizeof(*record);
		__builtin_memset(record->name, 0, sizeof(record->name));
		if (bpf_probe_read_user_str(record->name, sizeof(record->name), (void *)name) < 0)
			record->name[0] = 0;
	} else {
		record = bpf_ringbuf_reserve(&hook_records, WIRE_COMPILED_WITHOUT_NAME, 0);
		if (!record)
			goto lost;
		fill_in(record, regs, &done, caller, on_frame, each);
		record->header.size = WIRE_COMPILED_WITHOUT_NAME;
	}
	bpf_ringbuf_submit(record, wake);
	counts->hook_sent++;
	return true;
lost:
	was_not_sent(counts, caller);
	return false;
}

static __always_inline int compiled(struct user_registers *regs, bool on_frame)
{
	struct wire_counters *counts = this_cpu_counters();
	struct hook_caller caller = {};
	__u64 now = bpf_ktime_get_ns();

	if (counts && hook_is_hit(counts, &caller, now, WIRE_PART_COMPILATIONS))
		report_compiled(regs, now, counts, &caller, on_frame, false);
	return 0;
}

SEC("?uprobe")
int hook_compiled(struct user_registers *regs)
{
	return compiled(regs, false);
}

SEC("?uprobe")
int hook_compiled_on_frame(struct user_registers *regs)
{
	return compiled(regs, true);
}

/* The same with the stack, of which the compilation was a part. */
static __always_inline int compiled_with_stack(struct user_registers *regs, bool on_frame)
{
	struct wire_counters *counts = this_cpu_counters();
	struct hook_caller caller = {};
	__u64 now = bpf_ktime_get_ns();

	if (!counts || !hook_is_hit(counts, &caller, now, WIRE_PART_COMPILATIONS) ||
	    !report_compiled(regs, now, counts, &caller, on_frame, true))
		return 0;
	if (has_room_for_stack() && within_rate_limit_for_stack(&caller)) /* user space counts those that have none */
		send_hook_stack(regs, WIRE_COMPILED_STACK, now, &caller);
	return 0;
}

SEC("?uprobe")
int hook_compiled_with_stack(struct user_registers *regs)
{
	return compiled_with_stack(regs, false);
}

SEC("?uprobe")
int hook_compiled_on_frame_with_stack(struct user_registers *regs)
{
	return compiled_with_stack(regs, true);
}
