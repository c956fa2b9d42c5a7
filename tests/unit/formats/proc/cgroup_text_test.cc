#include "formats/proc/cgroup_text.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

TEST(CgroupTextTest, Version2) {
  EXPECT_EQ(CgroupPath(ParseCgroup("0::/system.slice/shop.service\n")), "/system.slice/shop.service");
}

TEST(CgroupTextTest, HybridTakesTheHierarchyThatKnows) {
  EXPECT_EQ(CgroupPath(ParseCgroup("12:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/def\n0::/\n")), "/docker/def");
  EXPECT_EQ(CgroupPath(ParseCgroup("9:memory:/m\n12:cpu,cpuacct:/docker/abc\n")), "/docker/abc");
  EXPECT_EQ(CgroupPath(ParseCgroup("9:memory:/m\n0::/kube:pods/x\n")), "/kube:pods/x");
}

TEST(CgroupTextTest, UndoesEscapesAndSkipsNoise) {
  const auto lines = ParseCgroup("noise\n3:cpuset\n4:cpuset:relative\n0::/a\\012b\\134c\n");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].path, "/a\nb\\c");
  EXPECT_EQ(CgroupPath({}), "");
}

}  // namespace
}  // namespace clrsampler
