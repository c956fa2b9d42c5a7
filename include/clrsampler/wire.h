/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause OR Apache-2.0 */
/*
 * The records that BPF programs send through ring buffers, one of samples and one of what hooks report, and counters of
 * what they could not send. Fixed-width fields, the same on x86-64 and arm64; times are CLOCK_MONOTONIC nanoseconds.
 *
 * Every record begins with struct wire_header; a reader skips kinds that it does not know.
 */
#ifndef CLRSAMPLER_WIRE_H_
#define CLRSAMPLER_WIRE_H_

#ifndef __VMLINUX_H__
#ifdef __bpf__
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
#else
#include <linux/types.h>
#endif
#endif

/*
 * Most frames of one user stack, whatever the option says. Stacks deeper than the option end with
 * WIRE_STOP_MAX_FRAMES.
 */
#define WIRE_MAX_USER_FRAMES 1024
/* The kernel's own limit for stacks (perf_event_max_stack) is 127 by default. */
#define WIRE_MAX_KERNEL_FRAMES 127
/*
 * Most words of one user stack: frames with their gaps, without the tail. The option for words (4096) is reached first;
 * from there on frames are sent without gaps, 3 words each, so that 1024 of them still fit.
 */
#define WIRE_MAX_USER_WORDS 8192
/* Most words shipped of one gap, whatever the option says. */
#define WIRE_MAX_GAP_WORDS 4096
/* Most words of the tail, whatever the options say. */
#define WIRE_MAX_TAIL_WORDS 512
/* Most snapshots of one sample: methods, each once. Dynamic methods call through ordinary ones, a few deep. */
#define WIRE_MAX_SNAPSHOTS 8
#define WIRE_GENERAL_REGISTERS 16
/*
 * Heaps of transient code are found by their pages of 64 KB: the runtime reserves memory for code in such pieces,
 * aligned.
 */
#define WIRE_CODE_PAGE_SHIFT 16

#include "clrsampler/wire_async.h"
#include "clrsampler/wire_trace.h"

enum wire_kind {
	WIRE_CPU_SAMPLE = 1,
	WIRE_RUNTIME_EVENT = 2,
	WIRE_COMPILED = 3,	 /* struct wire_compiled */
	WIRE_COMPILED_STACK = 4, /* struct wire_cpu_sample, of the thread and the time of the WIRE_COMPILED before it */
	WIRE_ALLOCATION = 5,	 /* struct wire_allocation */
	WIRE_ALLOCATION_STACK = 6, /* struct wire_cpu_sample, of the WIRE_ALLOCATION before it */
	WIRE_EXCEPTION = 7,	   /* struct wire_exception */
	WIRE_EXCEPTION_STACK = 8,  /* struct wire_cpu_sample, of the WIRE_EXCEPTION before it */
	WIRE_THREAD = 9,	   /* struct wire_thread */
	WIRE_THREAD_STACK = 10,	   /* struct wire_cpu_sample, of the WIRE_THREAD before it */
	WIRE_WAIT = 16,		   /* struct wire_wait */
	WIRE_WAIT_STACK = 17,	   /* struct wire_cpu_sample, of the thread and the time of the WIRE_WAIT before it */
	WIRE_WAKER_STACK = 18, /* struct wire_cpu_sample, of the waker and the time of a wire_wait that will follow */
};

/* The functions of a runtime that uprobes sit on. `values` of struct wire_runtime_event in brackets. */
enum wire_hook {
	WIRE_HOOK_SUSPEND = 1, /* ThreadSuspend::SuspendEE was called [SUSPEND_REASON] */
	WIRE_HOOK_SUSPENDED,   /* it returns: all managed threads stand still */
	WIRE_HOOK_RESTART,   /* ThreadSuspend::RestartEE was called [a GC is finished, the suspension had succeeded] */
	WIRE_HOOK_RESTARTED, /* it returns: threads run again */
	WIRE_HOOK_GC_START,  /* GCToEEInterface::DiagGCStart [generation, induced] */
	WIRE_HOOK_GC_END,    /* GCToEEInterface::DiagGCEnd [index, generation, reason, concurrent] */
	WIRE_HOOK_COMPILE,   /* ICorJitCompiler::compileMethod [CORINFO_METHOD_INFO*, MethodDesc*, sp] */
	WIRE_HOOK_COMPILED,  /* it is done: struct wire_compiled instead of an event */
	WIRE_HOOK_ALLOCATED, /* the collector has counted 100 KB or a large object: struct wire_allocation instead */
	WIRE_HOOK_THROWN,    /* the first pass of an exception begins: struct wire_exception instead */
	WIRE_HOOK_COUNT,
};
#define WIRE_HOOK_VALUES 4

