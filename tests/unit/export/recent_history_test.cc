#include "export/recent_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "unit/export/made_up_windows.h"

namespace clrsampler {
namespace {

using test_support::kMadeUpSample;
using test_support::kMadeUpSecond;
using test_support::kMadeUpStart;
using test_support::ShopWindow;
using test_support::WindowBuilder;

HistorySelection Between(uint64_t from_s, uint64_t to_s) {
  HistorySelection selection;
  selection.from_unix_ns = kMadeUpStart + from_s * kMadeUpSecond;
  selection.to_unix_ns = kMadeUpStart + to_s * kMadeUpSecond;
  return selection;
}

class RecentHistoryTest : public ::testing::Test {
 protected:
  RecentHistoryTest() : history_(MakeRecentHistory(windows_)) {
    for (uint64_t i = 1; i <= 6; ++i) windows_.Add(ShopWindow(i));
  }
  uint64_t Weight(const HistorySelection& selection, ProfileView view = ProfileView::kCpu) {
    const absl::StatusOr<ProfileModel> model = history_->Profile(selection, view);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? model->total_weight / kMadeUpSample : 0;
  }
  RecentWindows windows_{6};
  std::unique_ptr<History> history_;
};

TEST_F(RecentHistoryTest, ProfilesAreCutToTheTime) {
  EXPECT_EQ(Weight(Between(0, 60)), 6 * 140u);
  EXPECT_EQ(Weight(Between(10, 20)), 140u);
  EXPECT_EQ(Weight(Between(15, 25)), 140u);
  EXPECT_EQ(Weight(Between(15, 16)), 14u);
  EXPECT_EQ(Weight(Between(60, 70)), 0u);
}

TEST_F(RecentHistoryTest, ProfilesAreOfTheProcessThatIsMeant) {
  HistorySelection selection = Between(0, 60);
  selection.pid = 4711;
  EXPECT_EQ(Weight(selection), 600u);
  selection.comm = "envoy";
  EXPECT_EQ(Weight(selection), 0u);
  selection.pid.reset();
  EXPECT_EQ(Weight(selection), 240u);
  selection.comm.reset();
  for (const char* container : {"shop-web", "0123456789ab", "0123456789abcdef0123456789abcdef"}) {
    selection.container = container;
    EXPECT_EQ(Weight(selection), 600u) << container;
  }
  selection.container = "0123";
  EXPECT_EQ(Weight(selection), 0u) << "too short for an id";
  selection = Between(0, 60);
  selection.thread = "worker";
  EXPECT_EQ(Weight(selection), 6 * 70u);
  selection.thread = "4712";
  EXPECT_EQ(Weight(selection), 300u);
}

TEST_F(RecentHistoryTest, PausedSamplesAreAViewOfTheirOwn) {
  EXPECT_EQ(Weight(Between(0, 10), ProfileView::kPause), 14u);
  EXPECT_EQ(Weight(Between(0, 10), ProfileView::kJit), 0u);
}

TEST_F(RecentHistoryTest, AllocationsAreAViewInBytes) {
  const absl::StatusOr<ProfileModel> model = history_->Profile(Between(10, 30), ProfileView::kAllocations);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->total_weight, 2 * 42'000'000u);
  EXPECT_EQ(model->meta.unit, WeightUnit::kBytes);
}

TEST_F(RecentHistoryTest, WaitsAreAViewInTimeAndStatesOfTheTimeline) {
  EXPECT_EQ(history_->Profile(Between(10, 30), ProfileView::kOffCpu)->total_weight, 2 * 4 * kMadeUpSecond);
  const absl::StatusOr<Timeline> timeline = history_->Timeline(Between(0, 60), TimelineBy::kProcess, 6, 12);
  ASSERT_TRUE(timeline.ok());
  ASSERT_EQ(timeline->states.size(), 6u);
  EXPECT_EQ(timeline->states[5].of(WaitKind::kMonitor), 3 * kMadeUpSecond);
  EXPECT_EQ(timeline->states[5].running_ns, 5 * kMadeUpSecond);
  EXPECT_EQ(timeline->series[0].wait_ns[5], 4 * kMadeUpSecond);
}

TEST_F(RecentHistoryTest, TimesCountFromTheBeginningOfTheRange) {
  const absl::StatusOr<ProfileModel> model = history_->Profile(Between(15, 25), ProfileView::kCpu);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->meta.start_unix_ns, kMadeUpStart + 15 * kMadeUpSecond);
  EXPECT_EQ(model->meta.duration_ns, 10 * kMadeUpSecond);
  for (size_t row = 0; row < model->samples.size(); ++row) {
    EXPECT_LT(model->samples.time_of(row), 10 * kMadeUpSecond);
  }
}

