#include "profile/model_diff.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kStretches = 20;
constexpr double kMinExpected = 5;

// Methods and stacks of both profiles, and where the nodes of each lie among them.
class CommonTree {
 public:
  explicit CommonTree(ProfileDiff& diff) : diff_(diff) { diff_.stacks.emplace_back(); }

  // For each row of the profile the index of its stack.
  std::vector<uint32_t> Add(const ProfileModel& model) {
    std::vector<uint32_t> methods;
    for (const ModelFrame& frame : model.frames) methods.push_back(Method(model.text(frame.name), frame.kind));
    // By process and node: threads of one process share its stacks.
    absl::flat_hash_map<std::pair<uint32_t, NodeIndex>, uint32_t> known;
    std::vector<uint32_t> processes;
    for (const ModelThread& thread : model.threads) processes.push_back(Process(model, thread));
    std::vector<uint32_t> rows;
    std::vector<NodeIndex> path;
    for (size_t row = 0; row < model.samples.size(); ++row) {
      const uint32_t process = processes[model.samples.thread[row]];
      uint32_t stack = process;
      path.clear();
      for (NodeIndex node = model.samples.stack[row]; node != kRootNode; node = model.nodes[node].parent) {
        if (const auto found = known.find({process, node}); found != known.end()) {
          stack = found->second;
          break;
        }
        path.push_back(node);
      }
      for (size_t i = path.size(); i-- > 0;) {
        stack = Child(stack, methods[model.nodes[path[i]].frame]);
        known[{process, path[i]}] = stack;
      }
      rows.push_back(stack);
    }
    return rows;
  }

 private:
  uint32_t Method(absl::string_view name, ModelFrameKind kind) {
    const auto [found, added] = methods_.try_emplace(std::string(name), static_cast<uint32_t>(diff_.methods.size()));
    if (added) diff_.methods.push_back({std::string(name), kind, {}, {}});
    return found->second;
  }

  uint32_t Process(const ProfileModel& model, const ModelThread& thread) {
    const std::string name(thread.comm == 0 ? "process" : model.text(thread.comm));  // the pid differs in each run
    const auto [found, added] = processes_.try_emplace(name, static_cast<uint32_t>(diff_.stacks.size()));
    if (added) {
      StackChange process;
      process.process = true;
      process.name = static_cast<uint32_t>(diff_.processes.size());
      diff_.processes.push_back(name);
      diff_.stacks.push_back(std::move(process));
    }
    return found->second;
  }

  uint32_t Child(uint32_t parent, uint32_t method) {
    const auto [found, added] = children_.try_emplace({parent, method}, static_cast<uint32_t>(diff_.stacks.size()));
    if (added) {
      StackChange stack;
      stack.parent = parent;
      stack.name = method;
      diff_.stacks.push_back(std::move(stack));
    }
    return found->second;
  }

  ProfileDiff& diff_;
  absl::flat_hash_map<std::string, uint32_t> methods_, processes_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> children_;
};

// Everything that is compared, as one vector: own weights of methods, their total weights, total weights of stacks.
class Counter {
 public:
  explicit Counter(const ProfileDiff& diff) : diff_(diff), outermost_(diff.stacks.size(), false) {
    for (uint32_t i = 1; i < diff.stacks.size(); ++i) {
      if (diff.stacks[i].process) continue;
      uint32_t above = diff.stacks[i].parent;
      while (!diff.stacks[above].process && diff.stacks[above].name != diff.stacks[i].name) {
        above = diff.stacks[above].parent;
      }
      outermost_[i] = diff.stacks[above].process;
    }
  }

  size_t size() const { return diff_.methods.size() * 2 + diff_.stacks.size(); }
  size_t self(size_t method) const { return method; }
  size_t total(size_t method) const { return diff_.methods.size() + method; }
  size_t stack(size_t stack) const { return diff_.methods.size() * 2 + stack; }

  // `self_weights`: of samples that end at each stack.
  std::vector<uint64_t> Count(std::span<const uint64_t> self_weights) const {
    std::vector<uint64_t> counts(size(), 0);
    for (size_t i = diff_.stacks.size(); i-- > 0;) {
      const uint64_t weight = counts[stack(i)] += self_weights[i];
      if (i == 0) break;
      const StackChange& node = diff_.stacks[i];
      counts[stack(node.parent)] += weight;
      if (node.process) continue;
      counts[self(node.name)] += self_weights[i];
      if (outermost_[i]) counts[total(node.name)] += weight;
    }
    return counts;
  }

 private:
  const ProfileDiff& diff_;
  std::vector<bool> outermost_;  // no caller is the same method
};

