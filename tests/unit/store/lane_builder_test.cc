#include "store/lane_builder.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "os/clock.h"
#include "store/lane_nodes.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr uint64_t kLanesBegin = 1000 * kSecondNs;

TEST(LaneBuilderTest, TheLargestThreadsHaveLanesAndTheOthersOne) {
  LaneBuilder builder(kLanesBegin, 10 * kSecondNs, 3);
  std::vector<uint32_t> threads;
  for (uint32_t tid = 1; tid <= 4; ++tid) {
    threads.push_back(builder.Thread({.pid = 7, .tid = tid, .comm = "shop", .name = "worker"}, 5));
    builder.Rank(threads.back(), tid * kSecondNs);
  }
  EXPECT_EQ(builder.Thread({.pid = 7, .tid = 1, .comm = "shop", .name = "worker"}, 5), threads[0]);
  EXPECT_NE(builder.Thread({.pid = 7, .tid = 1, .comm = "shop", .name = "worker"}, 6), threads[0]) << "of another one";
  builder.Choose(2);
  builder.Cover(kLanesBegin, kLanesBegin + 10 * kSecondNs);
  for (uint32_t tid = 1; tid <= 4; ++tid) {
    builder.Fill(threads[tid - 1], LaneCategory::kManaged, kLanesBegin, kLanesBegin + 10 * kSecondNs, tid * kSecondNs);
  }
  const HistoryLanes lanes = std::move(builder).Build();
  EXPECT_THAT(lanes.covered, ElementsAre(true, false, false));
  ASSERT_THAT(lanes.threads, SizeIs(3));
  EXPECT_EQ(lanes.threads[0].tid, 4u);
  EXPECT_EQ(lanes.threads[1].tid, 3u);
  EXPECT_EQ(lanes.threads[2].pid, 0u);
  EXPECT_EQ(lanes.threads[2].total_ns, 3 * kSecondNs);
  EXPECT_EQ(lanes.others, 2u);
  ASSERT_THAT(lanes.lanes, SizeIs(3));
  EXPECT_THAT(lanes.lanes[2].values, ElementsAre(Pair(0u, 3 * kSecondNs)));
}

TEST(LaneBuilderTest, WhatLiesInTwoStepsIsInEachByItsPart) {
  LaneBuilder builder(kLanesBegin, 10 * kSecondNs, 2);
  const uint32_t thread = builder.Thread({.pid = 7, .tid = 1}, 0);
  builder.Rank(thread, 1001);
  builder.Choose(5);
  builder.Fill(thread, LaneCategory::kKernel, kLanesBegin + 7 * kSecondNs, kLanesBegin + 17 * kSecondNs, 1001);
  builder.Fill(thread, LaneCategory::kIdle, kLanesBegin - 5 * kSecondNs, kLanesBegin + 5 * kSecondNs, 100);
  const HistoryLanes lanes = std::move(builder).Build();
  ASSERT_THAT(lanes.lanes, SizeIs(2));
  EXPECT_EQ(lanes.lanes[0].state, LaneCategory::kKernel);
  EXPECT_THAT(lanes.lanes[0].values, ElementsAre(Pair(0u, 300u), Pair(1u, 701u)));
  EXPECT_THAT(lanes.lanes[1].values, ElementsAre(Pair(0u, 50u)));
  EXPECT_EQ(lanes.others, 0u);
}

TEST(LaneNodesTest, AFrameSaysWhatRanAndAMarkWhatWasWaitedFor) {
  ProfileModelBuilder builder;
  const auto frame = [&](ModelFrameKind kind, absl::string_view name) {
    return builder.Frame({.kind = kind, .name = builder.String(name)});
  };
  const NodeIndex main = builder.Node(kRootNode, frame(ModelFrameKind::kJit, "Shop.Main"));
  const NodeIndex role = builder.Node(main, frame(ModelFrameKind::kRole, "[gc gen0]"));
  const NodeIndex inlined = builder.Node(main, frame(ModelFrameKind::kInlined, "Shop.Inlined"));
  const NodeIndex idle = builder.Node(main, frame(ModelFrameKind::kMark, "[idle]"));
  const NodeIndex lock = builder.Node(main, frame(ModelFrameKind::kMark, "[monitor]"));
  const NodeIndex waker = builder.Node(lock, frame(ModelFrameKind::kKernel, "futex_wake"));
  const ProfileModel& model = builder.model();
  const auto text = [&](StringIndex index) { return model.text(index); };
  const LaneNodes nodes(model.nodes, model.frames, text, "INLINED");
  EXPECT_EQ(nodes.Running(main), LaneCategory::kManaged);
  EXPECT_EQ(nodes.Running(role), LaneCategory::kCollection);
  EXPECT_EQ(nodes.Running(inlined), LaneCategory::kManaged);
  EXPECT_EQ(nodes.Waiting(idle), LaneCategory::kIdle);
  EXPECT_EQ(nodes.Waiting(lock), LaneCategory::kWaiting);
  EXPECT_EQ(nodes.Waiting(waker), LaneCategory::kWaiting);
  EXPECT_TRUE(nodes.Counts(inlined));
  EXPECT_FALSE(nodes.Counts(main));
  EXPECT_TRUE(LaneNodes(model.nodes, model.frames, text, "").Counts(kRootNode));
}

}  // namespace
}  // namespace clrsampler
