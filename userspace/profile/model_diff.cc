#include "profile/model_diff.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "profile/stack_counts.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr double kMinExpected = 5;
// Limits for stacks that may be there because their method was not compiled into its callers. First: the share of one
// recording's weight that counts as none in the other, and the standard errors by which the stack must have changed.
// Then: the number of callers up to which its callees are looked for. Then, in standard errors: how near the whole must
// be to unchanged, and how far from a change as large as the stack's. Last: the number of turns after which everything
// counts as changed.
constexpr double kGone = 0.2, kMinStackErrors = 2.6;
constexpr int kCallersUp = 5;
constexpr double kMaxGroupErrors = 2.5, kMinChangeErrors = 3;
constexpr int kMaxTurns = 8;

// Methods and stacks of both profiles, and where the nodes of each lie among them.
class CommonTree {
 public:
  CommonTree(ProfileDiff& diff, size_t max_stacks) : diff_(diff), left_(max_stacks) { diff_.stacks.emplace_back(); }

  // For each row of the profile the index of its stack.
  absl::StatusOr<std::vector<uint32_t>> Add(const ProfileModel& model) {
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
      if (path.size() > left_) {
        return WithHint(
            absl::ResourceExhaustedError("the processes of the profiles have too many stacks to be compared"),
            "compare parts of the profiles: clrsampler convert --from 0s --to 10s IN OUT.json");
      }
      left_ -= path.size();
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
    // A system call and libc's function for it share a name (getrusage); compiled code of one method has many kinds.
    std::string key(name);
    if (kind == ModelFrameKind::kKernel) key += '\0';
    const auto [found, added] = methods_.try_emplace(std::move(key), static_cast<uint32_t>(diff_.methods.size()));
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
  size_t left_;  // nodes of stacks that may still come, each once for each process
  absl::flat_hash_map<std::string, uint32_t> methods_, processes_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> children_;
};

StackTree ShapeOf(const ProfileDiff& diff) {
  StackTree tree;
  tree.methods = diff.methods.size();
  for (uint32_t i = 0; i < diff.stacks.size(); ++i) {
    const StackChange& stack = diff.stacks[i];
    tree.parent.push_back(stack.parent);
    tree.method.push_back(i == 0 || stack.process ? StackTree::kNoMethod : stack.name);
    tree.stands_in.push_back(i);
  }
  return tree;
}

absl::StatusOr<double> FactorFor(const ProfileModel& before, const ProfileModel& after, DiffBasis basis) {
  if (basis == DiffBasis::kShare) {
    return static_cast<double>(after.total_weight) / static_cast<double>(before.total_weight);
  }
  const uint64_t before_ns = before.meta.recorded_ns(), after_ns = after.meta.recorded_ns();
  if (before_ns == 0 || after_ns == 0) {
    return WithHint(absl::InvalidArgumentError("one of the profiles does not say how long it was recorded"),
                    "compare shares (--by share), or give .json or .pb.gz files");
  }
  double factor = static_cast<double>(after_ns) / static_cast<double>(before_ns);
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

// The deviation of `after` if nothing has changed. The header has the reasons.
double DeviationOf(const WeightChange& change, const Chance& chance) {
  const double n = static_cast<double>(change.before + change.after);
  double variance = change.dispersion * n * chance.q * (1 - chance.q);
  if (chance.all_samples > 0) variance *= std::max(0.0, 1 - n / static_cast<double>(chance.all_samples));
  return std::sqrt(variance);
}

double ErrorsOf(const WeightChange& change, const Chance& chance) {
  const double n = static_cast<double>(change.before + change.after);
  const double smaller = std::min(chance.q, 1 - chance.q);
  if (n * smaller < kMinExpected) return 0;
  if (chance.all_samples > 0 && (static_cast<double>(chance.all_samples) - n) * smaller < kMinExpected) return 0;
  const double distance = std::max(0.0, std::fabs(static_cast<double>(change.after) - n * chance.q) - 0.5);
  return distance / DeviationOf(change, chance);
}

// Marks those that Benjamini and Hochberg's procedure gives.
void MarkSignificant(std::span<WeightChange> all) {
  std::vector<WeightChange*> changes;
  for (WeightChange& change : all) {
    if (change.p < 1) changes.push_back(&change);
  }
  std::sort(changes.begin(), changes.end(), [](const WeightChange* a, const WeightChange* b) { return a->p < b->p; });
  size_t marked = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    const double limit = kFalseDiscoveryRate * static_cast<double>(i + 1) / static_cast<double>(changes.size());
    if (changes[i]->p <= limit) marked = i + 1;
  }
  for (size_t i = 0; i < marked; ++i) changes[i]->significant = true;
}

// Both recordings, counted by one tree after the other.
struct Comparer {
  const ProfileModel& before;
  const ProfileModel& after;
  std::vector<uint32_t> rows_before, rows_after;
  double factor = 1;
  Chance chance;
  bool tested = false;

