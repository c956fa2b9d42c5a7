#include "profile/model_tables.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Kinds that a foreign format does not know count as native code.
FrameKind KindOf(ModelFrameKind kind) {
  switch (kind) {
    case ModelFrameKind::kKernel:
      return FrameKind::kKernel;
    case ModelFrameKind::kJit:
    case ModelFrameKind::kInlined:
      return FrameKind::kJit;
    case ModelFrameKind::kR2r:
      return FrameKind::kR2r;
    case ModelFrameKind::kAot:
      return FrameKind::kAot;
    case ModelFrameKind::kRole:
      return FrameKind::kRole;
    case ModelFrameKind::kMark:
      return FrameKind::kMark;
    case ModelFrameKind::kType:
      return FrameKind::kType;
    case ModelFrameKind::kUnknown:
    case ModelFrameKind::kNative:
      break;
  }
  return FrameKind::kNative;
}

FrameId FrameOf(const ProfileModel& model, const ModelFrame& from, FrameTable& frames) {
  Frame frame;
  frame.kind = KindOf(from.kind);
  frame.text = std::string(model.text(from.name));
  frame.module = std::string(model.text(from.module));
  if (from.line != 0) {
    frame.place.file = std::string(model.text(from.source_file));
    frame.place.line = from.line;
  }
  return frames.Intern(std::move(frame));
}

}  // namespace

absl::Status ModelTables::Fill(const ProfileModel& model, size_t max_frames) {
  std::vector<FrameId> frame_of;
  frame_of.reserve(model.frames.size());
  for (const ModelFrame& frame : model.frames) frame_of.push_back(FrameOf(model, frame, frames_));
  std::vector<SampleLog::Thread> threads;
  for (const ModelThread& thread : model.threads) {
    threads.push_back({thread.pid, thread.tid, std::string(model.text(thread.comm)),
                       std::string(model.text(thread.name)), std::string(model.text(thread.container_id))});
  }
  const LabelId label = stacks_.InternLabel("");
  std::vector<std::optional<StackId>> stack_of(model.nodes.size());
  std::vector<FrameId> stack;
  size_t entries = 0;
  for (size_t row = 0; row < model.samples.size(); ++row) {
    const NodeIndex leaf = model.samples.stack[row];
    if (!stack_of[leaf]) {
      stack.clear();
      for (NodeIndex at = leaf; at != kRootNode; at = model.nodes[at].parent) {
        stack.push_back(frame_of[model.nodes[at].frame]);
      }
      entries += stack.size();
      if (entries > max_frames) {
        return WithHint(
            absl::ResourceExhaustedError(absl::StrCat("the stacks have more than ", max_frames, " frames together")),
            "look at a part of the profile: clrsampler convert --from 0s --to 10s IN OUT.json");
      }
      std::reverse(stack.begin(), stack.end());
      stack_of[leaf] = stacks_.Intern(label, stack);
    }
    const uint64_t weight = model.samples.weight_of(row);
    stacks_.Add(*stack_of[leaf], weight);
    samples_.Add(threads[model.samples.thread[row]], MonotonicTime{model.samples.time_of(row)}, *stack_of[leaf],
                 model.samples.state_of(row), weight);
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
