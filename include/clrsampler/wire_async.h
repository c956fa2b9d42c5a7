/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause OR Apache-2.0 */
/* The awaiters of what runs on a stack, as samples bring them along. A part of wire.h. */
#ifndef CLRSAMPLER_WIRE_ASYNC_H_
#define CLRSAMPLER_WIRE_ASYNC_H_

/* Bits of a sample's flags that count struct wire_async_object. */
#define WIRE_SAMPLE_ASYNC_SHIFT 12
#define WIRE_SAMPLE_ASYNC_MASK 0x3f

/*
 * Most objects of a sample. A chain of eight awaiters has eight to sixteen. With methods that the runtime makes async
 * and tasks between them it has up to 40. WIRE_MAX_ASYNC_ROOTS may begin one.
 */
#define WIRE_MAX_ASYNC_OBJECTS 63
#define WIRE_MAX_ASYNC_ROOTS 12
/*
 * The words that are copied of an object: the MethodTable, the fields of a Task (7 on .NET 8 to 11), and what follows
 * them in the box of a state machine. That is the machine, or a pointer to it (8 to 10 words from the beginning).
 */
#define WIRE_ASYNC_WORDS 9

/* A word of the stack, or a register, points to the object. Else another one of the sample does. */
#define WIRE_ASYNC_ROOT 1

/*
 * An object that leads to the awaiters of what runs on the stack, as it was at the moment of the sample: the box of
 * what runs, and from there one awaiter after the other. Behind the replaced returns, in the order in which they were
 * met. The kind of object follows from its MethodTable, which stays where it is.
 */
struct wire_async_object {
	__u64 address; /* | WIRE_ASYNC_ROOT */
	__u64 words[WIRE_ASYNC_WORDS];
};

/*
 * By what the sampler knows objects of async code in a process: map async_layouts, by tgid. A type is told by its row
 * in the metadata (TypeDef), which is the u32 at byte 8 of its MethodTable >> row_shift. Types of other assemblies have
 * the same numbers: what was copied in vain for that user space leaves out. Links are bytes from the object's address.
 */
#define WIRE_ASYNC_BOX_ROWS 3
#define WIRE_ASYNC_AWAIT_ROWS 3
struct wire_async_layout {
	__u32 row_shift;
	__u32 task_link;			 /* Task.m_continuationObject */
	__u32 task_flags;			 /* Task.m_stateFlags, a u32 */
	__u32 box_rows[WIRE_ASYNC_BOX_ROWS];	 /* AsyncStateMachineBox`1 and what derives from it; 0: there is none */
	__u32 action_row;			 /* System.Action */
	__u32 action_link;			 /* Delegate._target */
	__u32 await_rows[WIRE_ASYNC_AWAIT_ROWS]; /* AwaitTaskContinuation and what derives from it */
	__u32 await_link;			 /* its m_action */
};

#endif
