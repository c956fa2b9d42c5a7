// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of kernel addresses, asked of the kernel itself: for the few hundred addresses of a profile this is faster than
 * reading all of /proc/kallsyms. An object of its own, run once per batch and gone; needs Linux 5.14 (syscall
 * programs).
 */
#include "clrsampler/wire.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define BATCH 64
#define NAME_BYTES 256 /* longer ones are cut; the kernel allows 512 since 6.1, for Rust */

struct batch {
	__u64 addresses[BATCH];
	char names[BATCH][NAME_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct batch);
} batches SEC(".maps");

/* "name" or "name [module]"; what has no name becomes a hexadecimal number */
static const char format[] = "%ps";

/* A global function: verified once. */
__attribute__((noinline)) int name_one(__u32 index)
{
	__u32 zero = 0;
	struct batch *batch = bpf_map_lookup_elem(&batches, &zero);
	__u64 address;

	if (!batch || index >= BATCH)
		return 1;
	address = batch->addresses[index];
	if (!address)
		return 1;
	bpf_snprintf(batch->names[index], NAME_BYTES, format, &address, sizeof(address));
	return 0;
}

SEC("syscall")
int name_batch(void *ctx)
{
	for (__u32 i = 0; i < BATCH; i++) {
		if (name_one(i))
			break;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
