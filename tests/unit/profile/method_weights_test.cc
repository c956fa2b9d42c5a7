#include "profile/method_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

class MethodWeightsTest : public testing::Test {
 protected:
  FrameIndex Frame(const std::string& name, ModelFrameKind kind = ModelFrameKind::kJit, const std::string& tier = "") {
    return builder_.Frame({.kind = kind, .name = builder_.String(name), .tier = builder_.String(tier)});
  }
  void Add(std::vector<FrameIndex> stack, uint64_t weight) {
    builder_.Add({.stack = builder_.Stack(stack), .weight = weight});
  }
  ProfileModelBuilder builder_;
};

TEST_F(MethodWeightsTest, SelfIsOfLeavesAndTotalCountsARecursionOnce) {
  builder_.Thread({});
  const FrameIndex main = Frame("Main"), walk = Frame("Walk");
  Add({main, walk, walk, walk}, 5);
  Add({main, walk, main}, 2);
  Add({main}, 1);
  MethodWeights weights;
  weights.Add(*std::move(builder_).Build());
  const std::vector<MethodWeight> sorted = weights.Sorted();
  ASSERT_EQ(sorted.size(), 2u);
  EXPECT_EQ(sorted[0].name, "Walk");
  EXPECT_EQ(sorted[0].self, 5u);
  EXPECT_EQ(sorted[0].total, 7u);
  EXPECT_EQ(sorted[1].self, 3u);
  EXPECT_EQ(sorted[1].total, 8u);
  EXPECT_EQ(weights.total(), 8u);
}

TEST_F(MethodWeightsTest, TiersAreOneMethodAndRolesAndMarksAreNoLeaves) {
  builder_.Thread({});
  const FrameIndex tier0 = Frame("M", ModelFrameKind::kJit, "Tier0"), tier1 = Frame("M", ModelFrameKind::kJit, "Tier1"),
                   role = Frame("[gc gen0 blocking]", ModelFrameKind::kRole),
                   mark = Frame("[cut]", ModelFrameKind::kMark);
  Add({mark, tier0, role}, 3);
  Add({tier1}, 4);
  MethodWeights weights;
  weights.Add(*std::move(builder_).Build());
  const std::vector<MethodWeight> sorted = weights.Sorted();
  ASSERT_EQ(sorted.size(), 2u);
  EXPECT_EQ(sorted[0].name, "M");
  EXPECT_EQ(sorted[0].self, 7u);
  EXPECT_EQ(sorted[1].name, "[gc gen0 blocking]");
  EXPECT_EQ(sorted[1].self, 0u);
  EXPECT_EQ(sorted[1].total, 3u);
}

TEST_F(MethodWeightsTest, AddsProfilesAndTakesOnlyWhatIsWanted) {
  builder_.Thread({});
  Add({Frame("A")}, 1);
  Add({Frame("B")}, 2);
  const ProfileModel model = *std::move(builder_).Build();
  MethodWeights weights;
  weights.Add(model);
  weights.Add(model, std::vector<uint8_t>{0, 1});
  const std::vector<MethodWeight> sorted = weights.Sorted();
  EXPECT_EQ(sorted[0].name, "B");
  EXPECT_EQ(sorted[0].self, 4u);
  EXPECT_EQ(sorted[1].self, 1u);
}

}  // namespace
}  // namespace clrsampler