TEST_F(RecentHistoryTest, OnlyTheWindowsOfARangeAreRecorded) {
  const absl::StatusOr<ProfileModel> model = history_->Profile(Between(55, 100), ProfileView::kCpu);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->meta.duration_ns, 45 * kMadeUpSecond);
  EXPECT_EQ(model->meta.recorded_ns(), 5 * kMadeUpSecond);
}

TEST_F(RecentHistoryTest, TimelineByProcessAndContainer) {
  auto timeline = history_->Timeline(Between(0, 60), TimelineBy::kProcess, 3, 10);
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->steps, 3u);
  EXPECT_EQ(timeline->step_ns, 20 * kMadeUpSecond);
  ASSERT_EQ(timeline->series.size(), 2u);
  EXPECT_EQ(timeline->series[0].label, "Shop");
  EXPECT_TRUE(timeline->series[0].dotnet);
  EXPECT_DOUBLE_EQ(timeline->series[0].cores[1], 0.5);
  EXPECT_EQ(timeline->series[0].pause_ns[1], 2 * 20'300'000u);
  EXPECT_EQ(timeline->series[0].allocated_bytes[1], 2 * 42'000'000u);
  EXPECT_FALSE(timeline->series[1].dotnet);
  timeline = history_->Timeline(Between(0, 60), TimelineBy::kContainer, 100, 1);
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->steps, 6u) << "a step is at least a window";
  ASSERT_EQ(timeline->series.size(), 1u) << "the others are one of those that were asked for";
  EXPECT_EQ(timeline->series[0].label, "[others]");
  EXPECT_DOUBLE_EQ(timeline->series[0].cores[5], 0.7);
  timeline = history_->Timeline(Between(0, 60), TimelineBy::kContainer, 100, 2);
  ASSERT_EQ(timeline->series.size(), 2u);
  EXPECT_EQ(timeline->series[0].label, "shop-web");
  EXPECT_EQ(timeline->series[1].label, "");
  EXPECT_DOUBLE_EQ(timeline->series[1].cores[5], 0.2);
}

TEST_F(RecentHistoryTest, ATimelineIsOfTheThreadThatIsMeantAndMethodsAreOfNone) {
  HistorySelection selection = Between(0, 60);
  selection.thread = "4712";
  const absl::StatusOr<Timeline> timeline = history_->Timeline(selection, TimelineBy::kProcess, 6, 10);
  ASSERT_TRUE(timeline.ok());
  ASSERT_EQ(timeline->series.size(), 1u) << "nothing is known of another process";
  EXPECT_EQ(timeline->series[0].label, "Shop");
  EXPECT_DOUBLE_EQ(timeline->series[0].cores[1], 0.25);
  EXPECT_EQ(timeline->series[0].pause_ns[1], 20'300'000u) << "those of its process";
  EXPECT_TRUE(absl::IsInvalidArgument(history_->Methods(selection, 10).status()));
}

TEST_F(RecentHistoryTest, APidThatIsThereTwiceBelongsToTheProcessThatTheNameTells) {
  WindowBuilder builder(7, kMadeUpStart + 60 * kMadeUpSecond);
  builder.Process(900, "before", 30);
  builder.Process(900, "after", 10);
  windows_.Add(std::move(builder).Build());
  HistorySelection selection = Between(60, 70);
  for (const auto& [comm, samples] : {std::pair("before", 30u), std::pair("after", 10u)}) {
    selection.comm = comm;
    EXPECT_EQ(Weight(selection), samples) << comm;
  }
}

