#include "profile/stack_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace clrsampler {

bool StackTable::Equal::Same(const StackView& a, const StackView& b) {
  return a.label == b.label && std::equal(a.frames.begin(), a.frames.end(), b.frames.begin(), b.frames.end());
}

LabelId StackTable::InternLabel(absl::string_view label) {
  main_loop_.Check();
  const auto found = label_ids_.find(label);
  if (found != label_ids_.end()) return found->second;
  const LabelId id = static_cast<LabelId>(labels_.size());
  labels_.emplace_back(label);
  label_ids_.emplace(labels_.back(), id);
  return id;
}

StackId StackTable::Intern(LabelId label, std::span<const FrameId> frames) {
  main_loop_.Check();
  const auto found = ids_.find(StackView{label, frames});
  if (found != ids_.end()) return *found;
  const StackId id = static_cast<StackId>(stacks_.size());
  stacks_.push_back({static_cast<uint32_t>(arena_.size()), static_cast<uint32_t>(frames.size()), label});
  arena_.insert(arena_.end(), frames.begin(), frames.end());
  counts_.push_back(0);
  ids_.insert(id);
  return id;
}

std::vector<StackId> StackTable::ReplaceFrames(const absl::flat_hash_map<FrameId, FrameId>& replacements) {
  main_loop_.Check();
  std::vector<StackId> new_ids(stacks_.size());
  std::iota(new_ids.begin(), new_ids.end(), StackId{0});
  if (replacements.empty()) return new_ids;
  const std::vector<FrameId> arena = std::exchange(arena_, {});
  const std::vector<Range> stacks = std::exchange(stacks_, {});
  const std::vector<uint64_t> counts = std::exchange(counts_, {});
  ids_.clear();
  std::vector<FrameId> frames;
  for (StackId id = 0; id < stacks.size(); ++id) {
    frames.assign(arena.begin() + stacks[id].begin, arena.begin() + stacks[id].begin + stacks[id].length);
    for (FrameId& frame : frames) {
      if (const auto found = replacements.find(frame); found != replacements.end()) frame = found->second;
    }
    new_ids[id] = Intern(stacks[id].label, frames);
    Add(new_ids[id], counts[id]);
  }
  return new_ids;
}

StackView StackTable::stack(StackId id) const {
  const Range& range = stacks_[id];
  return {range.label, std::span<const FrameId>(arena_).subspan(range.begin, range.length)};
}

uint64_t StackTable::total() const { return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0}); }

}  // namespace clrsampler