/* Kinds of hooks that are planted, paid for and taken out each by itself. */
enum wire_hook_part {
	WIRE_PART_SUSPENSIONS = 0,
	WIRE_PART_COMPILATIONS = 1,
	WIRE_PART_ALLOCATIONS = 2,
	WIRE_PART_EXCEPTIONS = 3,
};

/* A process that runs into hooks and is not followed: a probe is in a file, for all processes that map it. */
struct wire_hook_other {
	__u32 tgid; /* in the initial pid namespace */
	__u32 part; /* enum wire_hook_part */
};
#define WIRE_MAX_HOOK_OTHERS 2048

/* Why records or parts of them were lost; one counter per CPU each. Names for people: capture/drop_counters. */
enum wire_drop {
	WIRE_DROP_RING_FULL = 0, /* no room in the ring of samples: the reader was too slow */
	WIRE_DROP_NO_SCRATCH,	 /* a CPU number past the scratch map */
	WIRE_DROP_COUNT,
};

/* Why the walk of a user stack ended where it did. */
enum wire_stop {
	WIRE_STOP_NONE = 0, /* no user stack: a kernel thread */
	WIRE_STOP_END,	    /* the chain ended with a zero frame pointer or return address: the outermost frame */
	WIRE_STOP_BAD_FP,   /* the frame pointer left the stack or was unaligned: code that uses it for data */
	WIRE_STOP_FAULT,    /* stack memory could not be read: not resident, or the pointer was wrong */
	WIRE_STOP_MAX_FRAMES,
	WIRE_STOP_MAX_WORDS,
	WIRE_STOP_NO_REGISTERS, /* no user registers to begin with: the task is exiting, or works for io_uring */
	WIRE_STOP_32BIT,	/* a 32-bit program: its frames have another shape and are not walked */
	WIRE_STOP_COUNT,
};

/*
 * The fates of the hits of the sampler, one per CPU. hits = idle + filtered + sent + all drops, always. A hit that the
 * kernel suppressed (another tracing program was running on that CPU) is in none of them: it shows only against the
 * time.
 */
struct wire_counters {
	__u64 hits;
	__u64 idle;	/* the CPU had nothing to run */
	__u64 filtered; /* of a process that is not tracked */
	__u64 sent;
	__u64 drops[WIRE_DROP_COUNT];
	/*
	 * The same of the hooks in runtimes: hook_hits = hook_filtered + hook_rate_limited + hook_sent + hook_lost +
	 * hook_summed.
	 */
	__u64 hook_hits;
	__u64 hook_filtered;
	__u64 hook_sent;
	__u64 hook_lost;	 /* no room in the ring of hooks */
	__u64 hook_rate_limited; /* of a process that has had its share */
	__u64 hook_summed;	 /* allocations that only add to their process's sum */
	/*
	 * Counts of parts of waits (struct wire_wait) that have ended: waits = wait_short + wait_passed_over +
	 * wait_kept. Records are as many as the kept ones at most, since one has both parts of a wait.
	 */
	__u64 waits;
	__u64 wait_short;	/* below the threshold */
	__u64 wait_passed_over; /* by chance: others stand for them */
	__u64 wait_kept;
	__u64 wait_records_sent;
	__u64 wait_records_lost;  /* no room in the ring of hooks */
	__u64 wait_without_stack; /* of those sent: the interrupt that takes the stack did not come in time */
	__u64 threads_sent;	  /* struct wire_thread */
	__u64 threads_lost;	  /* no room in the ring of hooks */
	struct wire_trace_counters trace;
	__u64 wait_outside;   /* records that were not sent: the agent's pid namespace does not show the thread */
	__u64 wait_seen_anew; /* a thread may have been pushed out of the table: its sums begin anew */
};

struct wire_header {
	__u32 size; /* bytes of the whole record, header included */
	__u16 kind; /* enum wire_kind */
	__u16 cpu;
	__u64 time_ns; /* taken when the program began */
};

