// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The record that a thread publishes about its trace, by the rules of OTEP 4947. The thread stands still while it is
 * read. So a record that says it is valid is whole. All that is read belongs to the target. It may be anything.
 */
#include "trace_context.bpf.h"
#include <bpf/bpf_core_read.h>

volatile __u32 threads_publish = 0;

#define UNREADABLE 1 /* no address of a variable, which is aligned */

/* The variable's address. 0: this thread has no block yet. UNREADABLE: it could not be found. */
__attribute__((noinline)) __u64 thread_variable_of(__u32 cpu, __u64 thread_pointer)
{
	struct scratch *scratch = scratch_of(cpu);
	struct wire_thread_variable *where;
	__u64 vector = 0, count = 0, block = 0;
	__u32 tgid;

	if (!scratch)
		return UNREADABLE;
	tgid = scratch->sample.tgid;
	where = bpf_map_lookup_elem(&thread_contexts, &tgid);
	if (!where)
		return 0;
	if (!where->slot)
		return thread_pointer + where->offset;
	if (bpf_probe_read_user(&vector, sizeof(vector), (void *)(thread_pointer + where->vector)) ||
	    bpf_probe_read_user(&count, sizeof(count), (void *)(vector + where->count)))
		return UNREADABLE;
	/* The vector grows, and blocks are made, when the thread first uses the variable. */
	if (count < where->module)
		return 0;
	if (bpf_probe_read_user(&block, sizeof(block), (void *)(vector + where->slot)))
		return UNREADABLE;
	return !block || block == ~0ull ? 0 : block + where->offset;
}

__attribute__((noinline)) int read_trace_context(__u32 cpu)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct wire_counters *counts = this_cpu_counters();
	struct scratch *scratch = scratch_of(cpu);
	struct wire_thread_record record = {};
	__u64 variable, pointer = 0;
	__u32 tgid;

	if (!scratch || !counts)
		return 0;
	tgid = scratch->sample.tgid;
	if (!bpf_map_lookup_elem(&thread_contexts, &tgid))
		return 0;
	variable = thread_variable_of(cpu, THREAD_POINTER(task));
	if (!variable) {
		counts->trace.none++;
		return 0;
	}
	if (variable == UNREADABLE || bpf_probe_read_user(&pointer, sizeof(pointer), (void *)variable)) {
		counts->trace.unreadable++;
		return 0;
	}
	if (!pointer) {
		counts->trace.none++;
		return 0;
	}
	if (bpf_probe_read_user(&record, sizeof(record), (void *)pointer)) {
		counts->trace.unreadable++;
		return 0;
	}
	if (record.valid != 1) {
		counts->trace.none++;
		return 0;
	}
	scratch->trace = record.ids;
	scratch->sample.flags |= WIRE_SAMPLE_TRACE;
	counts->trace.read++;
	return 0;
}
