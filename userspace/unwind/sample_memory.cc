#include "unwind/sample_memory.h"

#include <algorithm>

namespace clrsampler {

void SampleMemory::Assign(const RawStack& stack) {
  runs_.clear();
  last_ = 0;
  uint64_t next = stack.sample().sp;
  const std::span<const uint64_t> tail = stack.ForEachFrame([&](const RawStack::Frame& frame) {
    Append(frame.gap_address, frame.gap);
    // The pair lies behind the gap in the record, too.
    Append(frame.frame_address, {frame.gap.data() + frame.gap.size(), 2});
    next = frame.frame_address + 2 * sizeof(uint64_t);
  });
  Append(next, tail);
}

void SampleMemory::Append(uint64_t begin, std::span<const uint64_t> words) {
  if (words.empty()) return;
  // Our BPF program sends frames in rising order; a record that does not is damaged, and its words are not used.
  if (!runs_.empty() && begin < runs_.back().end()) return;
  if (!runs_.empty() && begin == runs_.back().end() &&
      runs_.back().words.data() + runs_.back().words.size() == words.data()) {
    runs_.back().words = {runs_.back().words.data(), runs_.back().words.size() + words.size()};
    return;
  }
  runs_.push_back({begin, words});
}

const SampleMemory::Run* SampleMemory::RunAt(uint64_t address) const {
  const auto holds = [&](size_t i) {
    return i < runs_.size() && runs_[i].begin <= address && address < runs_[i].end();
  };
  if (holds(last_)) return &runs_[last_];
  if (holds(last_ + 1)) return &runs_[++last_];
  const auto next = std::upper_bound(runs_.begin(), runs_.end(), address,
                                     [](uint64_t value, const Run& run) { return value < run.begin; });
  if (next == runs_.begin()) return nullptr;
  const size_t at = static_cast<size_t>(std::prev(next) - runs_.begin());
  if (!holds(at)) return nullptr;
  last_ = at;
  return &runs_[at];
}

std::optional<uint64_t> SampleMemory::Word(uint64_t address) const {
  const Run* run = RunAt(address);
  if (run == nullptr || (address - run->begin) % sizeof(uint64_t) != 0) return std::nullopt;
  return run->words[(address - run->begin) / sizeof(uint64_t)];
}

}  // namespace clrsampler
