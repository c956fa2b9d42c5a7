#include "profile/model_diff.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "status/status.h"

namespace clrsampler {
namespace {

struct MadeUpRun {
  size_t samples = 20'000;
  double first_method = 1;  // times what it takes otherwise
  size_t phase = 1;         // so many samples one after the other are of one phase of the program
  bool times = true;
  uint64_t first_ns = 0;  // the time of the first sample
  size_t parts = 1;       // recordings of equal length that were merged, with a hundred times their length between them
  uint32_t seed = 1;
};

// A program of 60 methods in three groups, where the first method takes a fifth of the time.
ProfileModel Recorded(const MadeUpRun& run) {
  std::mt19937 random(run.seed);
  ProfileModelBuilder builder;
  builder.meta().period_ns = 10'101'010;
  builder.meta().duration_ns = run.samples * 10'101'010;
  const auto frame = [&](const std::string& name) {
    ModelFrame made;
    made.name = builder.String(name);
    return builder.Frame(made);
  };
  std::vector<double> weights;
  std::vector<NodeIndex> stacks;
  for (int i = 0; i < 60; ++i) {
    weights.push_back(i == 0 ? 20 * run.first_method : i < 20 ? 3 : 0.6);
    const NodeIndex group = builder.Node(builder.Node(kRootNode, frame("Main")), frame(absl::StrCat("Group", i % 3)));
    stacks.push_back(builder.Node(group, frame(absl::StrCat("Method", i))));
  }
  ModelThread thread;
  thread.pid = run.seed;
  thread.comm = builder.String("web");
  std::discrete_distribution<size_t> method(weights.begin(), weights.end());
  // In a phase, methods of one group are three times as frequent.
  std::vector<std::discrete_distribution<size_t>> phases;
  for (size_t group = 0; group < 3; ++group) {
    std::vector<double> of_phase = weights;
    for (size_t i = group; i < of_phase.size(); i += 3) of_phase[i] *= 3;
    phases.emplace_back(of_phase.begin(), of_phase.end());
  }
  for (size_t i = 0, phase = 0; i < run.samples; ++i) {
    if (run.phase > 1 && i % run.phase == 0) phase = random() % 3;
    const size_t chosen = run.phase > 1 ? phases[phase](random) : method(random);
    const uint64_t time_ns = run.first_ns + (i + i * run.parts / run.samples * 100 * run.samples) * 10'101'010;
    builder.Add({.time_ns = run.times ? time_ns : kNoTime, .thread = builder.Thread(thread), .stack = stacks[chosen]});
  }
  return *std::move(builder).Build();
}

bool AnyMark(const ProfileDiff& diff) {
  return std::any_of(diff.methods.begin(), diff.methods.end(),
                     [](const MethodChange& method) { return method.self.significant || method.total.significant; }) ||
         std::any_of(diff.stacks.begin(), diff.stacks.end(),
                     [](const StackChange& stack) { return stack.total.significant; });
}

const MethodChange& Method(const ProfileDiff& diff, absl::string_view name) {
  return *std::find_if(diff.methods.begin(), diff.methods.end(),
                       [&](const MethodChange& method) { return method.name == name; });
}

int PairsWithMarks(MadeUpRun run, int pairs) {
  int marked = 0;
  for (int i = 0; i < pairs; ++i) {
    run.seed = static_cast<uint32_t>(2 * i + 1);
    const ProfileModel before = Recorded(run);
    run.seed = static_cast<uint32_t>(2 * i + 2);
    marked += AnyMark(*DiffProfiles(before, Recorded(run), DiffBasis::kShare));
  }
  return marked;
}

TEST(DiffProfilesTest, RunsOfOneProgramShowNoChange) {
  // 3 % are to be expected of three tables at 1 %; of 100 pairs more than 10 are then one in 40,000.
  EXPECT_LE(PairsWithMarks({.samples = 3000}, 100), 10);
  EXPECT_LE(PairsWithMarks({.samples = 3000, .times = false}, 100), 10);
}

TEST(DiffProfilesTest, ASystemCallIsNotTheFunctionOfItsName) {
  ProfileModelBuilder builder;
  ModelFrame native, kernel;
  native.name = kernel.name = builder.String("getrusage");
  native.kind = ModelFrameKind::kNative;
  kernel.kind = ModelFrameKind::kKernel;
  const NodeIndex caller = builder.Node(kRootNode, builder.Frame(native));
  builder.Add({.thread = builder.Thread({}), .stack = builder.Node(caller, builder.Frame(kernel))});
  const ProfileModel model = *std::move(builder).Build();
  const absl::StatusOr<ProfileDiff> diff = DiffProfiles(model, model, {});
  ASSERT_TRUE(diff.ok()) << diff.status();
  ASSERT_EQ(diff->methods.size(), 2u);
  EXPECT_EQ(diff->methods[0].name, diff->methods[1].name);
  EXPECT_NE(diff->methods[0].kind, diff->methods[1].kind);
}

TEST(DiffProfilesTest, OtherLinesOfAMethodAreNoChange) {
  const auto recorded = [](uint32_t line) {
    ProfileModelBuilder builder;
    NodeIndex node = kRootNode;
    for (const char* name : {"Main", "Total"}) {
      node = builder.Node(node,
                          builder.Frame({.kind = ModelFrameKind::kJit, .name = builder.String(name), .line = line++}));
    }
    builder.Add({.thread = builder.Thread({}), .stack = node, .weight = 1000});
    return *std::move(builder).Build();
  };
  const ProfileDiff diff = *DiffProfiles(recorded(10), recorded(20), DiffBasis::kShare);
  EXPECT_EQ(diff.methods.size(), 2u);
  EXPECT_EQ(diff.stacks.size(), 4u);  // the root, the process, Main, Total
  EXPECT_EQ(diff.stacks.back().self_before, 1000u);
  EXPECT_EQ(diff.stacks.back().self_after, 1000u);
}

TEST(DiffProfilesTest, PhasesOfAProgramAreNoChange) {
  // Without the scatter in time most pairs would be marked.
  EXPECT_GE(PairsWithMarks({.samples = 3000, .phase = 60, .times = false}, 20), 10);
  EXPECT_LE(PairsWithMarks({.samples = 3000, .phase = 60}, 100), 10);
}

TEST(DiffProfilesTest, PhasesOfAPartThatBeginsLateOrOfMergedPartsAreNoChange) {
  constexpr uint64_t kHour = 3'600'000'000'000;
  EXPECT_LE(PairsWithMarks({.samples = 3000, .phase = 60, .first_ns = kHour}, 30), 4);
  EXPECT_LE(PairsWithMarks({.samples = 3000, .phase = 60, .parts = 3}, 30), 4);
  EXPECT_LE(PairsWithMarks({.samples = 3000, .phase = 60, .parts = 12}, 30), 4);
}

TEST(DiffProfilesTest, TheOrderOfRowsDoesNotMatterForTheScatter) {
  const ProfileModel model = Recorded({.samples = 3000, .phase = 60});
  ProfileModel turned = model;
  std::reverse(turned.samples.time_ns.begin(), turned.samples.time_ns.end());
  std::reverse(turned.samples.stack.begin(), turned.samples.stack.end());
  const ProfileDiff same = *DiffProfiles(model, model, DiffBasis::kShare);
  const ProfileDiff other = *DiffProfiles(turned, turned, DiffBasis::kShare);
  EXPECT_GT(Method(same, "Group0").total.dispersion, 2);
  EXPECT_DOUBLE_EQ(Method(other, "Group0").total.dispersion, Method(same, "Group0").total.dispersion);
}

TEST(DiffProfilesTest, ScatterThatTimesDoNotTellIsUnknown) {
  const ProfileModel model = Recorded({.samples = 3000}), without = Recorded({.samples = 3000, .times = false});
  ProfileModel partly = model;
  partly.samples.time_ns.back() = kNoTime;
  EXPECT_TRUE(DiffProfiles(partly, partly, DiffBasis::kShare)->scatter_unknown);
  EXPECT_FALSE(DiffProfiles(model, partly, DiffBasis::kShare)->scatter_unknown) << "one tells for both";
  EXPECT_FALSE(DiffProfiles(without, without, DiffBasis::kShare)->scatter_unknown) << "that format has no times";
  const ProfileModel short_one = Recorded({.samples = 1});
  EXPECT_TRUE(DiffProfiles(short_one, short_one, DiffBasis::kShare)->scatter_unknown);
}

TEST(DiffProfilesTest, ATenthMoreOfOneMethodIsFoundAndFirst) {
  // 19.8 % become 21.4 %: 7.8 sigma, where 3.8 are needed.
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const ProfileModel before = Recorded({.samples = 80'000, .seed = seed});
    const ProfileModel after = Recorded({.samples = 80'000, .first_method = 1.1, .seed = seed + 100});
    const ProfileDiff diff = *DiffProfiles(before, after, DiffBasis::kShare);
    const MethodChange& first = diff.methods[diff.ranked.front()];
    EXPECT_EQ(first.name, "Method0");
    EXPECT_TRUE(first.self.significant);
    EXPECT_GT(first.self.change, 0);
  }
}

// 10,000 samples in stacks of these shares; text: methods by blanks.
ProfileModel OfStacks(const std::vector<std::pair<std::string, double>>& stacks, uint32_t seed) {
  std::mt19937 random(seed);
  ProfileModelBuilder builder;
  std::vector<NodeIndex> nodes;
  std::vector<double> shares;
  for (const auto& [text, share] : stacks) {
    NodeIndex node = kRootNode;
    for (const absl::string_view name : absl::StrSplit(text, ' ')) {
      ModelFrame frame;
      frame.kind = name == "kernel" ? ModelFrameKind::kKernel : ModelFrameKind::kJit;
      frame.name = builder.String(name);
      node = builder.Node(node, builder.Frame(frame));
    }
    nodes.push_back(node);
    shares.push_back(share);
  }
  std::discrete_distribution<size_t> stack(shares.begin(), shares.end());
  for (uint64_t i = 0; i < 10'000; ++i) {
    builder.Add({.time_ns = i * 1'000'000, .thread = builder.Thread({}), .stack = nodes[stack(random)]});
  }
  return *std::move(builder).Build();
}

TEST(DiffProfilesTest, InliningIsNoChange) {
  const ProfileModel called =
      OfStacks({{"Main Read", 5}, {"Main Read Parse", 10}, {"Main Read Parse Copy", 10}, {"Main Other", 75}}, 1);
  // Parse is compiled into Read: 10 % of own weight become Read's, and Copy stands below Read.
  const ProfileModel inlined = OfStacks({{"Main Read", 15}, {"Main Read Copy", 10}, {"Main Other", 75}}, 2);
  for (const auto& [before, after] : {std::pair(&called, &inlined), std::pair(&inlined, &called)}) {
    const ProfileDiff diff = *DiffProfiles(*before, *after, DiffBasis::kShare);
    EXPECT_FALSE(AnyMark(diff));
    EXPECT_TRUE(Method(diff, "Parse").total.moved);
    EXPECT_TRUE(Method(diff, "Read").self.moved);
    EXPECT_FALSE(Method(diff, "Read").total.moved);
    EXPECT_FALSE(Method(diff, "Other").self.moved);
    EXPECT_NE(Method(diff, "Parse").total.before + Method(diff, "Parse").total.after, 0u);  // shown as it is
  }
}

TEST(DiffProfilesTest, AnotherMethodInlinedIsNoChange) {
  // Main calls Try, which calls Do, which calls Work: once the one, once the other is compiled into its caller.
  const ProfileModel before = OfStacks({{"Main Try Work", 30}, {"Main Other", 70}}, 1);
  const ProfileModel after = OfStacks({{"Main Do Work", 30}, {"Main Other", 70}}, 2);
  const ProfileDiff diff = *DiffProfiles(before, after, DiffBasis::kShare);
  EXPECT_FALSE(AnyMark(diff));
  EXPECT_TRUE(Method(diff, "Try").total.moved);
  EXPECT_TRUE(Method(diff, "Do").total.moved);
}

TEST(DiffProfilesTest, ACostThatComesWithInliningIsFound) {
  const ProfileModel before =
      OfStacks({{"Main Read", 5}, {"Main Read Parse Copy", 20}, {"Main A", 25}, {"Main B", 25}, {"Main C", 25}}, 1);
  const ProfileModel after =
      OfStacks({{"Main Read", 5}, {"Main Read Copy", 26}, {"Main A", 25}, {"Main B", 25}, {"Main C", 25}}, 2);
  const ProfileDiff diff = *DiffProfiles(before, after, DiffBasis::kShare);
  EXPECT_TRUE(Method(diff, "Copy").self.significant);
  EXPECT_EQ(diff.methods[diff.ranked.front()].name, "Copy");
}

TEST(DiffProfilesTest, NewMethodsAndMethodsThatAreGoneAreFound) {
  const ProfileModel before = OfStacks({{"Main Read", 20}, {"Main Old", 10}, {"Main Other", 70}}, 1);
  const ProfileModel after = OfStacks({{"Main Read", 20}, {"Main Read New", 5}, {"Main Other", 70}}, 2);
  const ProfileDiff diff = *DiffProfiles(before, after, DiffBasis::kShare);
  EXPECT_TRUE(Method(diff, "New").self.significant);
  EXPECT_TRUE(Method(diff, "Old").self.significant);
}

TEST(DiffProfilesTest, WhatOneMethodGainsAndItsNeighbourLosesIsFound) {
  // No inlining moves weight between methods that do not call each other, though the sum is the same.
  const ProfileModel before = OfStacks({{"Main Left", 50}, {"Main Right", 50}}, 1);
  const ProfileModel after = OfStacks({{"Main Left", 60}, {"Main Right", 50}}, 2);
  const ProfileDiff diff = *DiffProfiles(before, after, DiffBasis::kShare);
  EXPECT_TRUE(Method(diff, "Left").self.significant);
  EXPECT_FALSE(Method(diff, "Left").self.moved);
}

TEST(DiffProfilesTest, TheKernelIsNotCompiledAnew) {
  const ProfileModel before = OfStacks({{"Main kernel", 20}, {"Main", 80}}, 1);
  const ProfileModel after = OfStacks({{"Main", 100}}, 2);
  EXPECT_TRUE(Method(*DiffProfiles(before, after, DiffBasis::kShare), "kernel").self.significant);
}

TEST(DiffProfilesTest, WeightsOfMethodsAndStacksAddUp) {
  const ProfileModel before = Recorded({.samples = 1000, .seed = 1}), after = Recorded({.samples = 3000, .seed = 2});
  const ProfileDiff diff = *DiffProfiles(before, after, DiffBasis::kShare);
  EXPECT_DOUBLE_EQ(diff.factor, 3);
  EXPECT_EQ(Method(diff, "Main").total.before, 1000u);
  EXPECT_EQ(Method(diff, "Main").total.after, 3000u);
  EXPECT_EQ(Method(diff, "Main").self.after, 0u);
  EXPECT_DOUBLE_EQ(Method(diff, "Main").total.change, 0);
  uint64_t self_before = 0, self_after = 0, stacks_after = 0;
  for (const MethodChange& method : diff.methods) {
    self_before += method.self.before;
    self_after += method.self.after;
  }
  for (const StackChange& stack : diff.stacks) stacks_after += stack.self_after;
  EXPECT_EQ(self_before, 1000u);
  EXPECT_EQ(self_after, 3000u);
  EXPECT_EQ(stacks_after, 3000u);
  EXPECT_EQ(diff.stacks[0].total.after, 3000u);
  EXPECT_THAT(diff.processes, testing::ElementsAre("web"));
}

TEST(DiffProfilesTest, ARecursiveMethodCountsOncePerStack) {
  ProfileModelBuilder builder;
  ModelFrame frame;
  frame.name = builder.String("Walk");
  const FrameIndex walk = builder.Frame(frame);
  builder.Add(
      {.thread = builder.Thread({}), .stack = builder.Stack(std::vector<FrameIndex>{walk, walk, walk}), .weight = 7});
  const ProfileModel model = *std::move(builder).Build();
  const ProfileDiff diff = *DiffProfiles(model, model, DiffBasis::kShare);
  EXPECT_EQ(Method(diff, "Walk").total.before, 7u);
  EXPECT_EQ(Method(diff, "Walk").self.before, 7u);
  EXPECT_FALSE(AnyMark(diff));
}

TEST(DiffProfilesTest, CpuTimeIsComparedInASecondOfRecording) {
  ProfileModel before = Recorded({.samples = 2000, .seed = 1}), after = Recorded({.samples = 3000, .seed = 2});
  before.meta.duration_ns = 20'000'000'000;
  after.meta.duration_ns = 10'000'000'000;
  after.meta.period_ns = before.meta.period_ns / 2;
  const ProfileDiff diff = *DiffProfiles(before, after, DiffBasis::kCpuTime);
  EXPECT_DOUBLE_EQ(diff.factor, 1);  // half as long, with samples that stand for half as much
  EXPECT_DOUBLE_EQ(Method(diff, "Main").total.change, 1000);
  EXPECT_TRUE(Method(diff, "Main").total.significant);
  // A gap was not recorded.
  before.meta.duration_ns = 100'000'000'000;
  before.meta.SetRecorded({{0, 15'000'000'000}, {95'000'000'000, 100'000'000'000}});
  EXPECT_DOUBLE_EQ(DiffProfiles(before, after, DiffBasis::kCpuTime)->factor, 1);
  before.meta.recorded.clear();
  before.meta.duration_ns = 0;
  EXPECT_EQ(DiffProfiles(before, after, DiffBasis::kCpuTime).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DiffProfilesTest, TimesOfUnknownPartsAreNotTested) {
  ProfileModel before = Recorded({.samples = 2000, .seed = 1}),
               after = Recorded({.samples = 2000, .first_method = 9, .seed = 2});
  before.meta.unit = after.meta.unit = WeightUnit::kMicroseconds;
  const ProfileDiff diff = *DiffProfiles(before, after, DiffBasis::kShare);
  EXPECT_FALSE(diff.tested);
  EXPECT_FALSE(AnyMark(diff));
  EXPECT_EQ(diff.methods[diff.ranked.front()].name, "Method0");
}

TEST(DiffProfilesTest, TimesMayHaveAnyValue) {
  // As of merged recordings that lie further apart than 2^53 ns, and as no recording has them.
  for (const uint64_t shift : {uint64_t{1} << 53, uint64_t{1} << 63, kNoTime - 1}) {
    ProfileModel model = Recorded({.samples = 100});
    model.samples.time_ns.back() = shift;
    EXPECT_TRUE(DiffProfiles(model, model, DiffBasis::kShare).ok());
    for (uint64_t& time : model.samples.time_ns) time = shift;
    const absl::StatusOr<ProfileDiff> diff = DiffProfiles(model, model, DiffBasis::kShare);
    EXPECT_EQ(diff->total_after, 100u);
  }
}

TEST(DiffProfilesTest, WhatCannotBeComparedIsAnError) {
  const ProfileModel model = Recorded({.samples = 10});
  ProfileModel other = model;
  other.meta.unit = WeightUnit::kNanoseconds;
  EXPECT_NE(HintOf(DiffProfiles(model, other, DiffBasis::kShare).status()), "");
  other = model;
  other.meta.view = ProfileView::kPause;
  EXPECT_NE(HintOf(DiffProfiles(model, other, DiffBasis::kShare).status()), "");
  EXPECT_NE(HintOf(DiffProfiles(model, ProfileModel(), DiffBasis::kShare).status()), "");
}

// One chain of nodes, and a sample at its end in each of many processes.
ProfileModel ManyProcesses(size_t processes, size_t depth) {
  ProfileModelBuilder builder;
  builder.meta().period_ns = builder.meta().duration_ns = 1'000'000;
  const std::vector<FrameIndex> stack(depth, builder.Frame({.name = builder.String("Again")}));
  const NodeIndex leaf = builder.Stack(stack);
  for (size_t i = 0; i < processes; ++i) {
    const ModelThread thread{.comm = builder.String(absl::StrCat("web", i))};
    builder.Add({.thread = builder.Thread(thread), .stack = leaf});
  }
  return *std::move(builder).Build();
}

TEST(DiffProfilesTest, MoreStacksThanFitIntoMemoryAreRefused) {
  const ProfileModel model = ManyProcesses(20, 10);
  EXPECT_TRUE(DiffProfiles(model, model, DiffBasis::kShare, 400).ok());
  EXPECT_EQ(DiffProfiles(model, model, DiffBasis::kShare, 399).status().code(), absl::StatusCode::kResourceExhausted);
  const ProfileModel hostile = ManyProcesses(2000, kMaxModelStackFrames - 1);
  const auto diff = DiffProfiles(hostile, hostile, DiffBasis::kShare);
  EXPECT_EQ(diff.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(HintOf(diff.status()), "");
}

}  // namespace
}  // namespace clrsampler
