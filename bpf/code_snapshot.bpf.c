// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Follows the runtime's nibble map from an address to the start of its method, and copies what tells the method apart.
 * The same steps as formats/runtime/nibble_map and clr/memory/code_ranges in user space, for the moment of the sample.
 * All that is read belongs to the target and may be anything; a read that fails leaves no snapshot.
 *
 * The steps are global functions with their state in the scratch, so that the verifier checks each one once: as one
 * piece they cost each start of the agent 300 ms.
 */
#include "code_snapshot.bpf.h"
#include "method_desc.bpf.h"

#define BUCKET_BYTES 32
#define WORD_BYTES 256	   /* of code that one word of the map stands for */
#define MAX_WORDS_BACK 32  /* 8 KB of one dynamic method's code; beyond that it has no snapshot */
#define LAST_STUB_KIND 0xf /* a header this small is no header */
#define MAX_FUNCTIONS 4096 /* of one method: its body and its funclets */
/* Offsets in a method's header, in its copy: how many functions there are, and the first of them. */
#define FUNCTION_COUNT_AT 32
#define FUNCTIONS_AT 36
#define PACKED_UNWIND_MASK 3 /* of the unwind data of a function without an end: it is the data itself */
#define LEAF_WORDS 16	     /* of the stack: one may be the return address of a leaf without a frame */
#define LEAF_SNAPSHOTS 3     /* the rest of the room is for the chain */

/* Copies the heap that holds `address` to scratch.heap; returns the version of its nibble map, 0: there is none. */
__attribute__((noinline)) int find_transient_heap(__u32 cpu, __u64 address)
{
	struct scratch *scratch = scratch_of(cpu);
	struct wire_transient_page page;
	struct wire_transient_heap *heap;
	struct wire_transient_code *code;

	if (!scratch)
		return 0;
	page.tgid = scratch->sample.tgid;
	page.page = address >> WIRE_CODE_PAGE_SHIFT;
	heap = bpf_map_lookup_elem(&transient_heaps, &page);
	if (!heap || address < heap->begin || address >= heap->end)
		return 0;
	scratch->heap = *heap;
	code = bpf_map_lookup_elem(&transient_code, &page.tgid);
	return code ? code->nibble_version : 0;
}

/*
 * Reads one word of the map. Sets snapshot.start and returns 1 when a method begins in it, 0 when it is empty, -1 when
 * it can't be used. Only nibbles from `shift` bits on count; the one at `shift` only if its method begins at or
 * before snapshot.address. `offset` is that of the word's first bucket.
 */
__attribute__((noinline)) int judge_word(__u32 cpu, __u32 version, __u64 index, __u32 shift, __u64 offset)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 bucket, start;
	__u32 word;

	if (!scratch || shift > 28)
		return -1;
	if (bpf_probe_read_user(&word, sizeof(word), (void *)(scratch->heap.nibble_map + 4 * index)))
		return -1;
	if (version == 2 && (word & 0xf) > 8) {
		scratch->snapshot.start = scratch->heap.map_base + (word & ~0xfu) + ((word & 0xf) - 9) * 4;
		return 1;
	}
	word >>= shift;
	bucket = index * 8 + 7 - shift / 4;
	/* the bucket of the address itself: its method may begin behind the address */
	if ((word & 0xf) && bucket * BUCKET_BYTES + ((word & 0xf) - 1) * 4 > offset)
		word &= ~0xfu;
	if (!word)
		return 0;
	if (!(word & 0xffff)) {
		word >>= 16;
		bucket -= 4;
	}
	if (!(word & 0xff)) {
		word >>= 8;
		bucket -= 2;
	}
	if (!(word & 0xf)) {
		word >>= 4;
		bucket -= 1;
	}
	start = word & 0xf;
	if (start > 8)
		return -1;
	scratch->snapshot.start = scratch->heap.map_base + bucket * BUCKET_BYTES + (start - 1) * 4;
	return 1;
}

