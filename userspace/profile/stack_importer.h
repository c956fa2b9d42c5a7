// Frames and stacks of a run's tables -> a model's; each enters it when the first sample needs it.
#ifndef CLRSAMPLER_PROFILE_STACK_IMPORTER_H_
#define CLRSAMPLER_PROFILE_STACK_IMPORTER_H_

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "formats/profile/profile_model.h"
#include "profile/stack_table.h"
#include "symbols/frame.h"

namespace clrsampler {

// Borrows what it is given.
class StackImporter {
 public:
  StackImporter(const FrameTable& frames, const StackTable& stacks, ProfileModelBuilder& builder)
      : frames_(frames), stacks_(stacks), builder_(builder), node_of_(stacks.size()) {}

  NodeIndex Stack(StackId id);
  FrameIndex Frame(FrameId id);

 private:
  const FrameTable& frames_;
  const StackTable& stacks_;
  ProfileModelBuilder& builder_;
  // A map: a window meets few of the frames that a run of days has seen.
  absl::flat_hash_map<FrameId, FrameIndex> frame_of_;
  std::vector<std::optional<NodeIndex>> node_of_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_STACK_IMPORTER_H_