/* The interrupted code was the kernel's; the registers are the task's saved user ones. */
#define WIRE_SAMPLE_IN_KERNEL 1
#define WIRE_SAMPLE_KTHREAD 2 /* no user memory: all user fields are 0 */
#define WIRE_SAMPLE_VCPU 4    /* the CPU was running a guest */
#define WIRE_SAMPLE_OUTSIDE 8 /* the agent's pid namespace does not show this task: tgid and tid are 0 */
#define WIRE_SAMPLE_LOOK 32   /* a WIRE_WAIT_STACK of a wait that is not over: WIRE_WAIT_OPEN */
/* Bits of flags that count struct wire_replaced_return. */
#define WIRE_SAMPLE_RETURNS_SHIFT 8
#define WIRE_SAMPLE_RETURNS_MASK 0xf
#define WIRE_MAX_RETURNS 4
/* All bits that announce something behind the words of the stack. */
#define WIRE_SAMPLE_FOLLOWERS                                                                                          \
	(WIRE_SAMPLE_RETURNS_MASK << WIRE_SAMPLE_RETURNS_SHIFT | WIRE_SAMPLE_ASYNC_MASK << WIRE_SAMPLE_ASYNC_SHIFT |   \
	 WIRE_SAMPLE_TRACE)

/*
 * One sample of one CPU. Behind it follow kernel_frames u64 addresses (leaf first), then user_words u64 words:
 * for each of user_frames frames
 *	word	frame address | number of gap words << 48 | WIRE_FRAME_WORDS_ONLY | WIRE_FRAME_RESUMED
 *	words	the gap: stack memory from the end of the previous frame (at first: from sp) upwards, possibly cut
 *	word	saved frame pointer, [frame address]
 *	word	return address, [frame address + 8]
 * and, unless user_words is 0, one tail: a word with frame address 0 and a count, then that many words of what lies
 * above the last frame (with no frame at all: from sp). A frame whose gap could not be read is sent without it, and a
 * tail that would cross into unreadable memory ends with its first page, or is empty. The first and the last words of a
 * long gap are sent. The first end in a frame that is none (WIRE_FRAME_WORDS_ONLY), whose two words are words like
 * those before it. The next gap is then the memory right below its frame. The outermost frame may have return address
 * 0.
 * Where the chain broke, the walk may have gone on at a frame that a word on the stack points to, since native code
 * that keeps data in the frame pointer saves it there. Such a frame is marked, and only unwind data can tell whether it
 * is one.
 * Both architectures keep {frame pointer, return address} pairs in a chain: rbp on x86-64, x29 on arm64.
 */
struct wire_cpu_sample {
	struct wire_header header;
	__u32 tgid; /* in the pid namespace of the agent */
	__u32 tid;
	__u64 process_start_ns; /* start of the thread group leader, CLOCK_BOOTTIME: tells reused pids apart */
	__u64 ip;
	__u64 sp;
	__u64 fp; /* rbp, x29 */
	__u64 lr; /* x30; 0 on x86-64 */
	/*
	 * The others, by their DWARF numbers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15; 0 on arm64.
	 * Hand-written leaf functions keep the end of their frame in one of them (libcrypto: 670 rows of unwind data).
	 */
	__u64 general[WIRE_GENERAL_REGISTERS];
	__u32 flags; /* WIRE_SAMPLE_* */
	__u16 stop;  /* enum wire_stop */
	__u16 kernel_frames;
	__u16 user_frames;
	__u16 snapshots;
	__u32 user_words;
	char comm[16]; /* of the thread */
};

/*
 * The code that stood at an address at the moment of the sample, for code that the runtime may free and replace: behind
 * the user words, one for each of `snapshots`. `identity` is the first bytes of its code header (debug, exception and
 * GC information, MethodDesc, number of unwind infos, the first): other bytes are another method, the same ones may be,
 * too. So what unwinding needs of the method is here as well: it may be gone when user space comes to look.
 */
struct wire_code_snapshot {
	__u64 address;	   /* the sampled one, inside a call for return addresses */
	__u64 start;	   /* of the method */
	__u64 header;	   /* of the method: address of its code header */
	__u8 identity[48]; /* bytes at header */
	char name[64];	   /* of a dynamic method, NUL-terminated, possibly cut; else empty */
	__u8 unwind[32];   /* unwind data of the first function, or its beginning; zeros: not read */
	__u8 code[32];	   /* instructions at `address`, if there is unwind data */
};

/*
 * A return probe puts the address of a trampoline in the place of a return address, and the kernel keeps the true one.
 * Behind the snapshots, innermost first; those of deeper calls than WIRE_MAX_RETURNS are missing.
 */