/* Sets snapshot.start for snapshot.address; 0: none. */
__attribute__((noinline)) int find_start(__u32 cpu, __u32 version)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 offset, index;
	int found;
	__u32 back;

	if (!scratch)
		return 0;
	offset = scratch->snapshot.address - scratch->heap.map_base;
	index = offset / WORD_BYTES;
	found = judge_word(cpu, version, index, 28 - (offset / BUCKET_BYTES & 7) * 4, offset);
	if (found)
		return found > 0;
	for (back = 1; back <= MAX_WORDS_BACK; back++) {
		if (back > index || (version == 2 && back > 1))
			return 0;
		found = judge_word(cpu, version, index - back, 0, offset);
		if (found)
			return found > 0;
	}
	return 0;
}

static __always_inline struct wire_transient_code *transient_code_of(struct scratch *scratch)
{
	__u32 tgid = scratch->sample.tgid;

	return bpf_map_lookup_elem(&transient_code, &tgid);
}

/* Fills in what stands at snapshot.start; 0: no method. */
__attribute__((noinline)) int read_identity(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	struct wire_code_snapshot *snapshot;
	struct wire_transient_code *code;
	__u64 method_desc = 0, name = 0;

	if (!scratch)
		return 0;
	code = transient_code_of(scratch);
	if (!code)
		return 0;
	snapshot = &scratch->snapshot;
	snapshot->name[0] = 0;
	if (bpf_probe_read_user(&snapshot->header, sizeof(snapshot->header), (void *)(snapshot->start - 8)) ||
	    snapshot->header <= LAST_STUB_KIND ||
	    bpf_probe_read_user(snapshot->identity, sizeof(snapshot->identity), (void *)snapshot->header))
		return 0;
	/* from the copy: what it is called and what it is must be of the same method */
	__builtin_memcpy(&method_desc, snapshot->identity + 24, sizeof(method_desc));
	if (!is_dynamic(method_desc, code) ||
	    bpf_probe_read_user(&name, sizeof(name), (void *)(method_desc + code->dynamic_name)) || !name)
		return 1;
	if (bpf_probe_read_user_str(snapshot->name, sizeof(snapshot->name), (void *)name) < 0)
		snapshot->name[0] = 0;
	return 1;
}

/* Where a function ends that has no end of its own: the first word of its unwind data has its length. 0: unreadable. */
static __always_inline __u32 end_by_unwind_data(__u64 base, __u32 begin, __u32 data)
{
	__u32 word = 0;

	if (data & PACKED_UNWIND_MASK)
		return begin + (data >> 2 & 0x7ff) * 4;
	if (bpf_probe_read_user(&word, sizeof(word), (void *)(base + data)))
		return 0;
	return begin + (word & 0x3ffff) * 4;
}

/*
 * Whether snapshot.address lies in the method at snapshot.start. The map tells where the last method before an address
 * begins, and not where it ends. The memory behind it may be free now, and the next method's in a moment. A word of the
 * stack that is left over from a method that was freed points there.
 */
__attribute__((noinline)) int is_in_method(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	struct wire_code_snapshot *snapshot;
	struct wire_transient_code *code;
	__u32 functions = 0, begin = 0, end, last[3] = {};
	bool has_end;
	__u64 at;

	if (!scratch)
		return 0;
	code = transient_code_of(scratch);
	if (!code)
		return 0;
	has_end = code->function_bytes == WIRE_FUNCTION_WITH_END;
	snapshot = &scratch->snapshot;
	__builtin_memcpy(&functions, snapshot->identity + FUNCTION_COUNT_AT, sizeof(functions));
	__builtin_memcpy(&begin, snapshot->identity + FUNCTIONS_AT, sizeof(begin));
	if (!functions || functions > MAX_FUNCTIONS)
		return 0;
	at = snapshot->header + FUNCTIONS_AT;
	if (functions == 1)
		__builtin_memcpy(last, snapshot->identity + FUNCTIONS_AT, sizeof(last));
	else if (has_end && bpf_probe_read_user(last, WIRE_FUNCTION_WITH_END,
						(void *)(at + (functions - 1) * WIRE_FUNCTION_WITH_END)))
		return 0;
	else if (!has_end && bpf_probe_read_user(last, WIRE_FUNCTION_WITHOUT_END,
						 (void *)(at + (functions - 1) * WIRE_FUNCTION_WITHOUT_END)))
		return 0;
	end = has_end ? last[1] : end_by_unwind_data(snapshot->start - begin, last[0], last[1]);
	return begin < end && snapshot->address - snapshot->start < end - begin;
}