  // In the order of StackCounter. `scattered`: whether scatter could be measured.
  std::vector<WeightChange> Compare(const StackTree& tree, std::span<const StackGroup> groups,
                                    bool* scattered = nullptr) const {
    const StackCounter counter(tree, groups);
    const StackCounts old_counts = CountStacks(before, rows_before, tree, counter);
    const StackCounts new_counts = CountStacks(after, rows_after, tree, counter);
    if (scattered != nullptr) {
      const auto measured = [](const StackScatter& scatter) { return scatter.degrees > 0; };
      *scattered = std::any_of(old_counts.scatter.begin(), old_counts.scatter.end(), measured) ||
                   std::any_of(new_counts.scatter.begin(), new_counts.scatter.end(), measured);
    }
    std::vector<WeightChange> changes(counter.size());
    for (size_t i = 0; i < changes.size(); ++i) {
      WeightChange& change = changes[i];
      change.before = old_counts.values[i];
      change.after = new_counts.values[i];
      change.change = static_cast<double>(change.after) - static_cast<double>(change.before) * factor;
      if (!tested) continue;
      for (size_t length = 0; length < std::size(StackCounts::kStretches); ++length) {
        // Both recordings count together: a program that scatters in one recording does so in the other.
        double chi_square = 0, degrees = 0;
        for (const StackCounts* counts : {&old_counts, &new_counts}) {
          const StackScatter& scatter = counts->scatter[length];
          if (scatter.degrees == 0) continue;
          chi_square += scatter.chi_square[i];
          degrees += scatter.degrees;
        }
        if (degrees > 0) change.dispersion = std::max(change.dispersion, chi_square / degrees);
      }
      change.errors = ErrorsOf(change, chance);
      change.p = std::erfc(change.errors / std::sqrt(2.0));
    }
    const std::span<WeightChange> all = changes;
    MarkSignificant(all.subspan(counter.self(0), tree.methods));
    MarkSignificant(all.subspan(counter.total(0), tree.methods));
    MarkSignificant(all.subspan(counter.stack(0), tree.parent.size()));
    return changes;
  }
};

// Finds the stacks that are in one recording only because their method was not compiled into its callers there.
class MovedStacks {
 public:
  // `alone`: what was found without looking for them. All are borrowed.
  MovedStacks(const Comparer& comparer, const ProfileDiff& diff, const StackTree& tree,
              const std::vector<WeightChange>& alone)
      : comparer_(comparer), diff_(diff), tree_(tree), alone_(alone), counter_(tree, {}) {}

  // The tree without them, and the changes that are found by it. False: there are none.
  bool Find(StackTree& left_out, std::vector<WeightChange>& without) const {
    std::vector<bool> stacks = Candidates();
    for (int turn = 0; turn < kMaxTurns; ++turn) {
      if (std::find(stacks.begin(), stacks.end(), true) == stacks.end()) return false;
      left_out = LeaveOut(stacks);
      absl::flat_hash_map<uint32_t, uint32_t> group_of;  // by the caller that they are left out below
      const std::vector<StackGroup> groups = GroupsOf(stacks, left_out, group_of);
      without = comparer_.Compare(left_out, groups);
      const size_t first_group = without.size() - groups.size();
      std::vector<double> largest(groups.size(), 0);
      for (uint32_t i = 0; i < stacks.size(); ++i) {
        double& change = stacks[i] ? largest[group_of[left_out.stands_in[i]]] : largest.front();
        if (stacks[i]) change = std::max(change, std::fabs(alone_[counter_.stack(i)].change));
      }
      bool all_moved = true;
      for (uint32_t i = 0; i < stacks.size(); ++i) {
        if (!stacks[i]) continue;
        const uint32_t group = group_of[left_out.stands_in[i]];
        stacks[i] = HasMoved(largest[group], without[first_group + group]);
        all_moved &= stacks[i];
      }
      if (all_moved) return true;
    }
    return false;
  }

