#include "profile/model_tables.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace clrsampler {
namespace {

ProfileModel TwoSamplesOfOneStack() {
  ProfileModelBuilder builder;
  const FrameIndex main = builder.Frame({.kind = ModelFrameKind::kJit, .name = builder.String("Main")});
  const FrameIndex wait = builder.Frame({.kind = ModelFrameKind::kMark, .name = builder.String("[monitor]")});
  const NodeIndex stack = builder.Stack(std::vector<FrameIndex>{main, wait});
  const ThreadIndex one = builder.Thread({.pid = 7, .tid = 8}), two = builder.Thread({.pid = 7, .tid = 9});
  builder.Add({.time_ns = 5, .thread = one, .stack = stack, .weight = 3});
  builder.Add({.time_ns = 6, .thread = two, .stack = stack, .weight = 4});
  return *std::move(builder).Build();
}

TEST(ModelTablesTest, StacksAndSamplesAreThoseOfTheProfile) {
  ModelTables tables;
  ASSERT_TRUE(tables.Fill(TwoSamplesOfOneStack()).ok());
  ASSERT_EQ(tables.stacks().size(), 1);
  EXPECT_EQ(tables.stacks().count(0), 7);
  const StackView stack = tables.stacks().stack(0);
  ASSERT_EQ(stack.frames.size(), 2);
  EXPECT_EQ(tables.frames().at(stack.frames[0]).text, "Main");
  EXPECT_EQ(tables.frames().at(stack.frames[0]).kind, FrameKind::kJit);
  EXPECT_EQ(tables.frames().at(stack.frames[1]).kind, FrameKind::kMark);
  std::vector<uint32_t> tids;
  tables.samples().ForEach(
      [&](const SampleLog::Row& row) { tids.push_back(tables.samples().threads()[row.thread].tid); });
  EXPECT_EQ(tids, (std::vector<uint32_t>{8, 9}));
}

TEST(ModelTablesTest, WhatIsTooLargeIsRefused) {
  ModelTables tables;
  EXPECT_EQ(tables.Fill(TwoSamplesOfOneStack(), 1).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace clrsampler