#define SNAPSHOT_BYTES 32
#define SMALLEST_PAGE 4096
_Static_assert(sizeof(((struct wire_code_snapshot *)0)->unwind) == SNAPSHOT_BYTES, "unwind");
_Static_assert(sizeof(((struct wire_code_snapshot *)0)->code) == SNAPSHOT_BYTES, "code");

/* Reads as many bytes as there are before a page that is not there; false: none. Zeros stand for the others. */
static __always_inline bool read_before_end(__u8 *to, __u64 address)
{
	__u64 left = -address & (SMALLEST_PAGE - 1);

	if (!bpf_probe_read_user(to, SNAPSHOT_BYTES, (void *)address))
		return true;
	return left && left < SNAPSHOT_BYTES && !bpf_probe_read_user(to, left & (SNAPSHOT_BYTES - 1), (void *)address);
}

/* Reads the data that unwinding needs of the method, where it needs any: all of it or nothing. */
__attribute__((noinline)) int read_unwind_data(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	struct wire_code_snapshot *snapshot;
	struct wire_transient_code *code;
	__u32 functions = 0, begin = 0, data = 0;

	if (!scratch)
		return 0;
	snapshot = &scratch->snapshot;
	code = transient_code_of(scratch);
	if (!code || code->function_bytes != WIRE_FUNCTION_WITH_END) {
		__builtin_memset(snapshot->unwind, 0, sizeof(snapshot->unwind));
		return 0;
	}
	__builtin_memcpy(&functions, snapshot->identity + FUNCTION_COUNT_AT, sizeof(functions));
	__builtin_memcpy(&begin, snapshot->identity + FUNCTIONS_AT, sizeof(begin));
	__builtin_memcpy(&data, snapshot->identity + FUNCTIONS_AT + 8, sizeof(data));
	if (!functions || !read_before_end(snapshot->unwind, snapshot->start - begin + data) ||
	    !read_before_end(snapshot->code, snapshot->address))
		__builtin_memset(snapshot->unwind, 0, sizeof(snapshot->unwind));
	return 0;
}

__attribute__((noinline)) int keep_snapshot(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	__u32 at, i;

	if (!scratch)
		return 0;
	at = scratch->sample.snapshots;
	if (at >= WIRE_MAX_SNAPSHOTS)
		return 0;
	for (i = 0; i < WIRE_MAX_SNAPSHOTS; i++) {
		if (i < at && scratch->snapshots[i].start == scratch->snapshot.start)
			return 0;
	}
	scratch->snapshots[at] = scratch->snapshot;
	scratch->sample.snapshots = at + 1;
	return 0;
}

__attribute__((noinline)) int snapshot_code(__u32 cpu, __u64 address)
{
	struct scratch *scratch = scratch_of(cpu);
	int version;

	if (!scratch || scratch->sample.snapshots >= WIRE_MAX_SNAPSHOTS)
		return 0;
	version = find_transient_heap(cpu, address);
	scratch->snapshot.address = address;
	if (version && find_start(cpu, version) && read_identity(cpu) && is_in_method(cpu)) {
		read_unwind_data(cpu);
		keep_snapshot(cpu);
	}
	return 0;
}

__attribute__((noinline)) int snapshot_callers_of_leaf(__u32 cpu)
{
	struct scratch *scratch = scratch_of(cpu);
	__u64 address;
	__u32 i;

	if (!scratch)
		return 0;
	address = (scratch->sample.lr & WIRE_FRAME_ADDRESS_MASK) - 1; /* inside the call */
	if (may_be_transient(scratch, address))
		snapshot_code(cpu, address);
	if (bpf_probe_read_user(scratch->window, LEAF_WORDS * 8, (void *)scratch->sample.sp))
		return 0;
	for (i = 0; i < LEAF_WORDS && scratch->sample.snapshots < LEAF_SNAPSHOTS; i++) {
		address = (scratch->window[i] & WIRE_FRAME_ADDRESS_MASK) - 1;
		if (may_be_transient(scratch, address))
			snapshot_code(cpu, address);
	}
	return 0;
}
