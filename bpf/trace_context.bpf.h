/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the ids of the trace and the span that the running thread works for, if it publishes them (wire_trace.h). */
#ifndef CLRSAMPLER_TRACE_CONTEXT_BPF_H_
#define CLRSAMPLER_TRACE_CONTEXT_BPF_H_

#include "shared_maps.bpf.h"

extern volatile __u32 threads_publish; /* some process was told of: else nothing is looked up */

/* Global functions, checked once by the verifier. Sets scratch.trace and WIRE_SAMPLE_TRACE of `cpu`; 0 always. */
int read_trace_context(__u32 cpu);
__u64 thread_variable_of(__u32 cpu, __u64 thread_pointer);

#endif
