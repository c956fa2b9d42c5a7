#include "store/profile_collector.h"

#include <algorithm>
#include <tuple>

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
  if (rows_.size() >= limits_.rows && by_thread_) PutThreadsTogether();
  if (rows_.size() >= limits_.rows || builder_.model().nodes.size() >= limits_.nodes) {
    return WithHint(absl::ResourceExhaustedError("this time has more distinct stacks than one profile may have"),
                    "ask for a shorter time, or for one process or container");
  }
  const Key key = {Thread(segment, row.thread), Node(segment, row.node), row.state};
  uint64_t& weight = rows_[key];
  weight += std::min(row.weight, kMaxTotalWeight - std::min(weight, kMaxTotalWeight));
  return absl::OkStatus();
}

absl::StatusOr<ProfileModel> ProfileCollector::Build() && {
  std::vector<std::pair<Key, uint64_t>> rows(rows_.begin(), rows_.end());
  rows_ = {};
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.thread, a.first.state, a.first.node) <
           std::tie(b.first.thread, b.first.state, b.first.node);
  });
  for (const auto& [key, weight] : rows) {
    builder_.Add({.thread = key.thread, .stack = key.node, .state = key.state, .weight = weight});
  }
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
                           .tid = by_thread_ ? theirs.tid : 0,
                           .comm = text(process.comm),
                           .name = by_thread_ ? text(theirs.name) : 0,
                           .container_id = text(process.container_id)});
  }
  return own;
}

void ProfileCollector::PutThreadsTogether() {
  by_thread_ = false;
  std::fill(threads_.begin(), threads_.end(), kNotYet);
  const std::vector<ModelThread> apart = builder_.model().threads;
  absl::flat_hash_map<Key, uint64_t> rows;
  for (const auto& [key, weight] : rows_) {
    ModelThread process = apart[key.thread];
    process.tid = 0;
    process.name = 0;
    uint64_t& sum = rows[{builder_.Thread(process), key.node, key.state}];
    sum += std::min(weight, kMaxTotalWeight - std::min(sum, kMaxTotalWeight));
  }
  rows_ = std::move(rows);
}

}  // namespace clrsampler
