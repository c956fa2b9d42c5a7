#include "profile/run_model.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace clrsampler {
namespace {

ModelFrameKind KindOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::kKernel:
      return ModelFrameKind::kKernel;
    case FrameKind::kNative:
      return ModelFrameKind::kNative;
    case FrameKind::kJit:
      return ModelFrameKind::kJit;
    case FrameKind::kR2r:
      return ModelFrameKind::kR2r;
    case FrameKind::kAot:
      return ModelFrameKind::kAot;
    case FrameKind::kMark:
      return ModelFrameKind::kMark;
    case FrameKind::kRole:
      return ModelFrameKind::kRole;
  }
  return ModelFrameKind::kUnknown;
}

// Frames and stacks enter the model when the first sample needs them.
class StackImporter {
 public:
  StackImporter(const FrameTable& frames, const StackTable& stacks, ProfileModelBuilder& builder)
      : frames_(frames), stacks_(stacks), builder_(builder), frame_of_(frames.size()), node_of_(stacks.size()) {}

  NodeIndex Stack(StackId id) {
    std::optional<NodeIndex>& node = node_of_[id];
    if (!node) {
      node = kRootNode;
      for (const FrameId frame : stacks_.stack(id).frames) node = builder_.Node(*node, Frame(frame));
    }
    return *node;
  }

 private:
  FrameIndex Frame(FrameId id) {
    std::optional<FrameIndex>& index = frame_of_[id];
    if (index) return *index;
    const clrsampler::Frame& frame = frames_.at(id);
    ModelFrame copy;
    copy.kind = KindOf(frame.kind);
    copy.name = builder_.String(frame.text);
    if (frame.named()) copy.source = builder_.String(NameSourceText(frame.source));
    copy.module = builder_.String(frame.module);
    copy.tier = builder_.String(frame.tier);
    index = builder_.Frame(copy);
    return *index;
  }

  const FrameTable& frames_;
  const StackTable& stacks_;
  ProfileModelBuilder& builder_;
  std::vector<std::optional<FrameIndex>> frame_of_;
  std::vector<std::optional<NodeIndex>> node_of_;
};

}  // namespace

absl::StatusOr<ProfileModel> CountedRunModel(const FrameTable& frames, const StackTable& stacks, ProfileMeta meta) {
  ProfileModelBuilder builder;
  builder.meta() = std::move(meta);
  builder.meta().whole_host = false;  // the labels have the pids already
  StackImporter importer(frames, stacks, builder);
  for (StackId id = 0; id < stacks.size(); ++id) {
    if (stacks.count(id) == 0) continue;
    ModelThread thread;
    thread.comm = builder.String(stacks.label(stacks.stack(id).label));
    builder.Add({.thread = builder.Thread(thread), .stack = importer.Stack(id), .weight = stacks.count(id)});
  }
  return std::move(builder).Build();
}

absl::StatusOr<ProfileModel> SampledRunModel(const FrameTable& frames, const StackTable& stacks,
                                             const SampleLog& samples, MonotonicTime began, ProfileMeta meta) {
  ProfileModelBuilder builder;
  builder.meta() = std::move(meta);
  std::vector<ThreadIndex> threads;
  for (const SampleLog::Thread& thread : samples.threads()) {
    threads.push_back(builder.Thread({thread.pid, thread.tid, builder.String(thread.comm), builder.String(thread.name),
                                      builder.String(thread.container_id)}));
  }
  StackImporter importer(frames, stacks, builder);
  samples.ForEach([&](const SampleLog::Row& row) {
    builder.Add({.time_ns = row.time_ns == kNoTime ? kNoTime : row.time_ns - std::min(row.time_ns, began.ns),
                 .thread = threads[row.thread],
                 .stack = importer.Stack(row.stack),
                 .state = row.state,
                 .weight = row.weight});
  });
  return std::move(builder).Build();
}

}  // namespace clrsampler
