// bpf/code_snapshot.bpf.c compiled for this machine: its helpers read a MemoryReader, its maps are one object each.
#ifndef CLRSAMPLER_TESTS_UNIT_BPF_CODE_SNAPSHOT_HOST_H_
#define CLRSAMPLER_TESTS_UNIT_BPF_CODE_SNAPSHOT_HOST_H_

#include <stdbool.h>
#include <stddef.h>

#include "clrsampler/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

// The memory that the helpers find; all of the test's.
struct host_bpf {
  void* memory;
  bool (*read)(void* memory, __u64 address, void* into, size_t bytes);
  struct wire_transient_code code;
  struct wire_transient_heap heap; /* the only one of the map transient_heaps */
  bool has_code;                   /* an entry in the map transient_code */
  __u64 reads;
};
extern struct host_bpf host_bpf;

void host_reset(void);
/* As the walk does for each address of a sample. */
void host_snapshot(__u64 address);
/* As for the leaf of a sample with these registers. */
void host_snapshot_callers(__u64 sp, __u64 lr);
__u32 host_snapshot_count(void);
struct wire_code_snapshot host_snapshot_at(__u32 index);
bool host_may_be_transient(__u64 address);

#ifdef __cplusplus
}
#endif

#endif
