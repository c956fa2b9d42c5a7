/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause OR Apache-2.0 */
/* The trace and the span that a thread was at work for, as it says itself. A part of wire.h. */
#ifndef CLRSAMPLER_WIRE_TRACE_H_
#define CLRSAMPLER_WIRE_TRACE_H_

#define WIRE_SAMPLE_TRACE 16 /* a flag of a sample: struct wire_trace_context is the last that follows */

/* Behind all else that follows a sample. Bytes in the order of W3C Trace Context. */
struct wire_trace_context {
	__u8 trace_id[16];
	__u8 span_id[8];
};

/* Samples of processes that publish ids: each is in one of these. */
struct wire_trace_counters {
	__u64 read;	  /* a valid record came with the sample */
	__u64 none;	  /* the thread has no valid record now */
	__u64 unreadable; /* the variable or the record could not be read */
};

/*
 * The beginning of the record that a thread points to (OTEP 4947). It is valid where `valid` is 1. All that is read of
 * it belongs to the target.
 */
struct wire_thread_record {
	struct wire_trace_context ids;
	__u8 valid;
	__u8 trace_flags;
	__u16 attributes_bytes;
};

/*
 * Where the threads of a process keep the pointer to their record: map thread_contexts, by tgid. With `slot` 0 it lies
 * at the thread pointer + offset. Else the thread has a vector of blocks, and it lies in one of these at `offset`. The
 * vector's address is at the thread pointer + vector, its number of entries at the vector + count, and the block's
 * address at the vector + slot.
 */
struct wire_thread_variable {
	__u64 offset; /* modulo 2^64 */
	__s32 vector;
	__s32 count;
	__u32 slot;
	__u32 module; /* the block's number: entries must be as many at least */
};

#if defined(__cplusplus)
static_assert(sizeof(struct wire_trace_context) == 24, "wire_trace_context");
static_assert(sizeof(struct wire_thread_record) == 28, "wire_thread_record");
static_assert(sizeof(struct wire_thread_variable) == 24, "wire_thread_variable");
#else
_Static_assert(sizeof(struct wire_trace_context) == 24, "wire_trace_context");
_Static_assert(sizeof(struct wire_thread_record) == 28, "wire_thread_record");
_Static_assert(sizeof(struct wire_thread_variable) == 24, "wire_thread_variable");
#endif

#endif
