// Counts of a profile's samples by stacks and methods, and how much they scatter in the course of the recording. Part
// of the comparison of two profiles (model_diff.h), where the reasons stand. Pure.
//
//   samples ──► rows: the stack of each ──► own weights of stacks ──► StackCounter ──► values
//
// Values are one vector: own weights of methods, total weights of methods, total weights of stacks, weights of groups.
#ifndef CLRSAMPLER_PROFILE_STACK_COUNTS_H_
#define CLRSAMPLER_PROFILE_STACK_COUNTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "formats/profile/profile_model.h"

namespace clrsampler {

// A tree of stacks from which some may be left out: what is left out counts as a part of what stands above it.
struct StackTree {
  static constexpr uint32_t kNoMethod = UINT32_MAX;  // of the root and of processes

  std::vector<uint32_t> parent;     // less than the own index
  std::vector<uint32_t> method;     // of each stack
  std::vector<uint32_t> stands_in;  // the stack that has its weight: itself, unless it is left out
  size_t methods = 0;
};

// Stacks whose weights belong together. No group may be a part of another one.
struct StackGroup {
  std::vector<uint32_t> self;   // stacks of which only what ends at them counts
  std::vector<uint32_t> total;  // stacks that count as a whole
};

class StackCounter {
 public:
  // Both are borrowed.
  StackCounter(const StackTree& tree, std::span<const StackGroup> groups);

  size_t size() const { return 2 * tree_.methods + tree_.parent.size() + groups_.size(); }
  size_t self(size_t method) const { return method; }
  size_t total(size_t method) const { return tree_.methods + method; }
  size_t stack(size_t stack) const { return 2 * tree_.methods + stack; }
  size_t group(size_t group) const { return 2 * tree_.methods + tree_.parent.size() + group; }

  // `self_weights`: of samples that end at each stack.
  std::vector<uint64_t> Count(std::span<const uint64_t> self_weights) const;

 private:
  const StackTree& tree_;
  std::span<const StackGroup> groups_;
  std::vector<bool> outermost_;  // no caller is the same method
};

// How much the values of equal stretches of the recording scatter: chi square, which by chance is about `degrees`. The
// recording is taken from its first sample to its last. Long stretches without any sample are left out before it is
// divided: between recordings that were merged, or where the program slept.
struct StackScatter {
  std::vector<double> chi_square;  // of each value
  double degrees = 0;              // 0: not known
};

struct StackCounts {
  // Stretches, the short ones first. Short ones are many, so they tell best how much a program scatters whose phases
  // are as short; longer phases show in the long ones only.
  static constexpr size_t kStretches[] = {20, 10, 5};

  std::vector<uint64_t> values;  // of StackCounter
  std::array<StackScatter, std::size(kStretches)> scatter;
};

// `rows`: the stack of each of the model's rows.
StackCounts CountStacks(const ProfileModel& model, std::span<const uint32_t> rows, const StackTree& tree,
                        const StackCounter& counter);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_STACK_COUNTS_H_
