#include "profile/stack_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace clrsampler {
namespace {

TEST(StackTableTest, EqualStacksShareAnIdAndLabelsTellThemApart) {
  StackTable table;
  const LabelId a = table.InternLabel("a");
  const LabelId b = table.InternLabel("b");
  const std::vector<FrameId> frames = {1, 2, 3};
  EXPECT_EQ(table.Intern(a, frames), table.Intern(a, frames));
  EXPECT_NE(table.Intern(a, frames), table.Intern(b, frames));
  EXPECT_NE(table.Intern(a, frames), table.Intern(a, std::vector<FrameId>{1, 2}));
  EXPECT_EQ(table.size(), 3u);
}

TEST(StackTableTest, CountsAgreeWithANaiveMap) {
  std::mt19937 random(11);
  StackTable table;
  const LabelId label = table.InternLabel("x");
  std::map<std::vector<FrameId>, uint64_t> naive;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<FrameId> frames(random() % 6);
    for (FrameId& frame : frames) frame = random() % 5;
    table.Add(table.Intern(label, frames), 1);
    ++naive[frames];
  }
  EXPECT_EQ(table.size(), naive.size());
  EXPECT_EQ(table.total(), 20'000u);
  for (StackId id = 0; id < table.size(); ++id) {
    const auto frames = table.stack(id).frames;
    EXPECT_EQ(table.count(id), naive.at(std::vector<FrameId>(frames.begin(), frames.end())));
  }
}

TEST(StackTableTest, AnEmptyStackIsAStack) {
  StackTable table;
  const StackId id = table.Intern(table.InternLabel("kthread"), {});
  table.Add(id, 2);
  EXPECT_EQ(table.count(id), 2u);
  EXPECT_TRUE(table.stack(id).frames.empty());
}

TEST(StackTableTest, ReplacedFramesMakeEqualStacksOne) {
  StackTable table;
  const LabelId label = table.InternLabel("x"), other = table.InternLabel("y");
  table.Add(table.Intern(label, std::vector<FrameId>{1, 2, 3}), 10);
  table.Add(table.Intern(label, std::vector<FrameId>{1, 2, 4}), 5);
  table.Add(table.Intern(other, std::vector<FrameId>{1, 2, 4}), 2);
  table.Add(table.Intern(label, std::vector<FrameId>{5}), 1);
  table.ReplaceFrames({{3, 4}, {1, 7}});
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table.total(), 18u);
  EXPECT_EQ(table.count(table.Intern(label, std::vector<FrameId>{7, 2, 4})), 15u);
  EXPECT_EQ(table.count(table.Intern(other, std::vector<FrameId>{7, 2, 4})), 2u);
  EXPECT_EQ(table.count(table.Intern(label, std::vector<FrameId>{5})), 1u);
  EXPECT_EQ(table.size(), 3u);
}

}  // namespace
}  // namespace clrsampler