struct Counts {
  std::vector<uint64_t> self;    // by stack
  std::vector<uint64_t> values;  // Counter::Count of these
  uint64_t total = 0;
  // How much the values of stretches of the recording scatter: chi square, which by chance is about `degrees`.
  std::vector<double> chi_square;
  double degrees = 0;  // 0: not known
};

Counts CountProfile(const ProfileModel& model, std::span<const uint32_t> rows, const Counter& counter, size_t stacks) {
  Counts counts;
  counts.self.assign(stacks, 0);
  for (size_t row = 0; row < rows.size(); ++row) counts.self[rows[row]] += model.samples.weight_of(row);
  counts.values = counter.Count(counts.self);
  counts.total = model.total_weight;
  counts.chi_square.assign(counter.size(), 0);
  if (model.samples.time_ns.empty() || model.meta.unit != WeightUnit::kSamples) return counts;

  uint64_t end = 0;
  for (const uint64_t time : model.samples.time_ns) end = time == kNoTime ? end : std::max(end, time + 1);
  // Rounded up, so that the last nanosecond is in the last one; in whole numbers, which have no limit at 2^53.
  const uint64_t stretch_ns = end / kStretches + (end % kStretches != 0 ? 1 : 0);
  std::vector<std::vector<uint32_t>> stretches(kStretches);
  for (uint32_t row = 0; row < rows.size(); ++row) {
    const uint64_t time = model.samples.time_ns[row];
    if (time == kNoTime) return counts;  // what has no time is missing from the end
    stretches[time / stretch_ns].push_back(row);
  }
  std::vector<double> chi_square(counter.size(), 0);
  std::vector<uint64_t> self(stacks);
  size_t used = 0;
  for (const std::vector<uint32_t>& stretch : stretches) {
    if (stretch.empty()) continue;
    ++used;
    std::fill(self.begin(), self.end(), 0);
    uint64_t total = 0;
    for (const uint32_t row : stretch) {
      self[rows[row]] += model.samples.weight_of(row);
      total += model.samples.weight_of(row);
    }
    const std::vector<uint64_t> values = counter.Count(self);
    const double part = static_cast<double>(total) / static_cast<double>(counts.total);
    for (size_t i = 0; i < values.size(); ++i) {
      if (counts.values[i] == 0) continue;
      const double share = static_cast<double>(counts.values[i]) / static_cast<double>(counts.total);
      const double expected = static_cast<double>(counts.values[i]) * part;
      const double difference = static_cast<double>(values[i]) - expected;
      chi_square[i] += difference * difference / (expected * std::max(1 - share, 1e-9));
    }
  }
  if (used < kStretches / 2) return counts;  // too few to tell
  counts.chi_square = std::move(chi_square);
  counts.degrees = static_cast<double>(used - 1);
  return counts;
}

absl::StatusOr<double> FactorFor(const ProfileModel& before, const ProfileModel& after, DiffBasis basis) {
  if (basis == DiffBasis::kShare) {
    return static_cast<double>(after.total_weight) / static_cast<double>(before.total_weight);
  }
  if (before.meta.duration_ns == 0 || after.meta.duration_ns == 0) {
    return WithHint(absl::InvalidArgumentError("one of the profiles does not say how long it was recorded"),
                    "compare shares (--by share), or give .json or .pb.gz files");
  }
  double factor = static_cast<double>(after.meta.duration_ns) / static_cast<double>(before.meta.duration_ns);
  if (before.meta.unit == WeightUnit::kSamples && before.meta.period_ns != after.meta.period_ns) {
    if (before.meta.period_ns == 0 || after.meta.period_ns == 0) {
      return WithHint(absl::InvalidArgumentError("one of the profiles does not say what time a sample stands for"),
                      "compare shares (--by share), or give .json or .pb.gz files");
    }
    factor *= static_cast<double>(before.meta.period_ns) / static_cast<double>(after.meta.period_ns);
  }
  return factor;
}

struct Chance {
  double q = 0.5;            // that a sample is of the second profile
  uint64_t all_samples = 0;  // of both, where shares are compared; else 0
};

// In standard errors. The header has the reasons.
double ErrorsOf(uint64_t before, uint64_t after, const Chance& chance, double dispersion) {
  const double n = static_cast<double>(before + after);
  const double smaller = std::min(chance.q, 1 - chance.q);
  if (n * smaller < kMinExpected) return 0;
  double variance = dispersion * n * chance.q * (1 - chance.q);
  if (chance.all_samples > 0) {
    const double others = static_cast<double>(chance.all_samples) - n;
    if (others * smaller < kMinExpected) return 0;
    variance *= others / static_cast<double>(chance.all_samples);
  }
  const double distance = std::max(0.0, std::fabs(static_cast<double>(after) - n * chance.q) - 0.5);
  return distance / std::sqrt(variance);
}

