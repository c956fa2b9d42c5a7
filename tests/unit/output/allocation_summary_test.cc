#include "output/allocation_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class AllocationSummaryTest : public testing::Test {
 protected:
  FrameId Managed(const char* text) {
    return frames_.Intern(Frame{FrameKind::kJit, NameSource::kJitdump, text, "", ""});
  }
  FrameId Type(const char* text) {
    return frames_.Intern(Frame{FrameKind::kType, NameSource::kRuntimeMemory, text, "", ""});
  }
  void Add(std::vector<FrameId> frames, uint64_t bytes) {
    stacks_.Add(stacks_.Intern(stacks_.InternLabel("dotnet"), frames), bytes);
  }
  static std::vector<std::string> Names(const std::vector<AllocatedBytes>& rows) {
    std::vector<std::string> names;
    for (const AllocatedBytes& row : rows) names.push_back(row.name + " " + std::to_string(row.bytes));
    return names;
  }

  FrameTable frames_;
  StackTable stacks_;
  Account account_;
};

TEST_F(AllocationSummaryTest, BytesByTypeAndByTheMethodThatAllocates) {
  Add({Managed("Main"), Managed("Shop.Add"), Type("Shop.Order")}, 30);
  Add({Managed("Main"), Managed("Shop.Add"), Type("string")}, 50);
  Add({Managed("Main"), Managed("Shop.Sum"), Type("string")}, 20);
  Add({Managed("Main"), Managed("Shop.Never"), Type("string")}, 0);
  const AllocationSummary summary = SummarizeAllocations(frames_, stacks_);
  EXPECT_EQ(summary.bytes, 100u);
  EXPECT_THAT(Names(summary.types), ElementsAre("string 70", "Shop.Order 30"));
  EXPECT_THAT(Names(summary.methods), ElementsAre("Shop.Add 80", "Shop.Sum 20"));
}

TEST_F(AllocationSummaryTest, TheTextSaysHowMuchOfItWasSeen) {
  Add({Managed("Shop.Add"), Type("Shop.Order")}, 80'000'000);
  Add({Managed("Shop.Sum"), Type("str\x1bing")}, 20'000'000);
  account_.duration_seconds = 2;
  account_.allocations = {{"bytes", 100'000'000}, {"estimated_bytes", 100'000'000}};
  std::string text = AllocationSummaryText(SummarizeAllocations(frames_, stacks_), account_, 1);
  EXPECT_THAT(text, HasSubstr("100.0 MB were allocated in 2.0 s, 50.0 MB/s; every 100 KB of them was seen\n"));
  EXPECT_THAT(text, HasSubstr("    40.000   80.0 %  Shop.Order\n"));
  EXPECT_THAT(text, HasSubstr("and 1 more"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  account_.allocations["bytes"] = 25'000'000;
  text = AllocationSummaryText(SummarizeAllocations(frames_, stacks_), account_, 1);
  EXPECT_THAT(text, HasSubstr("25 % of them were seen, 75 % are estimated by CPU time: the probes are detached where"));
  account_.allocations["counted_bytes"] = 60'000'000;
  text = AllocationSummaryText(SummarizeAllocations(frames_, stacks_), account_, 1);
  EXPECT_THAT(text, HasSubstr("25 % of them were seen, 60 % were counted by the runtime, 15 % are estimated by CPU"));
  account_.allocations["counted_bytes"] = 74'900'000;
  text = AllocationSummaryText(SummarizeAllocations(frames_, stacks_), account_, 1);
  EXPECT_THAT(text, HasSubstr("25 % of them were seen, 75 % were counted by the runtime: the probes are detached"));
}

TEST_F(AllocationSummaryTest, AStreamThatLacksEventsIsNotSaidToHaveThemAll) {
  Add({Managed("Shop.Add"), Type("Shop.Order")}, 80'000'000);
  account_.duration_seconds = 2;
  const auto text = [&](const char* missing) {
    account_.events = {{"lost", 0}, {"damaged", 0}, {"broke_off", 0}, {"failed", 0}, {"not_taken", 0}};
    account_.events[missing] = 1;
    return AllocationSummaryText(SummarizeAllocations(frames_, stacks_), account_, 1);
  };
  EXPECT_THAT(text("counted"), HasSubstr("every 100 KB of them was seen"));
  EXPECT_THAT(text("lost"), HasSubstr("; more were, since events were lost\n"));
  EXPECT_THAT(text("damaged"), HasSubstr("; more were, since events were damaged\n"));
  for (const char* const missing : {"broke_off", "failed", "not_taken"}) {
    EXPECT_THAT(text(missing), HasSubstr("; more may have been, since the last events are missing\n")) << missing;
  }
}

TEST_F(AllocationSummaryTest, NothingIsSaidToBeNothing) {
  account_.duration_seconds = 1;
  EXPECT_THAT(AllocationSummaryText(SummarizeAllocations(frames_, stacks_), account_, 5),
              HasSubstr("nothing was seen to be allocated in 1.0 s"));
}

}  // namespace
}  // namespace clrsampler
