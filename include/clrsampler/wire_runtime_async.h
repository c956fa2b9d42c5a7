/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause OR Apache-2.0 */
/* The awaiters of methods that the runtime itself makes async (.NET 11), beside what wire_async.h has. */
#ifndef CLRSAMPLER_WIRE_RUNTIME_ASYNC_H_
#define CLRSAMPLER_WIRE_RUNTIME_ASYNC_H_

#include "clrsampler/wire.h"

/*
 * The object is a continuation for the sampler, which has put the address at which the method is suspended into the
 * last word. 0: that could not be read, or the continuation has none.
 */
#define WIRE_ASYNC_CONTINUATION 2
#define WIRE_ASYNC_MARKS (WIRE_ASYNC_ROOT | WIRE_ASYNC_CONTINUATION)
#define WIRE_ASYNC_SUSPENDED_AT (WIRE_ASYNC_WORDS - 1)

/*
 * A suspended method is a Continuation. Most are of types that the runtime makes from it: these have no row, and their
 * MethodTable names the first of continuation_rows as its parent.
 */
#define WIRE_ASYNC_CONTINUATION_ROWS 4
struct wire_runtime_async_layout {
	__u32 task_row;	  /* AsyncHelpers.RuntimeAsyncTask`1; 0: there are no such methods */
	__u32 state_link; /* its m_stateObject: the innermost continuation */
	__u32 continuation_rows[WIRE_ASYNC_CONTINUATION_ROWS]; /* Continuation first; 0: there is none */
	__u32 parent_link;				       /* of a MethodTable */
	__u32 next_link;				       /* of a continuation: Next */
	__u32 info_link;				       /* its ResumeInfo */
	__u32 owner_link;   /* of a RuntimeAsyncTaskContinuation: the task whose methods await another one */
	__u32 suspended_at; /* of a ResumeInfo: DiagnosticIP */
};

/* Map async_layouts. */
struct wire_async_layouts {
	struct wire_async_layout tasks;
	struct wire_runtime_async_layout runtime;
};

#ifdef __cplusplus
static_assert(sizeof(struct wire_async_layouts) == 92, "wire_async_layouts");
#else
_Static_assert(sizeof(struct wire_async_layouts) == 92, "wire_async_layouts");
#endif

#endif