struct wire_replaced_return {
	__u64 at;      /* where it lies on the stack */
	__u64 address; /* what was there */
};

/* Some were not sent since the process had had its share; else there was no room in the ring of hooks. */
#define WIRE_MISSED_RATE_LIMITED 0x80000000u

/* By process: the number of hits that it may still report, and of those that were not sent. */
struct wire_event_rate_limit {
	__u64 process_start_ns;
	__u64 filled_ns; /* `left` is what it was then, and what has been taken since */
	__u64 left;
	__u32 missed;	    /* struct wire_runtime_event */
	__u16 rate_limited; /* some of these, beyond the limit */
	__u16 exhausted;    /* nothing is sent until some has come together again */
};

/* A call, or the return from one, of a function that a hook sits on. */
struct wire_runtime_event {
	struct wire_header header;
	__u32 tgid; /* as in struct wire_cpu_sample */
	__u32 tid;
	__u64 process_start_ns;
	__u32 hook;			/* enum wire_hook */
	__u32 missed;			/* hits of this process that were not sent so far | WIRE_MISSED_RATE_LIMITED */
	__u64 values[WIRE_HOOK_VALUES]; /* arguments, as wide as they are declared; 0 where there are none */
	char comm[16];			/* of the thread */
};

/*
 * Words of the thread's stack that may hold the time at which the compilation began: for each place that is known, the
 * word there and the one below it. User space finds out which of them does, if any (profile/jit_start.h).
 */
#define WIRE_START_PLACES 2
#define WIRE_START_WORDS (2 * WIRE_START_PLACES)
/* Distance of each from CORINFO_METHOD_INFO: .NET 8 and 9, .NET 10; x86-64. */
#define WIRE_START_PLACE_0 312
#define WIRE_START_PLACE_1 (-296)

/*
 * A method has been compiled, or compileMethod has refused to. A compilation that an exception ends sends nothing but
 * its beginning. The beginning of one that is done has the same thread and method_info. Without a name the record ends
 * before it: header.size is WIRE_COMPILED_WITHOUT_NAME.
 */
struct wire_compiled {
	struct wire_header header;
	__u32 tgid; /* as in struct wire_cpu_sample */
	__u32 tid;
	__u64 process_start_ns;
	__u64 method_info; /* CORINFO_METHOD_INFO* */
	__u64 method;	   /* MethodDesc*; 0: it could not be read, as with the other fields */
	__u64 entry;	   /* of the code */
	__u64 flags;	   /* CORJIT_FLAGS: clr/hooks/jit_flags.h */
	__u32 bytes;	   /* of the code */
	__u32 il_bytes;
	__u32 result;			     /* CorJitResult; 0: compiled */
	__u32 missed;			     /* as in struct wire_runtime_event */
	__u64 start_words[WIRE_START_WORDS]; /* 0: could not be read, or arm64 */
	char comm[16];			     /* of the thread; empty where nobody reports single compilations */
	/*
	 * The name of a dynamic method, NUL-terminated, possibly cut; else empty. Where nobody reports single
	 * compilations it is read only if the process was sampled since this one began.
	 */
	char name[64];
};
#define WIRE_COMPILED_WITHOUT_NAME (sizeof(struct wire_compiled) - 64)

/*
 * Where a value is when a probe is hit. A cookie that a probe is attached with has three of these, 21 bits each: those
 * of bytes, heap and object, the first in the lowest bits. Each has its kind in the upper two bits, and the number,
 * which is signed, in the other ones.
 */
enum wire_place {
	WIRE_PLACE_NONE = 0,	 /* it is not known */
	WIRE_PLACE_REGISTER = 1, /* number: the register's, as DWARF counts them */
	WIRE_PLACE_FRAME = 2,	 /* the word at the frame pointer + number */
	WIRE_PLACE_CONSTANT = 3, /* number */
};
#define WIRE_PLACE_BITS 21
#define WIRE_PLACE_NUMBER_BITS 19

/* The heap that an object is in. */
#define WIRE_HEAP_SMALL 0
#define WIRE_HEAP_LARGE 1
#define WIRE_HEAP_PINNED 2
#define WIRE_HEAP_UNKNOWN 3

/* A stack of one hit stands for this many hits / 256 at least. */
#define WIRE_ALLOCATION_ONE 256

/*
 * The collector has counted `bytes` more that were allocated, since it last told. `weight` 0: nothing of the kind, the
 * record only says what an object before was.
 */
