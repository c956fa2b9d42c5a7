// Each sample of a run with its time, thread and state, for the formats that have more than counted stacks.
//
// 17 bytes a sample, 8 more where weights differ and 4 more with links; with a limit (143 MB). Samples behind the limit
// are counted by thread, stack and state without their times, so that weights stay exact however long a run is. The
// limit is 14 minutes of 100 busy CPUs at 99 Hz, or a day of one.
#ifndef CLRSAMPLER_PROFILE_SAMPLE_LOG_H_
#define CLRSAMPLER_PROFILE_SAMPLE_LOG_H_

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "os/clock.h"
#include "profile/stack_table.h"
#include "profile/trace_links.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class SampleLog {
 public:
  struct Thread {
    uint32_t pid = 0;
    uint32_t tid = 0;
    std::string comm;  // of the process
    std::string name;
    std::string container_id;

    friend bool operator==(const Thread&, const Thread&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Thread& t) {
      return H::combine(std::move(h), t.pid, t.tid, t.comm, t.name, t.container_id);
    }
  };
  struct Row {
    uint64_t time_ns = kNoTime;  // CLOCK_MONOTONIC
    uint32_t thread = 0;
    StackId stack = 0;
    SampleState state = SampleState::kNone;
    uint64_t weight = 1;
    uint32_t link = 0;  // of links()
  };

  static constexpr size_t kMaxTimed = size_t{1} << 23;  // a power of two: so do vectors grow
  // 2^18 links: 24 bytes each, twice, and their hash table.
  static constexpr size_t kMaxLinks = size_t{1} << 18;
  explicit SampleLog(size_t max_timed = kMaxTimed) : max_timed_(max_timed) {}

  void Add(const Thread& thread, MonotonicTime time, StackId stack, SampleState state, uint64_t weight,
           const TraceLink& link = {});

  // After StackTable::ReplaceFrames: the stacks' new numbers by their old ones.
  void ReplaceStacks(std::span<const StackId> replacements);

  const std::vector<Thread>& threads() const { return threads_; }
  const TraceLinks& links() const { return links_; }
  // Samples that have a link which is not kept: there are too many links, or the sample is behind the limit.
  uint64_t links_left_out() const { return links_.left_out() + untimed_links_; }
  uint64_t untimed() const { return untimed_; }  // samples that came after the limit

  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (size_t i = 0; i < stacks_.size(); ++i) {
      visit(Row{times_[i], row_threads_[i], stacks_[i], states_[i], weights_.empty() ? 1 : weights_[i],
                row_links_.empty() ? 0 : row_links_[i]});
    }
    for (const auto& [key, weight] : counted_) {
      visit(Row{kNoTime, std::get<0>(key), std::get<1>(key), std::get<2>(key), weight});
    }
  }

 private:
  const size_t max_timed_;
  std::vector<Thread> threads_;
  absl::flat_hash_map<Thread, uint32_t> thread_ids_;
  std::vector<uint64_t> times_;
  std::vector<uint32_t> row_threads_;
  std::vector<StackId> stacks_;
  std::vector<SampleState> states_;
  std::vector<uint64_t> weights_;    // empty: all are 1
  std::vector<uint32_t> row_links_;  // empty: all are 0
  TraceLinks links_{kMaxLinks};
  absl::flat_hash_map<std::tuple<uint32_t, StackId, SampleState>, uint64_t> counted_;
  uint64_t untimed_ = 0, untimed_links_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_SAMPLE_LOG_H_
