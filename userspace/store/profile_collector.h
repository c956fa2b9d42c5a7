// Rows of many entries and segments added up to one profile.
#ifndef CLRSAMPLER_STORE_PROFILE_COLLECTOR_H_
#define CLRSAMPLER_STORE_PROFILE_COLLECTOR_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "profile/sample_sums.h"
#include "store/entry.h"
#include "store/segment_dictionary.h"

namespace clrsampler {

class ProfileCollector {
 public:
  explicit ProfileCollector(const SampleSums::Limits& limits = {}) : sums_(builder_, limits) {}

  // The rows that follow are of this segment.
  void BeginSegment(const SegmentDictionary& segment);
  // Errors of SampleSums::MakeRoom.
  absl::Status Add(const SegmentDictionary& segment, const StackRow& row);

  ProfileMeta& meta() { return builder_.meta(); }
  absl::StatusOr<ProfileModel> Build() &&;

 private:
  static constexpr uint32_t kNotYet = ~uint32_t{0};

  FrameIndex Frame(const SegmentDictionary& segment, FrameIndex frame);
  NodeIndex Node(const SegmentDictionary& segment, NodeIndex node);
  ThreadIndex Thread(const SegmentDictionary& segment, uint32_t thread);

  ProfileModelBuilder builder_;
  SampleSums sums_;
  absl::flat_hash_map<StringIndex, StringIndex> urls_;  // of the segment, by its files
  // Our own numbers of the segment's entries.
  std::vector<uint32_t> frames_, nodes_, threads_;
  std::vector<NodeIndex> way_down_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_PROFILE_COLLECTOR_H_
