// Two profiles side by side: what each method and each stack weighs before and after, and which changes are more than
// noise.
//
// Subjects of the comparison. Methods by their names: own weight (samples that end in it) and total weight (samples in
// whose stack it is, once each). Stacks as the nodes of one tree, by the names from the process down. Threads, pids and
// tiers are left out: they differ between any two runs.
//
// Statistic. Let a and b be the numbers of samples before and after. If nothing has changed, b is binomial of a + b
// with the probability q that the normalisation gives (A and B samples: B / (A + B)). Where shares are compared, its
// variance is less by the share itself: all samples are some method's. The test is two-sided, by the normal
// approximation with continuity correction, and only made where (a + b) min(q, 1 - q) is at least 5. Samples that
// follow each other are alike (phases, collections), so the variance is multiplied by their dispersion. That is how
// much the counts of 20, 10 or 5 equal stretches of each recording scatter more than chance has it. It is chi square by
// degrees of freedom, the largest of the three, at least 1. It is taken for each method and stack by itself, where
// samples have times. Stretches begin at the first sample, and leave out long times without any. Changes that are
// slower than a fifth of a recording do not show in it: other work on the machine, or another length of run. The
// methods, and the stacks, are marked by the procedure of Benjamini and Hochberg at a false discovery rate of
// kFalseDiscoveryRate. Where nothing has changed that rate is the chance of any mark at all: one in 100 pairs of
// recordings for each of the three tables.
//
// Inlining. A JIT compiles a method into its caller in one run and not in the next, by what it has seen so far. Its
// weight is then its caller's own, and its callees stand below that: no time is gained or lost, but whole methods come
// and go. So stacks are looked for whose callees stand elsewhere below the same caller in the other recording, and
// stacks without callees that only one recording has. For each such caller a sum is made that no inlining changes: what
// ends in it and in these stacks, and all that is below them. Where that sum is the same, and is known well enough to
// tell that from a real change, the stacks are left out of the tree. All is counted and tested again, and marks stay on
// what is significant then too. The others are `moved`. A method that was replaced by another one at the same cost
// looks alike.
//
// Recordings whose weights are times of unknown parts have no such test; nothing is marked then.
#ifndef CLRSAMPLER_PROFILE_MODEL_DIFF_H_
#define CLRSAMPLER_PROFILE_MODEL_DIFF_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

inline constexpr double kFalseDiscoveryRate = 0.01;

// The bound of the stacks of both profiles together, which take some hundred bytes each. Each process has its own: a
// file of a few megabytes may have 100,000 processes with thousands of stacks.
inline constexpr size_t kMaxDiffStacks = size_t{1} << 22;

enum class DiffBasis : uint8_t {
  kShare,    // of the whole profile: both have the same weight
  kCpuTime,  // CPU time in a second of recording
};

struct WeightChange {
  uint64_t before = 0;  // as recorded
  uint64_t after = 0;
  double change = 0;      // after less before, this one normalised to the other recording; in weights of `after`
  double dispersion = 1;  // of the counts
  double errors = 0;      // the change in standard errors, without sign; 0 where it is not tested
  double p = 1;           // chance of such a change where nothing has changed; 1 where it is not tested
  bool significant = false;
  bool moved = false;  // would be significant, but callers and callees lost as much or got it: inlined, or replaced
};

struct MethodChange {
  std::string name;
  ModelFrameKind kind = ModelFrameKind::kUnknown;
  WeightChange self, total;
};

struct StackChange {
  uint32_t parent = 0;  // less than the own index; node 0 is the root of all processes
  uint32_t name = 0;    // in ProfileDiff::methods, or of processes in ProfileDiff::processes
  bool process = false;
  uint64_t self_before = 0, self_after = 0;
  WeightChange total;
};

struct ProfileDiff {
  DiffBasis basis = DiffBasis::kShare;
  WeightUnit unit = WeightUnit::kSamples;
  double factor = 1;  // that `before` was multiplied with
  bool tested = false;
  // Samples have times, but no scatter could be measured: some have none, or they are too few. Dispersions are 1 then.
  bool scatter_unknown = false;
  uint64_t total_before = 0, total_after = 0;
  std::vector<MethodChange> methods;
  std::vector<std::string> processes;
  std::vector<StackChange> stacks;  // a tree; [0] is the root

  // Indexes of methods: significant ones first, then by how much their own weight changed.
  std::vector<uint32_t> ranked;
};

// InvalidArgument: other units or views, nothing recorded, or CPU time that is not known. ResourceExhausted: more than
// `max_stacks`.
absl::StatusOr<ProfileDiff> DiffProfiles(const ProfileModel& before, const ProfileModel& after, DiffBasis basis,
                                         size_t max_stacks = kMaxDiffStacks);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_MODEL_DIFF_H_
