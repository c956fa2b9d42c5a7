// Rows of many entries and segments added up to one profile.
#ifndef CLRSAMPLER_STORE_PROFILE_COLLECTOR_H_
#define CLRSAMPLER_STORE_PROFILE_COLLECTOR_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "store/entry.h"
#include "store/segment_dictionary.h"

namespace clrsampler {

class ProfileCollector {
 public:
  struct Limits {
    // Beyond, the threads of a process are put together to one (tid 0, no name); beyond again, the profile fails. With
    // the dictionary of a segment and the answer these are some 64 MB.
    size_t rows = 1 << 18;
    size_t nodes = 1 << 19;
  };
  ProfileCollector() : ProfileCollector(Limits()) {}
  explicit ProfileCollector(const Limits& limits) : limits_(limits) {}

  // The rows that follow are of this segment.
  void BeginSegment(const SegmentDictionary& segment);
  // RESOURCE_EXHAUSTED: there are too many distinct stacks.
  absl::Status Add(const SegmentDictionary& segment, const StackRow& row);

  ProfileMeta& meta() { return builder_.meta(); }
  absl::StatusOr<ProfileModel> Build() &&;

 private:
  static constexpr uint32_t kNotYet = ~uint32_t{0};
  struct Key {
    ThreadIndex thread;
    NodeIndex node;
    SampleState state;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.thread, key.node, key.state);
    }
  };

  FrameIndex Frame(const SegmentDictionary& segment, FrameIndex frame);
  NodeIndex Node(const SegmentDictionary& segment, NodeIndex node);
  ThreadIndex Thread(const SegmentDictionary& segment, uint32_t thread);
  void PutThreadsTogether();

  const Limits limits_;
  ProfileModelBuilder builder_;
  absl::flat_hash_map<Key, uint64_t> rows_;
  bool by_thread_ = true;
  absl::flat_hash_map<StringIndex, StringIndex> urls_;  // of the segment, by its files
  // Our own numbers of the segment's entries.
  std::vector<uint32_t> frames_, nodes_, threads_;
  std::vector<NodeIndex> way_down_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_PROFILE_COLLECTOR_H_
