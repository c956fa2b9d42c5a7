/* The program's own text, with the helpers and the section macros of libbpf replaced. */
#include "unit/bpf/code_snapshot_host.h"

#include <stdlib.h>
#include <string.h>

/* In place of <bpf/bpf_helpers.h>. */
#define __BPF_HELPERS__
#define SEC(name)
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val)* name

struct host_bpf host_bpf;

static long bpf_probe_read_user(void* into, __u32 bytes, const void* from) {
  ++host_bpf.reads;
  if (host_bpf.read(host_bpf.memory, (__u64)from, into, bytes)) return 0;
  memset(into, 0, bytes); /* as the kernel does */
  return -14;
}

static long bpf_probe_read_user_str(void* into, __u32 bytes, const void* from) {
  __u32 i;

  for (i = 0; i < bytes; i++) {
    if (!host_bpf.read(host_bpf.memory, (__u64)from + i, (char*)into + i, 1)) return -14;
    if (((char*)into)[i] == 0) return i + 1;
  }
  ((char*)into)[bytes - 1] = 0;
  return bytes;
}

static void* bpf_map_lookup_elem(void* map, const void* key);

#include "code_snapshot.bpf.c"

struct ring_map samples;
struct counters_map counters;
struct tracked_map tracked_processes;
struct transient_map transient_code;
struct transient_heaps_map transient_heaps;
struct scratch_map scratch_by_cpu;

static struct scratch the_scratch;

static void* bpf_map_lookup_elem(void* map, const void* key) {
  if (map == &scratch_by_cpu) return *(const __u32*)key == 0 ? &the_scratch : NULL;
  if (map == &transient_code) return host_bpf.has_code && *(const __u32*)key == 77 ? &host_bpf.code : NULL;
  if (map == &transient_heaps) {
    const struct wire_transient_page* page = key;
    const struct wire_transient_heap* heap = &host_bpf.heap;

    return page->tgid == 77 && page->page >= heap->begin >> WIRE_CODE_PAGE_SHIFT &&
                   page->page <= (heap->end - 1) >> WIRE_CODE_PAGE_SHIFT
               ? &host_bpf.heap
               : NULL;
  }
  abort();
}

void host_reset(void) {
  memset(&the_scratch, 0, sizeof(the_scratch));
  the_scratch.sample.tgid = 77;
  find_transient_code(&the_scratch);
}

void host_snapshot(__u64 address) { snapshot_code(0, address); }
void host_snapshot_callers(__u64 sp, __u64 lr) {
  the_scratch.sample.sp = sp;
  the_scratch.sample.lr = lr;
  snapshot_callers_of_leaf(0);
}
__u32 host_snapshot_count(void) { return the_scratch.sample.snapshots; }
struct wire_code_snapshot host_snapshot_at(__u32 index) {
  return the_scratch.snapshots[index];
}
bool host_may_be_transient(__u64 address) { return may_be_transient(&the_scratch, address); }