 private:
  bool IsMethod(uint32_t stack) const { return tree_.method[stack] != StackTree::kNoMethod; }
  const WeightChange& ChangeOf(uint32_t stack) const { return alone_[counter_.stack(stack)]; }

  // Whether one recording hardly has the stack, and not by chance.
  bool IsOneSided(uint32_t stack) const {
    const WeightChange& change = ChangeOf(stack);
    const double after = static_cast<double>(change.after), before = after - change.change;
    return IsMethod(stack) && change.errors >= kMinStackErrors &&
           std::min(before, after) < kGone * std::max(before, after);
  }
  // Kernel code is not compiled anew, and roles are no code.
  bool MayBeInlined(uint32_t stack) const {
    const ModelFrameKind kind = diff_.methods[tree_.method[stack]].kind;
    return kind != ModelFrameKind::kKernel && kind != ModelFrameKind::kRole && kind != ModelFrameKind::kMark &&
           kind != ModelFrameKind::kType;
  }

  // Stacks of one recording whose callees stand elsewhere below the same caller in the other one. Also those that call
  // nothing, which may be a part of their caller there.
  std::vector<bool> Candidates() const {
    std::vector<bool> one_sided(tree_.parent.size(), false), found(tree_.parent.size(), false);
    for (uint32_t i = 1; i < tree_.parent.size(); ++i) one_sided[i] = IsOneSided(i);
    struct Sides {
      bool before = false, after = false;
    };
    absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Sides> sides;  // of (caller, method below it)
    const auto for_each_caller = [&](uint32_t stack, const auto& visit) {
      uint32_t caller = stack;
      for (int up = 0; up < kCallersUp && IsMethod(caller); ++up) {
        caller = tree_.parent[caller];
        visit(caller, sides[{caller, tree_.method[stack]}]);
      }
    };
    for (uint32_t i = 1; i < tree_.parent.size(); ++i) {
      if (!one_sided[i]) continue;
      const bool is_new = ChangeOf(i).change > 0;
      for_each_caller(i, [&](uint32_t, Sides& at) { (is_new ? at.after : at.before) = true; });
    }
    std::vector<bool> settled(tree_.parent.size(), false);  // a callee that stands elsewhere, and what is below it
    for (uint32_t i = 1; i < tree_.parent.size(); ++i) {
      settled[i] = settled[tree_.parent[i]];
      if (settled[i] || !one_sided[i]) continue;
      const bool is_new = ChangeOf(i).change > 0;
      const auto take = [&](uint32_t stack) {
        const WeightChange& change = ChangeOf(stack);
        if (change.errors < kMinStackErrors || (change.change > 0) != is_new || !MayBeInlined(stack)) return false;
        found[stack] = true;
        return true;
      };
      for_each_caller(i, [&](uint32_t caller, const Sides& at) {
        if (settled[i] || !at.before || !at.after) return;
        settled[i] = caller == tree_.parent[i];
        for (uint32_t above = tree_.parent[i]; above != caller; above = tree_.parent[above]) {
          if (take(above)) settled[i] = true;
        }
      });
      const uint64_t self = diff_.stacks[i].self_before + diff_.stacks[i].self_after;
      if (!settled[i] && 2 * self >= ChangeOf(i).before + ChangeOf(i).after) take(i);
    }
    return found;
  }

  StackTree LeaveOut(const std::vector<bool>& stacks) const {
    StackTree tree = tree_;
    absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> known;
    for (uint32_t i = 1; i < tree.parent.size(); ++i) {
      tree.parent[i] = tree.stands_in[tree_.parent[i]];
      if (!IsMethod(i)) continue;
      tree.stands_in[i] =
          stacks[i] ? tree.parent[i] : known.try_emplace({tree.parent[i], tree.method[i]}, i).first->second;
    }
    return tree;
  }

