// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hooks where the first pass of an exception begins: a handler is about to be looked for. Where these are:
 * clr/hooks/exception_search.h.
 *
 * The stack that is sent is that of the method which threw, by the registers that the runtime has noted of it. The
 * runtime's search for a handler is not on it.
 */
#include "hook_stack.bpf.h"

/* Frames of the runtime between its hook and the method that threw: 8 of .NET 8. */
#define MAX_NATIVE_FRAMES 24

struct exception {
	__u64 object;
	/* Where the method that threw stands; at most one is known. */
	__u64 context; /* CONTEXT* */
	__u64 callee;  /* the frame record of what it has called */
	bool here;     /* neither, but the hook's own stack leads there */
	bool rethrown;
	bool at_fault; /* an instruction of the method itself has failed; else it has called what throws */
};

/* CONTEXT, src/coreclr/pal/inc/pal.h */
#if defined(__TARGET_ARCH_x86)
#define CONTEXT_FLAGS 0x30
#define CONTEXT_SP 0x98
#define CONTEXT_REGISTERS 0x78 /* rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15, rip */
#define CONTEXT_WORDS 17
#define CONTEXT_HAS_CONTROL 0x100001
/* From a return address into the call before it. */
#define BACK_INTO_CALL 1
#else
#define CONTEXT_FLAGS 0
#define CONTEXT_SP 0x100
#define CONTEXT_REGISTERS 0xf0 /* x29, x30, sp, pc */
#define CONTEXT_WORDS 4
#define CONTEXT_HAS_CONTROL 0x400001
#define BACK_INTO_CALL 4
#endif
#define CONTEXT_OF_SIGNAL 0x8000000

static __always_inline __u64 word_at(__u64 address)
{
	__u64 word = 0;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)address))
		return 0;
	return word;
}

static __always_inline __u8 byte_at(__u64 address)
{
	__u8 byte = 0;

	if (bpf_probe_read_user(&byte, sizeof(byte), (void *)address))
		return 0;
	return byte;
}

/*
 * Into scratch->regs; false: it holds no registers. By way of the words that the walk will fill: on the BPF stack there
 * is no room for them below it.
 */
static __always_inline bool read_registers(struct scratch *scratch, struct exception *exception)
{
	struct user_registers *regs = &scratch->regs;
	__u64 *words = scratch->words;
	__u32 flags = 0;

	if (!exception->context ||
	    bpf_probe_read_user(&flags, sizeof(flags), (void *)(exception->context + CONTEXT_FLAGS)) ||
	    (flags & CONTEXT_HAS_CONTROL) != CONTEXT_HAS_CONTROL ||
	    bpf_probe_read_user(words, CONTEXT_WORDS * sizeof(*words),
				(void *)(exception->context + CONTEXT_REGISTERS)))
		return false;
	if (flags & CONTEXT_OF_SIGNAL)
		exception->at_fault = true;
#if defined(__TARGET_ARCH_x86)
	regs->ax = words[0];
	regs->cx = words[1];
	regs->dx = words[2];
	regs->bx = words[3];
	regs->sp = words[4];
	regs->bp = words[5];
	regs->si = words[6];
	regs->di = words[7];
	regs->r8 = words[8];
	regs->r9 = words[9];
	regs->r10 = words[10];
	regs->r11 = words[11];
	regs->r12 = words[12];
	regs->r13 = words[13];
	regs->r14 = words[14];
	regs->r15 = words[15];
	regs->ip = words[16];
#else
	regs->regs[29] = words[0];
	regs->regs[30] = words[1];
	regs->sp = words[2];
	regs->pc = words[3];
#endif
	return true;
}

/* The registers that are known when a frame record is. */
static __always_inline bool return_registers(struct user_registers *regs, __u64 record)
{
	__u64 words[2];

	if (!record || bpf_probe_read_user(words, sizeof(words), (void *)record))
		return false;
	__builtin_memset(regs, 0, sizeof(*regs));
#if defined(__TARGET_ARCH_x86)
	regs->bp = words[0];
	regs->ip = words[1];
#else
	regs->regs[29] = words[0];
	regs->pc = words[1];
#endif
	regs->sp = record + sizeof(words);
	return true;
}

static __always_inline void send_thrower(struct user_registers *regs, struct exception *exception, __u64 now,
					 struct hook_caller *caller)
{
	struct scratch *scratch = take_hook_slot(WIRE_EXCEPTION_STACK, now, caller);

	if (!scratch)
		return;
	if (exception->here) {
		set_registers(&scratch->sample, regs);
		walk_and_send(first_hook_slot + scratch->sample.header.cpu, scratch);
	} else if (return_registers(&scratch->regs, exception->callee) || read_registers(scratch, exception)) {
		set_registers(&scratch->sample, &scratch->regs);
		if (!exception->at_fault)
			scratch->sample.ip -= BACK_INTO_CALL;
		walk_and_send(first_hook_slot + scratch->sample.header.cpu, scratch);
	}
	scratch->owner = 0;
}

static __always_inline int thrown(struct user_registers *regs, struct exception *exception,
				  struct wire_counters *counts, struct hook_caller *caller, __u64 now)
{
	struct wire_exception record;

