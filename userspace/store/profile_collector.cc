#include "store/profile_collector.h"

#include <algorithm>

#include "formats/profile/frame_texts.h"
#include "status/status.h"

namespace clrsampler {

void ProfileCollector::BeginSegment(const SegmentDictionary& segment) {
  frames_.assign(segment.sizes().frames, kNotYet);
  nodes_.assign(segment.sizes().nodes, kNotYet);
  nodes_[kRootNode] = kRootNode;
  threads_.assign(segment.sizes().threads, kNotYet);
  urls_.clear();
  for (size_t i = 0; i < segment.sizes().sources; ++i) urls_.try_emplace(segment.source(i).file, segment.source(i).url);
}

absl::Status ProfileCollector::Add(const SegmentDictionary& segment, const StackRow& row) {
  const bool by_thread = sums_.by_thread();
  RETURN_IF_ERROR(sums_.MakeRoom());
  if (by_thread != sums_.by_thread()) std::fill(threads_.begin(), threads_.end(), kNotYet);
  sums_.Add(Thread(segment, row.thread), Node(segment, row.node), row.state, row.weight);
  return absl::OkStatus();
}

absl::StatusOr<ProfileModel> ProfileCollector::Build() && {
  sums_.Finish();
  return std::move(builder_).Build();
}

FrameIndex ProfileCollector::Frame(const SegmentDictionary& segment, FrameIndex frame) {
  uint32_t& own = frames_[frame];
  if (own == kNotYet) {
    const ModelFrame& theirs = segment.frame(frame);
    const auto text = [&](StringIndex index) { return builder_.String(segment.text(index)); };
    own = builder_.Frame(WithTexts(theirs, text));
    const auto url = urls_.find(theirs.source_file);
    if (url != urls_.end()) builder_.Source(text(theirs.source_file), text(url->second), "");
  }
  return own;
}

NodeIndex ProfileCollector::Node(const SegmentDictionary& segment, NodeIndex node) {
  way_down_.clear();
  for (; nodes_[node] == kNotYet; node = segment.node(node).parent) way_down_.push_back(node);
  NodeIndex own = nodes_[node];
  for (auto next = way_down_.rbegin(); next != way_down_.rend(); ++next) {
    own = builder_.Node(own, Frame(segment, segment.node(*next).frame));
    nodes_[*next] = own;
  }
  return own;
}

ThreadIndex ProfileCollector::Thread(const SegmentDictionary& segment, uint32_t thread) {
  uint32_t& own = threads_[thread];
  if (own == kNotYet) {
    const SegmentThread& theirs = segment.thread(thread);
    const SegmentProcess& process = segment.process(theirs.process);
    const auto text = [&](StringIndex index) { return builder_.String(segment.text(index)); };
    own = builder_.Thread({.pid = process.pid,
                           .tid = sums_.by_thread() ? theirs.tid : 0,
                           .comm = text(process.comm),
                           .name = sums_.by_thread() ? text(theirs.name) : 0,
                           .container_id = text(process.container_id)});
  }
  return own;
}

}  // namespace clrsampler
