// The dictionary of the segment that is being written. One thread.
#ifndef CLRSAMPLER_STORE_SEGMENT_BUILDER_H_
#define CLRSAMPLER_STORE_SEGMENT_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "store/segment_dictionary.h"

namespace clrsampler {

class SegmentBuilder {
 public:
  StringIndex String(absl::string_view text);
  uint32_t Process(const SegmentProcess& process);
  uint32_t Thread(const SegmentThread& thread);
  // For each node of the model the segment's own. Takes its sources too, without their text.
  std::vector<NodeIndex> Nodes(const ProfileModel& model);

  // A text that is larger than any dictionary may be has come in: nothing more is taken.
  bool ok() const { return names_.ok(); }
  DictionarySizes sizes() const;
  std::string AdditionSince(const DictionarySizes& begin) const;
  size_t memory_bytes() const;  // about

 private:
  ProfileModelBuilder names_;
  size_t text_bytes_ = 0;
  std::vector<SegmentProcess> processes_;
  std::vector<SegmentThread> threads_;
  absl::flat_hash_map<SegmentProcess, uint32_t> process_ids_;
  absl::flat_hash_map<SegmentThread, uint32_t> thread_ids_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_SEGMENT_BUILDER_H_
