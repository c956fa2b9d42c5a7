#include "output/wait_sites.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace clrsampler {
namespace {

class WaitSitesTest : public testing::Test {
 protected:
  void Add(uint32_t pid, const std::vector<std::pair<ModelFrameKind, std::string>>& stack, uint64_t weight) {
    NodeIndex node = kRootNode;
    for (const auto& [kind, name] : stack) {
      node = builder_.Node(node, builder_.Frame({.kind = kind, .name = builder_.String(name)}));
    }
    builder_.Add({.thread = builder_.Thread({.pid = pid, .tid = pid}), .stack = node, .weight = weight});
  }
  std::map<ProcessWaitSite, uint64_t> Sites() {
    std::map<ProcessWaitSite, uint64_t> sums;
    AddWaitSites(*std::move(builder_).Build(), sums);
    return sums;
  }

  static constexpr ModelFrameKind kJit = ModelFrameKind::kJit, kMark = ModelFrameKind::kMark;
  ProfileModelBuilder builder_;
};

TEST_F(WaitSitesTest, AProgramsOwnMethodWaitsAndSomebodyEndsIt) {
  Add(7,
      {{kJit, "Shop.Main"},
       {kJit, "Shop.Cart.Add"},
       {kJit, "System.Threading.Monitor.Enter"},
       {ModelFrameKind::kKernel, "futex_wait"},
       {kMark, "[monitor]"},
       {kMark, "[woken by thread owner]"},
       {kJit, "Shop.Report.Write"}},
      5);
  Add(7, {{kJit, "Shop.Main"}, {kJit, "Shop.Cart.Add"}, {kMark, "[monitor]"}}, 2);
  EXPECT_EQ(Sites(), (std::map<ProcessWaitSite, uint64_t>{{{7, "monitor", "Shop.Cart.Add", "woken by thread owner"}, 5},
                                                          {{7, "monitor", "Shop.Cart.Add", ""}, 2}}));
}

TEST_F(WaitSitesTest, WithoutAnOwnMethodTheNearestOne) {
  Add(1, {{kJit, "System.Threading.TimerQueue.TimerThread"}, {kMark, "[idle]"}}, 3);
  Add(1, {{ModelFrameKind::kNative, "main"}, {ModelFrameKind::kNative, "poll"}, {kMark, "[poll]"}}, 4);
  Add(1, {{kMark, "[waits shorter than 1ms]"}}, 1);
  EXPECT_EQ(Sites(),
            (std::map<ProcessWaitSite, uint64_t>{{{1, "idle", "System.Threading.TimerQueue.TimerThread", ""}, 3},
                                                 {{1, "poll", "poll", ""}, 4},
                                                 {{1, "waits shorter than 1ms", "", ""}, 1}}));
}

TEST_F(WaitSitesTest, WhatRunsAndWhatOnlyLooksLikeAMarkIsNoWait) {
  Add(1, {{kJit, "Shop.Main"}}, 3);
  Add(1, {{kJit, "Shop.Main"}, {kMark, "[caller may be missing]"}}, 3);
  Add(1, {{kJit, "[monitor]"}, {kJit, "Shop.Main"}}, 3);
  EXPECT_TRUE(Sites().empty());
}

}  // namespace
}  // namespace clrsampler
