// Distinct stacks of a run and how often each was sampled.
#ifndef CLRSAMPLER_PROFILE_STACK_TABLE_H_
#define CLRSAMPLER_PROFILE_STACK_TABLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

using LabelId = uint32_t;
using StackId = uint32_t;

// A stack as it is written: the root label (process) and frames, outermost first.
struct StackView {
  LabelId label = 0;
  std::span<const FrameId> frames;
};

// Main loop only. Memory grows with distinct stacks: 4 bytes a frame and about 60 bytes a stack.
class StackTable {
 public:
  StackTable() = default;
  StackTable(const StackTable&) = delete;  // the hash functions point back at the table
  StackTable& operator=(const StackTable&) = delete;

  LabelId InternLabel(absl::string_view label);
  const std::string& label(LabelId id) const { return labels_[id]; }

  StackId Intern(LabelId label, std::span<const FrameId> frames);
  bool Has(LabelId label, std::span<const FrameId> frames) const { return ids_.contains(StackView{label, frames}); }
  void Add(StackId stack, uint64_t count) { counts_[stack] += count; }

  // Puts other frames in the place of some, in all stacks; stacks that have become equal are one. Gives the new id of
  // each stack by its old one. For the end of a run.
  std::vector<StackId> ReplaceFrames(const absl::flat_hash_map<FrameId, FrameId>& replacements);

  StackView stack(StackId id) const;
  uint64_t count(StackId id) const { return counts_[id]; }
  size_t size() const { return counts_.size(); }
  uint64_t total() const;

 private:
  // Stacks lie one behind the other in one arena; a stack is its range there.
  struct Range {
    uint32_t begin = 0;
    uint32_t length = 0;
    LabelId label = 0;
  };
  struct Hash {
    using is_transparent = void;
    const StackTable* table;
    size_t operator()(StackId id) const { return (*this)(table->stack(id)); }
    size_t operator()(const StackView& view) const {
      return absl::HashOf(
          view.label, absl::string_view(reinterpret_cast<const char*>(view.frames.data()), view.frames.size_bytes()));
    }
  };
  struct Equal {
    using is_transparent = void;
    const StackTable* table;
    bool operator()(StackId a, StackId b) const { return a == b; }
    bool operator()(const StackView& a, StackId b) const { return Same(a, table->stack(b)); }
    bool operator()(StackId a, const StackView& b) const { return Same(table->stack(a), b); }
    static bool Same(const StackView& a, const StackView& b);
  };

  std::vector<std::string> labels_;
  absl::flat_hash_map<std::string, LabelId> label_ids_;
  std::vector<FrameId> arena_;
  std::vector<Range> stacks_;
  std::vector<uint64_t> counts_;
  absl::flat_hash_set<StackId, Hash, Equal> ids_{0, Hash{this}, Equal{this}};
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_STACK_TABLE_H_