struct wire_allocation {
	struct wire_header header;
	__u32 tgid; /* as in struct wire_cpu_sample */
	__u32 tid;
	__u64 process_start_ns;
	__u64 bytes;
	__u64 object;	   /* its address; it is written only after the hit */
	__u64 type_before; /* MethodTable of the object of an earlier record of this thread; 0: nobody saw it */
	__u64 time_before; /* of that record */
	__u64 total_bytes; /* of the process so far, hits without a record included */
	__u64 total_hits;  /* with those of SuspendEE */
	__u32 heap;	   /* WIRE_HEAP_* */
	__u32 weight;	   /* hits that this one stands for, in 1 / WIRE_ALLOCATION_ONE */
	__u32 missed;	   /* as in struct wire_runtime_event */
	__u32 has_stack;   /* not 0: a WIRE_ALLOCATION_STACK of the same time was to follow */
	char comm[16];	   /* of the thread */
};

#include "clrsampler/wire_wait.h"

/*
 * Where the runtime keeps what it knows of an exception, as its first pass begins. The search for the place proves the
 * numbers of .NET 8 by the code (clr/hooks/exception_scan_x64.h); all are the same in each release of a version.
 *
 * .NET 9 to 11: SfiInit(StackFrameIterator*, CONTEXT*, ...). The iterator is a part of the ExInfo, whose other fields
 * lie at these distances from it: the same on x86-64 and arm64, 9.0.19 to 11.0.0. That it is one, the second argument
 * says, which is in the ExInfo, too.
 */
#define WIRE_EXINFO_FAULT_CONTEXT (-168) /* CONTEXT*: where a signal came */
#define WIRE_EXINFO_CONTEXT (-24)	 /* CONTEXT*: the second argument */
#define WIRE_EXINFO_OBJECT (-16)
#define WIRE_EXINFO_KIND (-8) /* u8: WIRE_EXKIND_* */
#define WIRE_EXINFO_PASS (-7) /* u8: 1 or 2 */
#define WIRE_EXKIND_MASK 3
#define WIRE_EXKIND_FAULT 2
#define WIRE_EXKIND_RETHROWN 4
/*
 * .NET 8: ETW::ExceptionLog::ExceptionThrown(CrawlFrame*, i32 rethrown, i32 is_new). Thread and tracker know each
 * other.
 */
#define WIRE_CRAWL_FRAMELESS 0x204 /* u8: it is of managed code, and no mark that native code has left */
#define WIRE_CRAWL_DISPLAY 0x228   /* REGDISPLAY*, whose first word is the CONTEXT* of the frame's caller */
#define WIRE_CRAWL_THREAD 0x290	   /* Thread* */
#define WIRE_THREAD_TRACKER 0x1e0  /* ExceptionTracker* */
#define WIRE_TRACKER_THREAD 0x10   /* Thread* */
#define WIRE_TRACKER_CONTEXT 0x30  /* CONTEXT*: where a signal came, or what native code noted as it threw */
#define WIRE_TRACKER_HANDLE 0x40   /* of the object */

/* `throw;` in a handler: the exception is no new one. */
#define WIRE_EXCEPTION_RETHROWN 1
/* A WIRE_EXCEPTION_STACK of the same time was to follow. */
#define WIRE_EXCEPTION_HAS_STACK 2

/* An exception is thrown: a handler is about to be looked for. */
struct wire_exception {
	struct wire_header header;
	__u32 tgid; /* as in struct wire_cpu_sample */
	__u32 tid;
	__u64 process_start_ns;
	__u64 type;    /* MethodTable of the object; 0: it could not be read */
	__u32 missed;  /* as in struct wire_runtime_event */
	__u32 flags;   /* WIRE_EXCEPTION_* */
	char comm[16]; /* of the thread */
};

/* A thread has made another one of its process. */
struct wire_thread {
	struct wire_header header;
	__u32 tgid; /* as in struct wire_cpu_sample */
	__u32 tid;  /* that made it */
	__u64 process_start_ns;
	__u32 created_tid;
	__u32 has_stack; /* a WIRE_THREAD_STACK of the same time was to follow */
};

/* {begin, end, unwind data}, of x86-64; snapshots hold the unwind data. */
#define WIRE_FUNCTION_WITH_END 12
/* {begin, unwind data}, of arm64, whose code keeps frame records: unwinding needs no data. */
#define WIRE_FUNCTION_WITHOUT_END 8
/*
 * Where a process keeps transient code, and how to read it: user space tells the sampler (map transient_code, by
 * tgid).
 */