// Marks those that Benjamini and Hochberg's procedure gives.
void MarkSignificant(std::vector<WeightChange*> changes) {
  std::erase_if(changes, [](const WeightChange* change) { return change->p >= 1; });
  std::sort(changes.begin(), changes.end(), [](const WeightChange* a, const WeightChange* b) { return a->p < b->p; });
  size_t marked = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    const double limit = kFalseDiscoveryRate * static_cast<double>(i + 1) / static_cast<double>(changes.size());
    if (changes[i]->p <= limit) marked = i + 1;
  }
  for (size_t i = 0; i < marked; ++i) changes[i]->significant = true;
}

}  // namespace

absl::StatusOr<ProfileDiff> DiffProfiles(const ProfileModel& before, const ProfileModel& after, DiffBasis basis) {
  if (before.meta.unit != after.meta.unit) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("one profile counts ", WeightUnitText(before.meta.unit),
                                                            ", the other ", WeightUnitText(after.meta.unit))),
                    "compare two recordings in the same format and of the same --view");
  }
  if (before.meta.view != after.meta.view) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("views ", ProfileViewText(before.meta.view), " and ",
                                                            ProfileViewText(after.meta.view), " can't be compared")),
                    "compare recordings of the same --view");
  }
  if (before.total_weight == 0 || after.total_weight == 0) {
    return WithHint(absl::InvalidArgumentError("one of the profiles has no samples"),
                    "was the program idle, or do --focus, --thread or other filters leave nothing of it?");
  }
  const absl::StatusOr<double> factor = FactorFor(before, after, basis);
  if (!factor.ok()) return factor.status();

  ProfileDiff diff;
  diff.basis = basis;
  diff.unit = before.meta.unit;
  diff.factor = *factor;
  diff.total_before = before.total_weight;
  diff.total_after = after.total_weight;
  diff.tested = diff.unit == WeightUnit::kSamples;
  CommonTree tree(diff);
  const std::vector<uint32_t> rows_before = tree.Add(before), rows_after = tree.Add(after);
  const Counter counter(diff);
  const Counts old_counts = CountProfile(before, rows_before, counter, diff.stacks.size());
  const Counts new_counts = CountProfile(after, rows_after, counter, diff.stacks.size());

  const Chance chance{*factor / (1 + *factor), basis == DiffBasis::kShare ? diff.total_before + diff.total_after : 0};
  const auto set = [&](size_t value, WeightChange& change) {
    change.before = old_counts.values[value];
    change.after = new_counts.values[value];
    change.change = static_cast<double>(change.after) - static_cast<double>(change.before) * *factor;
    if (!diff.tested) return;
    // Of both together: a program that scatters in one recording does so in the other.
    const double degrees = old_counts.degrees + new_counts.degrees;
    const double chi_square = old_counts.chi_square[value] + new_counts.chi_square[value];
    change.dispersion = degrees > 0 ? std::max(1.0, chi_square / degrees) : 1;
    change.errors = ErrorsOf(change.before, change.after, chance, change.dispersion);
    change.p = std::erfc(change.errors / std::sqrt(2.0));
  };
  std::vector<WeightChange*> self, total, stacks;
  for (size_t i = 0; i < diff.methods.size(); ++i) {
    set(counter.self(i), diff.methods[i].self);
    set(counter.total(i), diff.methods[i].total);
    self.push_back(&diff.methods[i].self);
    total.push_back(&diff.methods[i].total);
  }
  for (size_t i = 0; i < diff.stacks.size(); ++i) {
    diff.stacks[i].self_before = old_counts.self[i];
    diff.stacks[i].self_after = new_counts.self[i];
    set(counter.stack(i), diff.stacks[i].total);
    stacks.push_back(&diff.stacks[i].total);
  }
  MarkSignificant(std::move(self));
  MarkSignificant(std::move(total));
  MarkSignificant(std::move(stacks));

  diff.ranked.resize(diff.methods.size());
  std::iota(diff.ranked.begin(), diff.ranked.end(), 0);
  std::stable_sort(diff.ranked.begin(), diff.ranked.end(), [&](uint32_t a, uint32_t b) {
    const WeightChange &x = diff.methods[a].self, &y = diff.methods[b].self;
    if (x.significant != y.significant) return x.significant;
    return std::fabs(x.change) > std::fabs(y.change);
  });
  return diff;
}

}  // namespace clrsampler
