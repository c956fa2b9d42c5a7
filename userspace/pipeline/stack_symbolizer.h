// A raw sample -> a stack of named frames, outermost first, with caches of whole stacks and of addresses.
#ifndef CLRSAMPLER_PIPELINE_STACK_SYMBOLIZER_H_
#define CLRSAMPLER_PIPELINE_STACK_SYMBOLIZER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "pipeline/kernel_symbolizer.h"
#include "process/per_process.h"
#include "status/thread_checker.h"
#include "symbols/symbolizer.h"
#include "unwind/frame_chain.h"
#include "unwind/raw_stack.h"

namespace clrsampler {

// The outermost frame of a stack that was cut off.
inline constexpr absl::string_view kDeeperThanLimit = "[deeper than the limit of frames]";

struct NamedStack {
  std::vector<FrameId> frames;  // outermost first
  uint32_t sources = 0;         // bit for each NameSource that named a frame
  // Where in `frames` each user frame stands, leaf first: one that is folded into its callee where that stands. Empty
  // unless it was asked for.
  std::vector<uint32_t> places;
  // The times for which the stack's addresses mean these frames.
  MonotonicTime from = MonotonicTime::Min();
  MonotonicTime until = MonotonicTime::Max();
  uint64_t generation = 0;
};

struct StackCacheCounters {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t flushes = 0;  // the cache was full and emptied
};

// Main loop only.
class StackSymbolizer {
 public:
  StackSymbolizer(Symbolizer& symbolizer, KernelSymbolizer& kernel, FrameTable& frames, bool with_places = false)
      : symbolizer_(symbolizer), kernel_(kernel), frames_(frames), with_places_(with_places) {}

  // The result is valid until the next call. `user` is what unwinding made of `raw`.
  const NamedStack& Name(const Process& process, const RawStack& raw, const UserStack& user, MonotonicTime time);

  // The frame of one address.
  FrameId NameOf(const Process& process, const UserFrame& frame, MonotonicTime time);

  const StackCacheCounters& counters() const { return counters_; }

 private:
  // 64 Ki stacks of 60 frames are some 50 MB at the worst; steady programs have hundreds.
  static constexpr size_t kMaxCached = 64 * 1024;
  // Addresses of one process: 4 MB. Stacks differ mostly in their leaves; their callers are met again and again.
  static constexpr size_t kMaxAddresses = 64 * 1024;
  static constexpr size_t kMaxAddressesOfAll = 1024 * 1024;

  // All that the frames depend on besides process, time and generation.
  struct Key {
    uint32_t exec_count = 0;
    std::vector<uint64_t> addresses;  // kernel, 0, user with what is doubted, end; all leaf first
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.exec_count, key.addresses);
    }
  };

  struct NamedAddress {
    Resolution answer;
    uint64_t generation = 0;
  };
  struct OfProcess {
    uint32_t exec_count = 0;
    absl::flat_hash_map<Key, NamedStack> stacks;
    absl::flat_hash_map<uint64_t, NamedAddress> addresses;  // of the program of `exec_count`, by lookup address
  };

  OfProcess& Of(const Process& process);
  void Resolve(const Process& process, const RawStack& raw, const UserStack& user, MonotonicTime time,
               uint64_t generation, OfProcess& of_process, NamedStack& out);
  Resolution ResolveAddress(const Process& process, const UserFrame& frame, MonotonicTime time, uint64_t generation,
                            OfProcess& of_process);

  FrameId Mark(absl::string_view text);

  Symbolizer& symbolizer_;
  KernelSymbolizer& kernel_;
  FrameTable& frames_;
  const bool with_places_;
  Key key_;  // reused, so that a cache hit allocates nothing
  // By process, so that forgetting one of the thousands that a build runs costs nothing for the others.
  PerProcess<OfProcess> cache_;
  size_t cached_ = 0;     // stacks of all processes
  size_t addresses_ = 0;  // likewise
  StackCacheCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_STACK_SYMBOLIZER_H_
