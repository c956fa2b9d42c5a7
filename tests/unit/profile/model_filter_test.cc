#include "profile/model_filter.h"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "profile/model_merge.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "12 main;Total" -> weight; 12 is the thread.
std::map<std::string, uint64_t> Weights(const ProfileModel& model) {
  std::map<std::string, uint64_t> weights;
  for (size_t row = 0; row < model.samples.size(); ++row) {
    std::string path;
    for (NodeIndex node = model.samples.stack[row]; node != kRootNode; node = model.nodes[node].parent) {
      path = absl::StrCat(model.text(model.frame_of(node).name), path.empty() ? "" : ";", path);
    }
    weights[absl::StrCat(model.threads[model.samples.thread[row]].tid, " ", path)] += model.samples.weight_of(row);
  }
  return weights;
}
using Expected = std::map<std::string, uint64_t>;

class ModelBuilder {
 public:
  ModelBuilder& Add(uint32_t tid, std::vector<std::string> names, uint64_t time_ns = kNoTime, uint64_t weight = 1) {
    ModelThread thread;
    thread.pid = 10;
    thread.tid = tid;
    thread.name = builder_.String(tid == 11 ? "main" : ".NET TP Worker");
    NodeIndex node = kRootNode;
    for (const std::string& name : names) {
      ModelFrame frame;
      frame.name = builder_.String(name);
      frame.kind = name.starts_with("sys_") ? ModelFrameKind::kKernel : ModelFrameKind::kJit;
      node = builder_.Node(node, builder_.Frame(frame));
    }
    builder_.Add({.time_ns = time_ns, .thread = builder_.Thread(thread), .stack = node, .weight = weight});
    return *this;
  }
  ProfileMeta& meta() { return builder_.meta(); }
  ProfileModel Build() { return *std::move(builder_).Build(); }

 private:
  ProfileModelBuilder builder_;
};

ProfileModel Sample() {
  return ModelBuilder()
      .Add(11, {"Main", "Shop.Order.Total"}, 0)
      .Add(11, {"Main", "Shop.Order.Total", "sys_read"}, 1000)
      .Add(12, {"Start", "Walk", "Walk", "Walk", "Leaf", "Walk"}, 2000)
      .Add(12, {"Start"}, 3000)
      .Build();
}

Expected Filtered(ProfileFilter filter) { return Weights(*FilterProfile(Sample(), filter)); }

TEST(FilterProfileTest, WaitsAreChosenByTheirMarks) {
  ModelBuilder builder;
  builder.meta().view = ProfileView::kOffCpu;
  builder.meta().unit = WeightUnit::kMicroseconds;
  builder.Add(11, {"Main", "Enter", "[monitor]", "[woken by thread owner]", "Release"}, kNoTime, 700)
      .Add(11, {"Main", "[sleep]", "[woken by an interrupt]"}, kNoTime, 50)
      .Add(12, {"Main", "[runnable]"}, kNoTime, 3);
  const absl::StatusOr<ProfileModel> monitors = FilterProfile(builder.Build(), {.focus = "^\\[monitor\\]$"});
  ASSERT_TRUE(monitors.ok()) << monitors.status();
  EXPECT_EQ(Weights(*monitors), (Expected{{"11 Main;Enter;[monitor];[woken by thread owner];Release", 700}}));
  EXPECT_EQ(monitors->meta.view, ProfileView::kOffCpu);
  EXPECT_EQ(monitors->meta.unit, WeightUnit::kMicroseconds);
}