  // For each caller: the weight that ends in it, in the stacks that are left out, and what is below those. This holds
  // their weight whether they are compiled into the caller or not.
  std::vector<StackGroup> GroupsOf(const std::vector<bool>& stacks, const StackTree& left_out,
                                   absl::flat_hash_map<uint32_t, uint32_t>& group_of) const {
    std::vector<absl::btree_set<uint32_t>> below;
    for (uint32_t i = 1; i < tree_.parent.size(); ++i) {
      const uint32_t left = stacks[i] ? i : stacks[tree_.parent[i]] ? tree_.parent[i] : 0;
      if (left == 0) continue;
      const auto [group, added] = group_of.try_emplace(left_out.stands_in[left], static_cast<uint32_t>(below.size()));
      if (added) below.emplace_back();
      if (!stacks[i]) below[group->second].insert(left_out.stands_in[i]);
    }
    std::vector<StackGroup> groups(below.size());
    for (const auto& [caller, group] : group_of) {
      groups[group].self = {caller};
      groups[group].total.assign(below[group].begin(), below[group].end());
    }
    return groups;
  }

  // Whether the group has stayed as it was, and that can be told from a change as large as the stack's.
  bool HasMoved(double change, const WeightChange& group) const {
    const double deviation = DeviationOf(group, comparer_.chance) * (1 + comparer_.factor);  // of `change`
    return group.errors < kMaxGroupErrors && change >= kMinChangeErrors * deviation;
  }

  const Comparer& comparer_;
  const ProfileDiff& diff_;
  const StackTree& tree_;
  const std::vector<WeightChange>& alone_;
  const StackCounter counter_;
};

// Takes the marks from changes that are none where stacks that moved are left out.
void UnmarkMoved(const Comparer& comparer, const ProfileDiff& diff, const StackTree& tree,
                 std::vector<WeightChange>& changes) {
  if (std::none_of(changes.begin(), changes.end(), [](const WeightChange& change) { return change.significant; })) {
    return;
  }
  StackTree left_out;
  std::vector<WeightChange> without;
  if (!MovedStacks(comparer, diff, tree, changes).Find(left_out, without)) return;
  const auto judge = [&](WeightChange& change, const WeightChange& other) {
    change.moved = change.significant && !other.significant && other.p > change.p;
    change.significant &= !change.moved;
  };
  const StackCounter counter(tree, {});
  for (size_t i = 0; i < counter.stack(0); ++i) judge(changes[i], without[i]);
  for (uint32_t i = 1; i < tree.parent.size(); ++i) {
    judge(changes[counter.stack(i)], without[counter.stack(left_out.stands_in[i])]);
  }
}

}  // namespace

absl::StatusOr<ProfileDiff> DiffProfiles(const ProfileModel& before, const ProfileModel& after, DiffBasis basis,
                                         size_t max_stacks) {
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
  ASSIGN_OR_RETURN(const double factor, FactorFor(before, after, basis));

  ProfileDiff diff;
  diff.basis = basis;
  diff.unit = before.meta.unit;
  diff.factor = factor;
  diff.total_before = before.total_weight;
  diff.total_after = after.total_weight;
  diff.tested = diff.unit == WeightUnit::kSamples;
  CommonTree tree(diff, max_stacks);
  ASSIGN_OR_RETURN(std::vector<uint32_t> rows_before, tree.Add(before));
  ASSIGN_OR_RETURN(std::vector<uint32_t> rows_after, tree.Add(after));
  Comparer comparer{before, after, std::move(rows_before), std::move(rows_after), factor, {}, diff.tested};
  comparer.chance.q = factor / (1 + factor);
  if (basis == DiffBasis::kShare) comparer.chance.all_samples = diff.total_before + diff.total_after;

  for (size_t row = 0; row < before.samples.size(); ++row) {
    diff.stacks[comparer.rows_before[row]].self_before += before.samples.weight_of(row);
  }
  for (size_t row = 0; row < after.samples.size(); ++row) {
    diff.stacks[comparer.rows_after[row]].self_after += after.samples.weight_of(row);
  }

  const StackTree shape = ShapeOf(diff);
  bool scattered = false;
  std::vector<WeightChange> changes = comparer.Compare(shape, {}, &scattered);
  const bool times = !before.samples.time_ns.empty() || !after.samples.time_ns.empty();
  diff.scatter_unknown = diff.tested && times && !scattered;
  if (diff.tested) UnmarkMoved(comparer, diff, shape, changes);
  const StackCounter counter(shape, {});
  for (size_t i = 0; i < diff.methods.size(); ++i) {
    diff.methods[i].self = changes[counter.self(i)];
    diff.methods[i].total = changes[counter.total(i)];
  }
  for (size_t i = 0; i < diff.stacks.size(); ++i) diff.stacks[i].total = changes[counter.stack(i)];
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