TEST_F(RecentHistoryTest, PausesAndMethods) {
  const auto pauses = history_->Pauses(Between(0, 60), 3);
  ASSERT_TRUE(pauses.ok());
  EXPECT_EQ(pauses->count, 12u);
  EXPECT_EQ(pauses->pause_ns, 6 * 20'300'000u);
  ASSERT_EQ(pauses->longest.size(), 3u);
  EXPECT_EQ(pauses->longest[0].pause.pause_ns, 20'000'000u);
  EXPECT_EQ(pauses->longest[0].pid, 4711u);
  const auto methods = history_->Methods(Between(0, 60), 10);
  ASSERT_TRUE(methods.ok());
  EXPECT_EQ(methods->count, 12u);
  ASSERT_EQ(methods->methods.size(), 1u);
  EXPECT_EQ(methods->methods[0].method.total_ns, 30'000'000u);
}

TEST_F(RecentHistoryTest, HealthAddsUp) {
  const auto health = history_->Health(kMadeUpStart, kMadeUpStart + 60 * kMadeUpSecond);
  ASSERT_TRUE(health.ok());
  EXPECT_EQ(health->covered_ns, 60 * kMadeUpSecond);
  EXPECT_EQ(health->samples_taken, 840u);
  EXPECT_EQ(health->lost.at("ring_full"), 6u);
  EXPECT_EQ(health->notices, std::vector<std::string>{"a jitdump ended"});
  EXPECT_EQ(health->rates.size(), 1u);
}

TEST_F(RecentHistoryTest, AClockThatIsSetBackLeavesATimeline) {
  WindowBuilder builder(7, kMadeUpStart - 1000 * kMadeUpSecond);
  builder.Process(100, "shop", 20);
  windows_.Add(std::move(builder).Build());
  HistorySelection all;
  all.to_unix_ns = ~uint64_t{0};
  const absl::StatusOr<Timeline> line = history_->Timeline(all, TimelineBy::kProcess, 100, 100);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->begin_unix_ns, kMadeUpStart - 1000 * kMadeUpSecond);
  EXPECT_GT(line->covered_ns.size(), 50u);
  EXPECT_LE(line->covered_ns.size(), 101u);
}

TEST_F(RecentHistoryTest, OnlyTheLastWindowsAreKept) {
  windows_.Add(ShopWindow(7));
  const auto span = history_->Span();
  ASSERT_TRUE(span.ok());
  EXPECT_EQ(span->windows, 6u);
  EXPECT_EQ(span->oldest_unix_ns, kMadeUpStart + 10 * kMadeUpSecond);
}

TEST(RecentWindowsTest, ManyShortWindowsAreKeptForTheTimeToo) {
  RecentWindows windows(3, 20 * kMadeUpSecond);
  const auto add = [&](uint64_t number, uint64_t second) {
    windows.Add(WindowBuilder(number, kMadeUpStart + second * kMadeUpSecond, kMadeUpSecond).Build());
  };
  for (uint64_t i = 1; i <= 100; ++i) add(i, i);
  EXPECT_EQ(windows.All().size(), 21u);
  for (uint64_t i = 0; i < 100; ++i) add(101 + i, 100);
  EXPECT_EQ(windows.All().size(), 30u) << "there is a bound";
  add(201, 1000);
  EXPECT_EQ(windows.All().size(), 3u);
}

TEST(RecentWindowsTest, AReaderWaitsForWhatIsNew) {
  RecentWindows windows(10);
  windows.Add(ShopWindow(1));
  EXPECT_EQ(windows.After(0, std::chrono::seconds(0)).size(), 1u);
  EXPECT_TRUE(windows.After(1, std::chrono::milliseconds(1)).empty());
  std::thread later([&] { windows.Add(ShopWindow(2)); });
  const std::vector<SharedWindow> came = windows.After(1, std::chrono::seconds(60));
  later.join();
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0]->number, 2u);
  std::thread closes([&] { windows.Close(); });
  EXPECT_TRUE(windows.After(2, std::chrono::seconds(60)).empty());
  closes.join();
}

}  // namespace
}  // namespace clrsampler
