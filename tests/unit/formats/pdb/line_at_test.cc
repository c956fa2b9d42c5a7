#include "formats/pdb/line_at.h"

#include <gtest/gtest.h>

#include <vector>

namespace clrsampler {
namespace {

uint32_t LineOf(const std::vector<SequencePoint>& points, uint32_t il_offset) {
  const std::optional<SequencePoint> point = LineAt(points, il_offset);
  return point ? point->line : 0;
}

TEST(LineAtTest, APointHoldsUpToTheNext) {
  const std::vector<SequencePoint> points = {{0, 1, 10, 1, 10, 2}, {4, 1, 11, 1, 11, 2}, {9, 1, 8, 1, 8, 2}};
  EXPECT_EQ(LineOf(points, 0), 10u);
  EXPECT_EQ(LineOf(points, 3), 10u);
  EXPECT_EQ(LineOf(points, 4), 11u);
  EXPECT_EQ(LineOf(points, 8), 11u);
  EXPECT_EQ(LineOf(points, 9), 8u);
  EXPECT_EQ(LineOf(points, UINT32_MAX), 8u);
  EXPECT_EQ(LineAt(points, 5), points[1]);
}

TEST(LineAtTest, HiddenCodeHasTheLineBeforeIt) {
  const std::vector<SequencePoint> points = {{2, 1, 10, 1, 10, 2}, {4, 1}, {6, 1}, {8, 1, 12, 1, 12, 2}};
  EXPECT_EQ(LineOf(points, 3), 10u);
  EXPECT_EQ(LineOf(points, 4), 10u);
  EXPECT_EQ(LineOf(points, 7), 10u);
  EXPECT_EQ(LineOf(points, 8), 12u);
}

TEST(LineAtTest, CodeBeforeTheFirstLineHasNone) {
  const std::vector<SequencePoint> points = {{2, 1}, {4, 1, 10, 1, 10, 2}};
  EXPECT_EQ(LineAt(points, 0), std::nullopt);
  EXPECT_EQ(LineAt(points, 2), std::nullopt);
  EXPECT_EQ(LineAt(points, 3), std::nullopt);
  EXPECT_EQ(LineAt({}, 0), std::nullopt);
  const std::vector<SequencePoint> only_hidden = {{0, 1}, {4, 1}};
  EXPECT_EQ(LineAt(only_hidden, 5), std::nullopt);
}

}  // namespace
}  // namespace clrsampler