struct wire_transient_code {
	__u64 begin;	      /* of the first heap */
	__u64 end;	      /* of the last one */
	__u16 nibble_version; /* 1 or 2: formats/runtime/nibble_map.h */
	__u16 function_bytes; /* of a RUNTIME_FUNCTION: WIRE_FUNCTION_... */
	__u16 method_flags;   /* offset in the MethodDesc */
	__u16 dynamic_name;   /* offset in the MethodDesc of a dynamic method */
	/* All that follows is the kernel's; 0 at first. */
	__u64 woken_ns;	     /* when it last woke user space for a heap that it had not heard of */
	__u64 sampled_ns;    /* when the process was last sampled */
	__u32 compiled_page; /* the last page that code was compiled to, if there is nothing to tell of it */
	__u32 reserved;
};
/* One heap of it: map transient_heaps, with an entry for each of its pages. */
struct wire_transient_page {
	__u32 tgid;
	__u32 page; /* address >> WIRE_CODE_PAGE_SHIFT; user addresses have 48 bits at most */
};
struct wire_transient_heap {
	__u64 begin;
	__u64 end;
	__u64 map_base;	  /* what the nibble map counts from */
	__u64 nibble_map; /* address of its 32-bit words */
};

#define WIRE_FRAME_ADDRESS_MASK 0x0000ffffffffffffull
#define WIRE_GAP_SHIFT 48
#define WIRE_GAP_MASK 0x1fffull /* of the word shifted right */
#define WIRE_FRAME_WORDS_ONLY 0x4000000000000000ull
#define WIRE_FRAME_RESUMED 0x8000000000000000ull

#if defined(__cplusplus)
static_assert(sizeof(struct wire_header) == 16, "wire_header");
static_assert(sizeof(struct wire_cpu_sample) == 224, "wire_cpu_sample");
static_assert(sizeof(struct wire_code_snapshot) == 200, "wire_code_snapshot");
static_assert(sizeof(struct wire_runtime_event) == 88, "wire_runtime_event");
static_assert(sizeof(struct wire_replaced_return) == 16, "wire_replaced_return");
static_assert(sizeof(struct wire_compiled) == 192, "wire_compiled");
static_assert(sizeof(struct wire_transient_code) == 48, "wire_transient_code");
static_assert(sizeof(struct wire_transient_page) == 8, "wire_transient_page");
static_assert(sizeof(struct wire_transient_heap) == 32, "wire_transient_heap");
static_assert(sizeof(struct wire_hook_other) == 8, "wire_hook_other");
static_assert(sizeof(struct wire_allocation) == 112, "wire_allocation");
static_assert(sizeof(struct wire_exception) == 64, "wire_exception");
static_assert(sizeof(struct wire_thread) == 40, "wire_thread");
static_assert(sizeof(struct wire_async_object) == 80, "wire_async_object");
static_assert(sizeof(struct wire_async_layout) == 48, "wire_async_layout");
#else
_Static_assert(sizeof(struct wire_header) == 16, "wire_header");
_Static_assert(sizeof(struct wire_cpu_sample) == 224, "wire_cpu_sample");
_Static_assert(sizeof(struct wire_code_snapshot) == 200, "wire_code_snapshot");
_Static_assert(sizeof(struct wire_runtime_event) == 88, "wire_runtime_event");
_Static_assert(sizeof(struct wire_replaced_return) == 16, "wire_replaced_return");
_Static_assert(sizeof(struct wire_compiled) == 192, "wire_compiled");
_Static_assert(sizeof(struct wire_transient_code) == 48, "wire_transient_code");
_Static_assert(sizeof(struct wire_transient_page) == 8, "wire_transient_page");
_Static_assert(sizeof(struct wire_transient_heap) == 32, "wire_transient_heap");
_Static_assert(sizeof(struct wire_hook_other) == 8, "wire_hook_other");
_Static_assert(sizeof(struct wire_allocation) == 112, "wire_allocation");
_Static_assert(sizeof(struct wire_exception) == 64, "wire_exception");
_Static_assert(sizeof(struct wire_thread) == 40, "wire_thread");
_Static_assert(sizeof(struct wire_async_object) == 80, "wire_async_object");
_Static_assert(sizeof(struct wire_async_layout) == 48, "wire_async_layout");
#endif

#endif /* CLRSAMPLER_WIRE_H_ */