TEST(FilterProfileTest, WaitsThatReachOutOfThePartAreCut) {
  ModelBuilder builder;
  builder.meta().view = ProfileView::kOffCpu;
  builder.meta().unit = WeightUnit::kMicroseconds;
  builder.meta().duration_ns = 10'000'000;
  builder.Add(11, {"Main", "[sleep]"}, 1'000'000, 8'000)
      .Add(12, {"Main", "[socket]"}, 2'500'000, 100)
      .Add(12, {"[waits shorter than 1ms]"}, kNoTime, 30);
  const ProfileModel whole = builder.Build();
  EXPECT_EQ(Weights(*FilterProfile(whole, {.to_ns = 2'000'000})), (Expected{{"11 Main;[sleep]", 1'000}}));
  const ProfileModel middle = *FilterProfile(whole, {.from_ns = 2'000'000, .to_ns = 3'000'000});
  EXPECT_EQ(Weights(middle), (Expected{{"11 Main;[sleep]", 1'000}, {"12 Main;[socket]", 100}}));
  EXPECT_THAT(middle.samples.time_ns, ElementsAre(0, 500'000));
  EXPECT_EQ(Weights(*FilterProfile(whole, {.from_ns = 2'600'000})), (Expected{{"11 Main;[sleep]", 6'400}}));
  EXPECT_EQ(Weights(*FilterProfile(whole, {.from_ns = 9'000'000})), Expected{});
}

TEST(FilterProfileTest, FocusKeepsStacksWithTheMethodWhole) {
  EXPECT_EQ(Filtered({.focus = "Order\\.Total$"}),
            (Expected{{"11 Main;Shop.Order.Total", 1}, {"11 Main;Shop.Order.Total;sys_read", 1}}));
  EXPECT_EQ(Filtered({.focus = "^Order"}), Expected{});
}

TEST(FilterProfileTest, IgnoreDropsThem) { EXPECT_EQ(Filtered({.ignore = "Main|Leaf"}), (Expected{{"12 Start", 1}})); }

TEST(FilterProfileTest, ThreadsByIdOrByName) {
  EXPECT_EQ(Filtered({.ignore = "Leaf", .thread = "12"}), (Expected{{"12 Start", 1}}));
  EXPECT_EQ(Filtered({.ignore = "Leaf", .thread = "TP Worker"}), (Expected{{"12 Start", 1}}));
  EXPECT_EQ(Filtered({.thread = "1"}), Expected{});  // a number is an id, no part of one
}

TEST(FilterProfileTest, TimesAreFromInclusiveToExclusive) {
  EXPECT_EQ(Filtered({.from_ns = 1000, .to_ns = 3000}),
            (Expected{{"11 Main;Shop.Order.Total;sys_read", 1}, {"12 Start;Walk;Walk;Walk;Leaf;Walk", 1}}));
  EXPECT_EQ(Filtered({.from_ns = 3000}), (Expected{{"12 Start", 1}}));
}

TEST(FilterProfileTest, APartInTimeHasItsOwnDurationAndNoAccount) {
  const auto meta_of = [](const ProfileFilter& filter) {
    ModelBuilder builder;
    builder.meta().duration_ns = 10'000;
    builder.meta().account_json = "{}";
    return FilterProfile(builder.Add(11, {"Main"}, 2000).Build(), filter)->meta;
  };
  EXPECT_EQ(meta_of({.from_ns = 1000, .to_ns = 3000}).duration_ns, 2000u);
  EXPECT_EQ(meta_of({.from_ns = 1000, .to_ns = 30'000}).duration_ns, 9000u);
  EXPECT_EQ(meta_of({.from_ns = 20'000}).duration_ns, 0u);
  EXPECT_EQ(meta_of({.to_ns = 3000}).account_json, "");
  EXPECT_EQ(meta_of({.focus = "Main"}).duration_ns, 10'000u);
  EXPECT_EQ(meta_of({.focus = "Main"}).account_json, "{}");
}

TEST(FilterProfileTest, WithoutKernelTheCallerIsTheLeaf) {
  EXPECT_EQ(Filtered({.thread = "11", .no_kernel = true}), (Expected{{"11 Main;Shop.Order.Total", 2}}));
}

TEST(FilterProfileTest, DirectRecursionIsOneFrame) {
  EXPECT_EQ(Filtered({.focus = "Walk", .fold_recursion = true}), (Expected{{"12 Start;Walk;Leaf;Walk", 1}}));
}

// Two threads of two processes, and a pause of each.
ProfileModel WithPauses() {
  ProfileModelBuilder builder;
  const FrameIndex frame = builder.Frame({.name = builder.String("Main")});
  for (const uint32_t pid : {10u, 20u}) {
    const ThreadIndex thread = builder.Thread({.pid = pid, .tid = pid + 1, .name = builder.String("worker")});
    builder.Add({.time_ns = 100, .thread = thread, .stack = builder.Stack(std::span(&frame, 1))});
    builder.Event(
        {.time_ns = pid, .duration_ns = 5, .thread = builder.Thread({.pid = pid}), .name = builder.String("gc")});
  }
  builder.meta().start_unix_ns = 1'000 * 1'000'000'000ull;
  return *std::move(builder).Build();
}

std::vector<uint64_t> EventTimes(const ProfileModel& model) {
  std::vector<uint64_t> times;
  for (const ModelEvent& event : model.events) times.push_back(event.time_ns);
  return times;
}

TEST(FilterProfileTest, EventsGoWithTheirProcess) {
  EXPECT_EQ(EventTimes(*FilterProfile(WithPauses(), {.thread = "21"})), (std::vector<uint64_t>{20}));
}

TEST(FilterProfileTest, EventsThatReachIntoThePartAreKeptAndCut) {
  // Pauses from 10 to 15 and from 20 to 25.
  const ProfileModel both = *FilterProfile(WithPauses(), {.from_ns = 14, .to_ns = 101});
  EXPECT_EQ(EventTimes(both), (std::vector<uint64_t>{0, 6}));
  EXPECT_EQ(both.events[0].duration_ns, 1u);
  EXPECT_EQ(both.events[1].duration_ns, 5u);
  EXPECT_EQ(EventTimes(*FilterProfile(WithPauses(), {.from_ns = 16, .to_ns = 101})), (std::vector<uint64_t>{4}));
}

TEST(FilterProfileTest, APartInTimeIsARecordingOfItsOwn) {
  ModelBuilder builder;
  builder.Add(11, {"Main"}, 2'000).Add(11, {"Main"}, 12'000).Add(11, {"Main"}, 19'000);
  builder.meta().start_unix_ns = 1'000'000;
  builder.meta().start_monotonic_ns = 500;
  builder.meta().duration_ns = 20'000;
  const ProfileModel part = *FilterProfile(builder.Build(), {.from_ns = 10'000});
  EXPECT_THAT(part.samples.time_ns, ElementsAre(2'000, 9'000));
  EXPECT_EQ(part.meta.start_unix_ns, 1'010'000u);
  EXPECT_EQ(part.meta.start_monotonic_ns, 10'500u);
  EXPECT_EQ(part.meta.duration_ns, 10'000u);
  // A part of the part.
  EXPECT_THAT(FilterProfile(part, {.from_ns = 5'000})->samples.time_ns, ElementsAre(4'000));

  const ProfileModel unknown = *FilterProfile(Sample(), {.from_ns = 1'000});
  EXPECT_EQ(unknown.meta.start_unix_ns, 0u);
  EXPECT_EQ(unknown.meta.start_monotonic_ns, 0u);
  EXPECT_THAT(unknown.samples.time_ns, ElementsAre(0, 1'000, 2'000));
}

TEST(MergeProfilesTest, EventsMoveWithTheirProfile) {
  ProfileModel later = WithPauses();
  later.meta.start_unix_ns += 1000;
  EXPECT_EQ(EventTimes(*MergeProfiles({WithPauses(), std::move(later)})), (std::vector<uint64_t>{10, 20, 1010, 1020}));
}

TEST(FilterProfileTest, AnExpressionThatIsNoneIsAnError) {
  const auto filtered = FilterProfile(Sample(), {.focus = "a("});
  EXPECT_EQ(filtered.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(HintOf(filtered.status()), "");
}

TEST(FilterProfileTest, TimesOfAProfileWithoutThemAreAnError) {
  EXPECT_EQ(FilterProfile(ModelBuilder().Add(11, {"Main"}).Build(), {.from_ns = 1}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Two lines of Total in one file, and Rest in another; the texts of both are known.
ProfileModel WithLines() {
  ProfileModelBuilder builder;
  const ThreadIndex thread = builder.Thread({});
  const auto add = [&](const char* name, const char* file, uint32_t line) {
    const FrameIndex frame =
        builder.Frame({.name = builder.String(name), .source_file = builder.String(file), .line = line});
    builder.Add({.thread = thread, .stack = builder.Node(kRootNode, frame)});
    builder.Source(builder.String(file), builder.String("https://example.org/"), file);
  };
  add("Total", "Cart.cs", 57);
  add("Total", "Cart.cs", 58);
  add("Rest", "Rest.cs", 3);
  return *std::move(builder).Build();
}

TEST(FilterProfileTest, LinesAreNotPartOfANameAndKeepTheirFiles) {
  EXPECT_EQ(FilterProfile(WithLines(), {.focus = "57"})->total_weight, 0u);
  const ProfileModel totals = *FilterProfile(WithLines(), {.focus = "^Total$"});
  EXPECT_EQ(totals.frames.size(), 2u);
  ASSERT_EQ(totals.sources.size(), 1u);  // not that of Rest
  EXPECT_EQ(totals.text(totals.sources[0].file), "Cart.cs");
  EXPECT_EQ(totals.text(totals.sources[0].url), "https://example.org/");
  EXPECT_EQ(totals.sources[0].text, "Cart.cs");
}

TEST(MergeProfilesTest, EqualLinesAreOneAndFilesAreKept) {
  std::vector<ProfileModel> both;
  both.push_back(WithLines());
  both.push_back(WithLines());
  const ProfileModel merged = *MergeProfiles(both);
  EXPECT_EQ(merged.frames.size(), 3u);
  EXPECT_EQ(merged.sources.size(), 2u);
}

TEST(MergeProfilesTest, WeightsAddUpAndTimesCountFromTheFirstStart) {
  ModelBuilder first, second, third;
  first.Add(11, {"Main"}, 5).meta().start_unix_ns = 1'000'100;
  second.Add(11, {"Main"}, 7).Add(12, {"Start"}, 9).meta().start_unix_ns = 1'000'000;
  second.meta().duration_ns = 400;
  first.meta().pids = {10, 20};
  second.meta().pids = {10};
  first.meta().host = second.meta().host = "build7";
  third.Add(11, {"Main"}, 3, 40).meta().host = "build8";  // when it began is not known
  std::vector<ProfileModel> profiles;
  for (ModelBuilder* builder : {&first, &second, &third}) profiles.push_back(builder->Build());
  const ProfileModel merged = *MergeProfiles(profiles);
  EXPECT_EQ(Weights(merged), (Expected{{"11 Main", 42}, {"12 Start", 1}}));
  EXPECT_THAT(merged.samples.time_ns, ElementsAre(105, 7, 9, kNoTime));
  EXPECT_EQ(merged.meta.start_unix_ns, 1'000'000u);
  EXPECT_EQ(merged.meta.duration_ns, 0u) << "the third one lasted as well";
  EXPECT_THAT(merged.meta.pids, ElementsAre(10, 20));
  EXPECT_EQ(merged.meta.host, "build7, build8");
}

// Two recordings of 10 s, with a minute between their beginnings.
ProfileModel MergedWithAGap() {
  constexpr uint64_t kSecond = 1'000'000'000;
  std::vector<ProfileModel> profiles;
  for (const uint64_t begin_s : {1000, 1060}) {
    ModelBuilder builder;
    builder.Add(11, {"Main"}, kSecond).meta().start_unix_ns = begin_s * kSecond;
    builder.meta().duration_ns = 10 * kSecond;
    profiles.push_back(builder.Build());
  }
  return *MergeProfiles(profiles);
}

TEST(MergeProfilesTest, TheTimeBetweenTwoRecordingsWasNotRecorded) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const ProfileModel merged = MergedWithAGap();
  EXPECT_EQ(merged.meta.duration_ns, 70 * kSecond);
  EXPECT_EQ(merged.meta.recorded_ns(), 20 * kSecond);
  const std::vector<TimeStretch> both = {{0, 10 * kSecond}, {60 * kSecond, 70 * kSecond}};
  EXPECT_EQ(merged.meta.recorded, both);
  // Recordings at the same time count once, and a part has what was recorded in it.
  EXPECT_EQ(MergeProfiles({merged, merged})->meta.recorded, both);
  EXPECT_EQ(FilterProfile(merged, {.from_ns = 5 * kSecond, .to_ns = 62 * kSecond})->meta.recorded_ns(), 7 * kSecond);
  EXPECT_EQ(FilterProfile(merged, {.from_ns = 60 * kSecond})->meta.recorded_ns(), 10 * kSecond);
  EXPECT_TRUE(FilterProfile(merged, {.from_ns = 60 * kSecond})->meta.recorded.empty()) << "all of it";
}

TEST(MergeProfilesTest, ARecordingOfUnknownLengthLeavesTheRecordedTimeOpen) {
  ModelBuilder first, second;
  first.Add(11, {"Main"}, 5).meta().start_unix_ns = 1'000;
  second.Add(11, {"Main"}, 7).meta().start_unix_ns = 5'000;
  second.meta().duration_ns = 400;
  std::vector<ProfileModel> profiles;
  profiles.push_back(first.Build());
  profiles.push_back(second.Build());
  EXPECT_EQ(MergeProfiles(profiles)->meta.recorded_ns(), 4'400u);
}

TEST(MergeProfilesTest, ARecordingThatBeganAtAnUnknownTimeMakesTheRecordedTimeUnknown) {
  ModelBuilder first, second, empty;
  first.Add(11, {"Main"}, 5).meta().start_unix_ns = 1'000;
  first.meta().duration_ns = second.meta().duration_ns = empty.meta().duration_ns = 400;
  second.Add(11, {"Main"}, 7);
  std::vector<ProfileModel> profiles;
  profiles.push_back(first.Build());
  profiles.push_back(empty.Build());
  EXPECT_EQ(MergeProfiles(profiles)->meta.recorded_ns(), 400u);
  profiles.push_back(second.Build());
  const ProfileModel merged = *MergeProfiles(profiles);
  EXPECT_EQ(merged.meta.recorded_ns(), 0u);
  EXPECT_EQ(merged.meta.start_unix_ns, 1'000u);
}

TEST(MergeProfilesTest, SamplesOfDifferentLengthBecomeTimes) {
  ModelBuilder slow, fast, delays;
  slow.Add(11, {"Main"}).meta().period_ns = 10'000;
  fast.Add(11, {"Main"}).meta().period_ns = 1'000;
  delays.Add(11, {"Main"}).meta().unit = WeightUnit::kMicroseconds;
  std::vector<ProfileModel> profiles;
  for (ModelBuilder* builder : {&slow, &fast, &delays}) profiles.push_back(builder->Build());
  const ProfileModel merged = *MergeProfiles(profiles);
  EXPECT_EQ(merged.meta.unit, WeightUnit::kNanoseconds);
  EXPECT_EQ(Weights(merged), (Expected{{"11 Main", 12'000}}));
  ModelBuilder unknown;
  profiles.push_back(unknown.Add(11, {"Main"}).Build());
  EXPECT_THAT(std::string(MergeProfiles(profiles).status().message()), HasSubstr("profile 4"));
}

TEST(MergeProfilesTest, SamplesOfUnknownLengthStayUnknown) {
  ModelBuilder folded, json;
  json.Add(11, {"Main"}).meta().period_ns = 10'000;
  std::vector<ProfileModel> profiles;
  profiles.push_back(folded.Add(11, {"Main"}).Build());
  profiles.push_back(json.Build());
  const ProfileModel merged = *MergeProfiles(profiles);
  EXPECT_EQ(merged.meta.unit, WeightUnit::kSamples);
  EXPECT_EQ(merged.meta.period_ns, 0u);
  EXPECT_EQ(merged.total_weight, 2u);
}

TEST(MergeProfilesTest, OtherViewsDoNotAddUp) {
  ModelBuilder cpu, pause;
  pause.meta().view = ProfileView::kPause;
  std::vector<ProfileModel> profiles;
  profiles.push_back(cpu.Build());
  profiles.push_back(pause.Build());
  EXPECT_EQ(MergeProfiles(profiles).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace clrsampler
