#include "clr/memory/methods_by_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ElementsAre;

struct Method {
  uint64_t end = 0;
  bool transient = false;
  int name = 0;
  MonotonicTime from, until;
};

class MethodsByStartTest : public testing::Test {
 protected:
  // The names of those that are shown until `wanted`.
  std::vector<int> Around(uint64_t address, int wanted = -1) {
    std::vector<int> names;
    ForEachAround(known_, address, [&](const Method& method) {
      names.push_back(method.name);
      return method.name == wanted;
    });
    return names;
  }
  MethodsByStart<Method> known_;
};

TEST_F(MethodsByStartTest, TransientOnesOverlapNewestFirst) {
  known_[100] = {{200, true, 1}, {300, true, 2}};
  known_[150] = {{160, true, 3}, {260, true, 4}};
  EXPECT_THAT(Around(99), ElementsAre());
  EXPECT_THAT(Around(100), ElementsAre(2, 1));
  EXPECT_THAT(Around(155), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(Around(250), ElementsAre(4, 2));
  EXPECT_THAT(Around(155, 3), ElementsAre(4, 3));
}

TEST_F(MethodsByStartTest, APermanentOneOverlapsNothing) {
  known_[100] = {{1000, true, 1}};
  known_[200] = {{300, false, 2}};
  EXPECT_THAT(Around(250), ElementsAre(2));
  EXPECT_THAT(Around(350), ElementsAre());
  EXPECT_THAT(Around(199), ElementsAre(1));
}

TEST_F(MethodsByStartTest, SoManyStartsAreLookedAt) {
  known_[0] = {{UINT64_MAX, true, -2}};
  for (int i = 1; i <= kMaxOverlaps; ++i) known_[static_cast<uint64_t>(i)] = {{10'000, true, i}};
  EXPECT_EQ(Around(5000).size(), static_cast<size_t>(kMaxOverlaps));
  EXPECT_EQ(Around(5000).back(), 1);
}

TEST_F(MethodsByStartTest, AMethodReachesToWhereNothingElseWasSeenBefore) {
  known_[100] = {{200, true, 1, {10}, {20}}, {200, true, 2, {30}, {30}}, {200, true, 3, {40}, {50}}};
  const auto reaches = [&](size_t method, uint64_t time_ns) {
    return ReachesTo(known_, 100, known_[100][method], {time_ns});
  };
  EXPECT_TRUE(reaches(0, 29));
  EXPECT_TRUE(reaches(0, 15));
  EXPECT_FALSE(reaches(0, 30));
  EXPECT_FALSE(reaches(0, 60));
  EXPECT_TRUE(reaches(2, 31));
  EXPECT_FALSE(reaches(2, 30));
  EXPECT_TRUE(reaches(2, 60));
  // Found between two times, the later one first.
  known_[100].push_back({200, true, 4, {70}, {65}});
  EXPECT_TRUE(reaches(2, 64));
  EXPECT_FALSE(reaches(2, 66));
}

TEST_F(MethodsByStartTest, AMethodDoesNotReachAcrossOneThatOverlapsIt) {
  known_[100] = {{150, true, 1, {30}, {30}}};
  known_[140] = {{200, true, 2, {10}, {10}}};
  known_[190] = {{300, true, 3, {50}, {50}}};
  known_[200] = {{300, true, 4, {40}, {40}}};  // behind it
  EXPECT_TRUE(ReachesTo(known_, 140, known_[140].back(), {29}));
  EXPECT_FALSE(ReachesTo(known_, 140, known_[140].back(), {30}));
  known_[100].back().end = 140;  // before it
  EXPECT_TRUE(ReachesTo(known_, 140, known_[140].back(), {49}));
  EXPECT_FALSE(ReachesTo(known_, 140, known_[140].back(), {50}));
}

}  // namespace
}  // namespace clrsampler
