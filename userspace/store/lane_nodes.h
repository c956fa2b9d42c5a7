// The meaning of stacks' nodes for lanes of threads. Pure.
#ifndef CLRSAMPLER_STORE_LANE_NODES_H_
#define CLRSAMPLER_STORE_LANE_NODES_H_

#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "profile/lane_category.h"

namespace clrsampler {

class LaneNodes {
 public:
  // `nodes`: each behind its parent. `method` as LaneQuestion has it.
  LaneNodes(std::span<const StackNode> nodes, std::span<const ModelFrame> frames,
            absl::FunctionRef<absl::string_view(StringIndex)> text, absl::string_view method);

  // The state of samples of CPU time: by the frame that ran, or by what the runtime was called for.
  LaneCategory Running(NodeIndex node) const { return running_[node]; }
  // The state of waits. The stack of the thread that ended one may follow, and says nothing of it.
  LaneCategory Waiting(NodeIndex node) const { return idle_[node] ? LaneCategory::kIdle : LaneCategory::kWaiting; }
  bool Counts(NodeIndex node) const { return counts_[node]; }

 private:
  std::vector<LaneCategory> running_;
  std::vector<bool> idle_, counts_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_LANE_NODES_H_
