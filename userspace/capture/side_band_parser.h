// Parser of the perf records that tell what processes do: fork, exit, comm, exec, mmap.
//
// Layout: enum perf_event_type in include/uapi/linux/perf_event.h (Linux 6.1), for events with sample_id_all and
// sample_type kSideBandSampleType. Pure: no IO, no globals.
#ifndef CLRSAMPLER_CAPTURE_SIDE_BAND_PARSER_H_
#define CLRSAMPLER_CAPTURE_SIDE_BAND_PARSER_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "os/clock.h"

namespace clrsampler {

inline constexpr uint64_t kSideBandSampleType = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

enum class SideBandKind {
  kFork,  // a new process (pid != parent_pid) or a new thread of the same process
  kExit,  // a thread ended; the process ended when its last one did
  kComm,  // a thread got a name; with exec: the process runs a new program, its mappings are gone
  kMmap,  // an executable mapping was made
  kLost,  // the kernel had no room for `lost` records of this CPU; 0: the CPU was not followed for a moment
};

struct SideBandEvent {
  SideBandKind kind = SideBandKind::kLost;
  MonotonicTime time;
  int cpu = -1;
  // In the pid namespace of the agent; 0 where that does not show the task.
  uint32_t pid = 0;  // thread group
  uint32_t tid = 0;
  uint32_t parent_pid = 0;  // kFork, kExit
  uint32_t parent_tid = 0;
  bool exec = false;  // kComm
  std::string comm;   // kComm
  uint64_t lost = 0;  // kLost: records
  // kMmap:
  uint64_t start = 0;
  uint64_t length = 0;
  uint64_t page_offset = 0;  // bytes into the file
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  uint64_t inode_generation = 0;
  uint32_t protection = 0;  // PROT_*
  uint32_t flags = 0;       // MAP_*
  std::string path;         // as the process sees it; "//anon", "[vdso]", "/memfd:doublemapper (deleted)"
};

// One record with its perf_event_header. nullopt: of a kind that says nothing about processes (throttling and such).
// DATA_LOSS: shorter than its kind needs.
absl::StatusOr<std::optional<SideBandEvent>> ParseSideBandRecord(std::span<const std::byte> record);

// Hands over the records between positions `tail` and `head` of a perf ring with `data` (a power of two long), putting
// together those that wrap around its end; returns the new tail. A record with an impossible size ends the reading: all
// up to `head` is then skipped and `*damaged` counts it, since no mark says where the next record begins.
uint64_t ReadPerfRing(std::span<const std::byte> data, uint64_t tail, uint64_t head, uint64_t* damaged,
                      absl::FunctionRef<void(std::span<const std::byte> record)> on_record);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_SIDE_BAND_PARSER_H_
