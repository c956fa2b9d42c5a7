#include "export/window_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "status/status.h"
#include "unit/export/made_up_windows.h"

namespace clrsampler {
namespace {

using test_support::kMadeUpSample;
using test_support::kMadeUpSecond;
using test_support::kMadeUpStart;
using test_support::ShopWindow;
using ::testing::HasSubstr;

constexpr uint64_t kBytesOfAWindow = 42'000'000;

HistorySelection Seconds(uint64_t from_s, uint64_t to_s) {
  return {.from_unix_ns = kMadeUpStart + from_s * kMadeUpSecond, .to_unix_ns = kMadeUpStart + to_s * kMadeUpSecond};
}

// Three windows of 10 s are there.
ProfileModel ProfileOf(const HistorySelection& selection, ProfileView view) {
  WindowProfile profile(selection, view, false);
  for (uint64_t i = 1; i <= 3; ++i) {
    const absl::Status added = profile.Add(*ShopWindow(i));
    EXPECT_TRUE(added.ok()) << added;
  }
  absl::StatusOr<ProfileModel> model = std::move(profile).Build();
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : ProfileModel();
}

TEST(WindowProfileTest, CpuTimeIsCutToTheTimeThatIsAskedFor) {
  const ProfileModel model = ProfileOf(Seconds(5, 25), ProfileView::kCpu);
  EXPECT_EQ(model.total_weight, 2 * 140 * kMadeUpSample);
  EXPECT_EQ(model.meta.duration_ns, 20 * kMadeUpSecond);
  EXPECT_EQ(model.meta.recorded_ns(), 20 * kMadeUpSecond);
}

TEST(WindowProfileTest, EventsWithoutTimesAreOfTheWindowsThatTheProfileSays) {
  for (const ProfileView view : {ProfileView::kAllocations, ProfileView::kOffCpu}) {
    const uint64_t of_a_window = view == ProfileView::kAllocations ? kBytesOfAWindow : 4 * kMadeUpSecond;
    const ProfileModel model = ProfileOf(Seconds(5, 25), view);
    EXPECT_EQ(model.total_weight, 2 * of_a_window) << "the first one begins before";
    EXPECT_EQ(model.meta.start_unix_ns, kMadeUpStart + 5 * kMadeUpSecond);
    EXPECT_EQ(model.meta.duration_ns, 25 * kMadeUpSecond) << "the last one reaches beyond";
    EXPECT_EQ(model.meta.Stretches(), (std::vector<TimeStretch>{{5 * kMadeUpSecond, 25 * kMadeUpSecond}}));
  }
}

TEST(WindowProfileTest, WithoutAWindowItIsOfNoTime) {
  const ProfileModel model = ProfileOf(Seconds(21, 29), ProfileView::kAllocations);
  EXPECT_EQ(model.total_weight, 0u);
  EXPECT_EQ(model.meta.recorded_ns(), 0u);
}

TEST(WindowProfileTest, PutsThreadsTogetherBeforeItGivesUp) {
  // The windows have 18 rows, and 12 without threads.
  WindowProfile profile(Seconds(0, 30), ProfileView::kCpu, false, {.rows = 14});
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(profile.Add(*ShopWindow(i)).ok());
  const absl::StatusOr<ProfileModel> model = std::move(profile).Build();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->total_weight, 3 * 140 * kMadeUpSample);
  std::set<uint32_t> pids;
  for (const ThreadIndex thread : model->samples.thread) {
    EXPECT_EQ(model->threads[thread].tid, 0u);
    pids.insert(model->threads[thread].pid);
  }
  EXPECT_THAT(pids, ::testing::ElementsAre(99, 4711));
}

TEST(WindowProfileTest, TooManyStacksAreNoProfile) {
  for (const SampleSums::Limits& limits : {SampleSums::Limits{.rows = 3}, SampleSums::Limits{.nodes = 5}}) {
    WindowProfile profile(Seconds(0, 30), ProfileView::kCpu, false, limits);
    const absl::Status status = profile.Add(*ShopWindow(1));
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(HintOf(status), HasSubstr("shorter time"));
  }
}

}  // namespace
}  // namespace clrsampler