	__builtin_memset(&record, 0, sizeof(record));
	record.header.size = sizeof(record);
	record.header.kind = WIRE_EXCEPTION;
	record.header.cpu = bpf_get_smp_processor_id();
	record.header.time_ns = now;
	record.tgid = caller->tgid;
	record.tid = caller->tid;
	record.process_start_ns = caller->process_start_ns;
	/* the lowest bits are the collector's while it marks */
	if (exception->object)
		record.type = word_at(exception->object) & ~7ull;
	record.missed = caller->missed;
	if (exception->rethrown) /* its stack is of no use */
		record.flags = WIRE_EXCEPTION_RETHROWN;
	else if ((exception->context || exception->callee || exception->here) && has_room_for_stack() &&
		 within_rate_limit_for_stack(caller))
		record.flags = WIRE_EXCEPTION_HAS_STACK;
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	if (bpf_ringbuf_output(&hook_records, &record, sizeof(record), wake_by_fill(sizeof(record)))) {
		was_not_sent(counts, caller);
		return 0;
	}
	counts->hook_sent++;
	if (record.flags & WIRE_EXCEPTION_HAS_STACK)
		send_thrower(regs, exception, now, caller);
	return 0;
}

/* SfiInit(iterator, context, ...): at the beginning of the first pass, and in .NET 9 of the second one, too. */
SEC("?uprobe")
int hook_thrown(struct user_registers *regs)
{
	__u64 iterator = ARGUMENT_1(regs), now = bpf_ktime_get_ns();
	struct wire_counters *counts = this_cpu_counters();
	struct exception exception = {};
	struct hook_caller caller = {};
	__u8 kind, pass;

	if (!counts || !hook_is_hit(counts, &caller, now, WIRE_PART_EXCEPTIONS))
		return 0;
	pass = byte_at(iterator + WIRE_EXINFO_PASS);
	if (pass == 2) {
		counts->hook_summed++;
		return 0;
	}
	if (pass != 1 || word_at(iterator + WIRE_EXINFO_CONTEXT) != ARGUMENT_2(regs))
		return thrown(regs, &exception, counts, &caller, now); /* it is arranged in another way */
	kind = byte_at(iterator + WIRE_EXINFO_KIND);
	exception.object = word_at(iterator + WIRE_EXINFO_OBJECT);
	exception.context = ARGUMENT_2(regs);
	if (kind & WIRE_EXKIND_RETHROWN)
		exception.rethrown = true;
	else if ((kind & WIRE_EXKIND_MASK) == WIRE_EXKIND_FAULT) {
		exception.context = word_at(iterator + WIRE_EXINFO_FAULT_CONTEXT);
		exception.at_fault = true;
	}
	return thrown(regs, &exception, counts, &caller, now);
}

/*
 * The frame record of what a method has called, whose own caller goes on at `caller_sp`; 0: the chain does not lead
 * there.
 */
static __always_inline __u64 callee_below(__u64 record, __u64 caller_sp)
{
	__u64 next;
	int i;

	for (i = 0; i < MAX_NATIVE_FRAMES; i++) {
		if (!record || record >= caller_sp)
			return 0;
		next = word_at(record);
		/* the method's own record is right below, if it has one */
		if (next + 2 * sizeof(next) >= caller_sp)
			return record;
		if (next <= record)
			return 0;
		record = next;
	}
	return 0;
}

/* Where the method that threw stands: a signal has noted it, or native code that it has called is still on the stack.
 */
static __always_inline void find_thrower(struct exception *exception, struct user_registers *regs, __u64 frame,
					 __u64 tracker)
{
	__u64 context = word_at(tracker + WIRE_TRACKER_CONTEXT), display;
	__u32 flags = 0;

	if (context && !bpf_probe_read_user(&flags, sizeof(flags), (void *)(context + CONTEXT_FLAGS)) &&
	    flags & CONTEXT_OF_SIGNAL) {
		exception->context = context;
		return;
	}
	display = byte_at(frame + WIRE_CRAWL_FRAMELESS) ? word_at(frame + WIRE_CRAWL_DISPLAY) : 0;
	context = display ? word_at(display) : 0;
	if (context)
		exception->callee = callee_below(REGISTERS_FP(regs), word_at(context + CONTEXT_SP));
	exception->here = !exception->callee;
}

/* ExceptionThrown(frame, rethrown, is_new) of .NET 8 */
SEC("?uprobe")
int hook_thrown_event(struct user_registers *regs)
{
	__u64 frame = ARGUMENT_1(regs), now = bpf_ktime_get_ns(), thread, tracker;
	struct wire_counters *counts = this_cpu_counters();
	struct exception exception = {};
	struct hook_caller caller = {};

	if (!counts || !hook_is_hit(counts, &caller, now, WIRE_PART_EXCEPTIONS))
		return 0;
	exception.rethrown = (__u32)ARGUMENT_2(regs) != 0;
	thread = word_at(frame + WIRE_CRAWL_THREAD);
	tracker = thread ? word_at(thread + WIRE_THREAD_TRACKER) : 0;
	if (tracker && word_at(tracker + WIRE_TRACKER_THREAD) == thread) {
		exception.object = word_at(word_at(tracker + WIRE_TRACKER_HANDLE));
		if (!exception.rethrown)
			find_thrower(&exception, regs, frame, tracker);
	}
	return thrown(regs, &exception, counts, &caller, now);
}
