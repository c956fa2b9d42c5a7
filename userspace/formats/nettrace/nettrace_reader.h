// A stream of the form "nettrace", as it comes from a runtime's diagnostics socket: bytes -> records.
//
// Order of the records: as in the stream. Events of one capture thread are in the order of their times. Events of
// several threads are not: between two sequence points they come in pieces, each of one thread (TimeOrder sorts them).
// A stack or a description comes before the first event that needs it.
//
// Memory: one block, the descriptions of at most kMaxNettraceKinds kinds of events, the stacks since the last sequence
// point (at most kMaxNettraceStackBytes, each of at most kMaxNettraceFrames addresses), and a number for each thread.
//
// Threads: one reader belongs to one thread. Errors are final and returned again by every later call: DataLoss,
// Unimplemented (a newer version), ResourceExhausted.
#ifndef CLRSAMPLER_FORMATS_NETTRACE_NETTRACE_READER_H_
#define CLRSAMPLER_FORMATS_NETTRACE_NETTRACE_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "formats/nettrace/block_cutter.h"
#include "formats/nettrace/event_rows.h"
#include "formats/nettrace/lost_events.h"
#include "formats/nettrace/nettrace_records.h"

namespace clrsampler {

inline constexpr size_t kMaxNettraceKinds = 1 << 13;        // the runtime has some 300 of its own
inline constexpr size_t kMaxNettraceStackBytes = 64 << 20;  // runtimes set a sequence point for every 10 MB of events
// Addresses of one stack, innermost first; further ones are passed over. Runtimes send at most 100 (EP_MAX_STACK_DEPTH
// in dotnet/runtime), so one with 101 was cut here.
inline constexpr size_t kMaxNettraceFrames = 101;

class NettraceReader {
 public:
  explicit NettraceReader(NettraceSink& sink) : sink_(sink) {}

  absl::Status Feed(std::span<const std::byte> bytes);
  // No more bytes will come. DataLoss: the stream did not end by itself.
  absl::Status Finish();

 private:
  struct StackPlace {
    size_t begin = 0;  // in addresses_
    size_t count = 0;
  };

  absl::Status Take(const NettraceBlock& block);
  absl::Status TakeStart(std::span<const std::byte> content);
  absl::Status TakeKinds(std::span<const std::byte> content);
  absl::Status TakeStacks(std::span<const std::byte> content);
  absl::Status TakeEvents(std::span<const std::byte> content);
  absl::Status TakeEvent(const EventRow& row);
  absl::Status TakeSequencePoint(std::span<const std::byte> content);

  NettraceSink& sink_;
  BlockCutter cutter_;
  absl::Status error_;
  uint32_t pointer_bytes_ = 0;  // 0: no start yet
  absl::node_hash_map<uint32_t, NettraceMetadata> kinds_;
  absl::flat_hash_map<uint32_t, StackPlace> stacks_;
  std::vector<uint64_t> addresses_;
  LostEvents lost_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NETTRACE_NETTRACE_READER_H_
