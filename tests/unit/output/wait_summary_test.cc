#include "output/wait_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clrsampler {
namespace {

using testing::HasSubstr;

class WaitSummaryTest : public testing::Test {
 protected:
  FrameId Managed(const char* text) {
    return frames_.Intern(Frame{FrameKind::kJit, NameSource::kRuntimeMemory, text, "", ""});
  }
  FrameId Mark(const char* text) { return frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, text, "", ""}); }
  void Add(uint64_t microseconds, const std::vector<FrameId>& stack) {
    stacks_.Add(stacks_.Intern(label_, stack), microseconds);
  }

  FrameTable frames_;
  StackTable stacks_;
  LabelId label_ = stacks_.InternLabel("shop");
};

TEST_F(WaitSummaryTest, ASiteIsTheProgramsOwnMethodWithItsWaker) {
  const FrameId total = Managed("Shop.Order.Total"), enter = Managed("System.Threading.Monitor.Enter");
  Add(3'000'000, {Managed("Shop.Program.Main"), total, enter, Mark("[monitor]"), Mark("[woken by thread one]"),
                  Managed("System.Threading.Monitor.Exit"), Managed("Shop.Order.Save")});
  Add(1'000'000, {Managed("Shop.Program.Main"), total, enter, Mark("[monitor]"), Mark("[woken by thread two]")});
  Add(9'000'000, {Managed("System.Threading.Idle"), Mark("[idle]")});
  Add(500'000, {Managed("Shop.Program.Main")});
  const WaitSummary summary = SummarizeWaits(frames_, stacks_);
  EXPECT_EQ(summary.waited_us, 13'000'000);
  EXPECT_EQ(summary.running_us, 500'000);
  ASSERT_EQ(summary.kinds.size(), 3);
  EXPECT_EQ(summary.kinds[0].kind, "idle");
  EXPECT_EQ(summary.kinds[1].kind, "monitor");
  EXPECT_EQ(summary.kinds[2].kind, "running");
  ASSERT_EQ(summary.sites.size(), 1);
  EXPECT_EQ(summary.sites[0].method, "Shop.Order.Total");
  EXPECT_EQ(summary.sites[0].microseconds, 4'000'000);
  EXPECT_EQ(summary.sites[0].waker, "woken by thread one in Shop.Order.Save");
  Account account;
  account.duration_seconds = 2;
  const std::string text = WaitSummaryText(summary, account, 5);
  EXPECT_THAT(text, HasSubstr("threads waited for 13.000 s in 2.0 s, 6.5 of them at a time, and ran for 0.500 s\n"));
  EXPECT_THAT(text, HasSubstr("4.000 s  monitor        Shop.Order.Total\n"));
}

TEST_F(WaitSummaryTest, OnlyTheKindsThatAreAskedForHaveSites) {
  Add(1'000, {Managed("Shop.Order.Total"), Mark("[sleep]")});
  Add(1'000, {Managed("Shop.Order.Save"), Mark("[monitor]")});
  Add(1'000, {Mark("[waits shorter than 1ms]")});
  const WaitSummary summary = SummarizeWaits(frames_, stacks_, {WaitKind::kMonitor});
  ASSERT_EQ(summary.sites.size(), 1);
  EXPECT_EQ(summary.sites[0].method, "Shop.Order.Save");
  EXPECT_EQ(summary.kinds.size(), 3);
}

}  // namespace
}  // namespace clrsampler
