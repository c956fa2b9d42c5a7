// Lists that the history answers with, gathered entry by entry. Pure.
#ifndef CLRSAMPLER_STORE_HISTORY_LISTS_H_
#define CLRSAMPLER_STORE_HISTORY_LISTS_H_

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "formats/profile/profile_model.h"
#include "store/entry.h"
#include "store/history.h"

namespace clrsampler {

// InvalidArgument: compiled methods are asked for by thread, which is not kept.
absl::Status CheckMethodSelection(const HistorySelection& selection);

// The longest pauses of a time, with sums of all. Memory is that of some 2 * limit pauses.
class LongestPauses {
 public:
  explicit LongestPauses(size_t limit) : limit_(limit) {}

  // Into the sums: all pauses of a process in a window, or one.
  void Count(const SegmentDictionary& names, const ProcessTally& tally);
  void Count(const SegmentDictionary& names, const EntryPause& pause);
  // Into the list, if it is among the longest.
  void Keep(const SegmentDictionary& names, const EntryPause& pause);
  HistoryPauses Take() &&;

 private:
  void DropShorter();

  const size_t limit_;
  uint64_t too_short_ns_ = 0;  // with `limit_` longer ones known
  HistoryPauses result_;
};

// Compiled methods, added up by process, container, method and tier.
class MethodSums {
 public:
  void Count(const ProcessTally& tally);
  void Add(const SegmentDictionary& names, const EntryMethod& method);
  size_t size() const { return sums_.size(); }
  // Those that took longest come first.
  HistoryMethods Take(size_t limit) &&;

 private:
  using Key = std::tuple<uint32_t, StringIndex, StringIndex, StringIndex, StringIndex>;

  HistoryMethods result_;
  ProfileModelBuilder texts_;                   // for its table of strings
  absl::flat_hash_map<Key, EntryMethod> sums_;  // pid, comm, container, method, tier
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_HISTORY_LISTS_H_
