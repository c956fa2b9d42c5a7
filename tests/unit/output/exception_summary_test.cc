#include "output/exception_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class ExceptionSummaryTest : public testing::Test {
 protected:
  FrameId Managed(const char* text, uint32_t line = 0) {
    Frame frame{FrameKind::kJit, NameSource::kRuntimeMemory, text, "", ""};
    if (line != 0) frame.place = {"/src/Shop.cs", line, 1, LineKind::kNone};
    return frames_.Intern(frame);
  }
  FrameId Type(const char* text) {
    return frames_.Intern(Frame{FrameKind::kType, NameSource::kRuntimeMemory, text, "", ""});
  }
  void Add(std::vector<FrameId> frames, uint64_t count) {
    stacks_.Add(stacks_.Intern(stacks_.InternLabel("dotnet"), frames), count);
  }

  FrameTable frames_;
  StackTable stacks_;
  Account account_;
};

TEST_F(ExceptionSummaryTest, StacksThatAreAlikeInTheirInnermostFramesAreOne) {
  const FrameId take = Managed("Shop.Take", 12), sell = Managed("Shop.Sell", 30);
  Add({Managed("Main"), sell, take, Type("OutOfStock")}, 3);
  Add({Managed("Other"), sell, take, Type("OutOfStock")}, 4);
  Add({Managed("Main"), sell, Managed("Shop.Take", 14), Type("OutOfStock")}, 5);
  Frame optimised = frames_.at(take);
  optimised.tier = "OptimizedTier1";
  Add({sell, frames_.Intern(optimised), Type("OutOfStock")}, 1);
  Add({sell, take, Type("Closed")}, 1);
  Add({sell, Type("Never")}, 0);
  const std::vector<ThrowingStack> stacks = ThrowingStacks(frames_, stacks_, 10, 2);
  ASSERT_THAT(stacks, SizeIs(3));
  EXPECT_EQ(stacks[0].type, "OutOfStock");
  EXPECT_EQ(stacks[0].count, 8u);
  EXPECT_THAT(stacks[0].frames, ElementsAre(take, sell));
  EXPECT_EQ(stacks[1].count, 5u) << "another line";
  EXPECT_EQ(stacks[2].type, "Closed");
  EXPECT_THAT(ThrowingStacks(frames_, stacks_, 1, 2), SizeIs(1));
}

TEST_F(ExceptionSummaryTest, TheTextHasLinesWhereTheyAreKnown) {
  Add({Managed("Ma\x1bin"), Managed("Shop.Take", 12), Type("OutOfStock")}, 7);
  EXPECT_EQ(ThrowingStacksText(frames_, ThrowingStacks(frames_, stacks_, 1, 5)),
            "         7  OutOfStock\n"
            "              Shop.Take  /src/Shop.cs:12\n"
            "              Ma?in\n");
}

TEST_F(ExceptionSummaryTest, WhatWasNotSeenIsSaid) {
  EXPECT_EQ(SeenExceptionsText(account_), "");
  account_.exceptions = {{"thrown", 50}, {"estimated", 50}};
  EXPECT_EQ(SeenExceptionsText(account_), "all were seen");
  account_.rethrown = {{"OutOfStock", 2}, {"Closed", 1}};
  EXPECT_EQ(SeenExceptionsText(account_), "all were seen; 3 were thrown again");
  account_.exceptions["estimated"] = 400;
  EXPECT_THAT(SeenExceptionsText(account_), HasSubstr("12.5 % of them were seen, the rest is estimated by CPU time"));
}

}  // namespace
}  // namespace clrsampler
