// Takes parts of one model over into another, each once and when it is first needed.
#ifndef CLRSAMPLER_PROFILE_MODEL_COPIER_H_
#define CLRSAMPLER_PROFILE_MODEL_COPIER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "formats/profile/frame_texts.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// Borrows both. Not for use after the builder's Build.
class ModelCopier {
 public:
  // Frames of nodes for which `keep` says false are left out of stacks. Empty: all are kept.
  using KeepNode = std::function<bool(NodeIndex)>;
  ModelCopier(const ProfileModel& from, ProfileModelBuilder& to, KeepNode keep = nullptr)
      : from_(from),
        to_(to),
        keep_(std::move(keep)),
        strings_(from.strings.size(), kNone),
        frames_(from.frames.size(), kNone),
        nodes_(from.nodes.size(), kNone),
        threads_(from.threads.size(), kNone) {
    nodes_[kRootNode] = kRootNode;
  }

  StringIndex String(StringIndex index) {
    if (strings_[index] == kNone) strings_[index] = to_.String(from_.text(index));
    return strings_[index];
  }

  FrameIndex Frame(FrameIndex index) {
    if (frames_[index] != kNone) return frames_[index];
    const ModelFrame frame = WithTexts(from_.frames[index], [&](StringIndex text) { return String(text); });
    return frames_[index] = to_.Frame(frame);
  }

  // Copies the files that are named by frames which were taken over.
  void Sources() {
    for (const ModelSource& source : from_.sources) {
      if (strings_[source.file] != kNone) to_.Source(strings_[source.file], String(source.url), source.text);
    }
  }

  // Copies the events of threads that were taken over, and of their processes as a whole. `place` gives each the times
  // that it has there, or leaves it out.
  void Events(absl::FunctionRef<std::optional<ModelEvent>(const ModelEvent&)> place) {
    absl::flat_hash_set<uint32_t> pids;
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (threads_[i] != kNone) pids.insert(from_.threads[i].pid);
    }
    for (const ModelEvent& event : from_.events) {
      const ModelThread& thread = from_.threads[event.thread];
      if (threads_[event.thread] == kNone && (thread.tid != 0 || !pids.contains(thread.pid))) continue;
      std::optional<ModelEvent> placed = place(event);
      if (!placed) continue;
      placed->thread = Thread(event.thread);
      placed->name = String(event.name);
      placed->detail = String(event.detail);
      to_.Event(*placed);
    }
  }

  NodeIndex Stack(NodeIndex leaf) {
    path_.clear();
    NodeIndex node = leaf;
    for (; nodes_[node] == kNone; node = from_.nodes[node].parent) path_.push_back(node);
    for (size_t i = path_.size(); i-- > 0;) {
      const NodeIndex parent = nodes_[from_.nodes[path_[i]].parent];
      nodes_[path_[i]] = keep_ && !keep_(path_[i]) ? parent : to_.Node(parent, Frame(from_.nodes[path_[i]].frame));
    }
    return nodes_[leaf];
  }

  LinkIndex Link(LinkIndex index) { return to_.Link(from_.links[index]); }

  ThreadIndex Thread(ThreadIndex index) {
    if (threads_[index] != kNone) return threads_[index];
    ModelThread thread = from_.threads[index];
    for (StringIndex ModelThread::*text : {&ModelThread::comm, &ModelThread::name, &ModelThread::container_id}) {
      thread.*text = String(thread.*text);
    }
    return threads_[index] = to_.Thread(thread);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  const ProfileModel& from_;
  ProfileModelBuilder& to_;
  const KeepNode keep_;
  std::vector<uint32_t> strings_, frames_, nodes_, threads_;  // the other model's, by this one's
  std::vector<NodeIndex> path_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_MODEL_COPIER_H_
