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

}  // namespace
}  // namespace clrsampler
