#include "formats/proc/mountinfo_text.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

constexpr absl::string_view kMounts =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "1027 1 0:52 / / rw,relatime shared:3 master:1 - overlay overlay "
    "rw,lowerdir=/a\\040-\\040b,upperdir=/u,workdir=/w,metacopy=on\n"
    "2 1 0:53 / /a rw no separator\n"
    "102 27 254:0 / / rw - ext4 /dev/vda rw";

TEST(MountInfoTextTest, AMountIsFoundByItsWholeId) {
  EXPECT_EQ(FileSystemOptionsOf(kMounts, 22), "rw");
  EXPECT_EQ(FileSystemOptionsOf(kMounts, 1027), "rw,lowerdir=/a\\040-\\040b,upperdir=/u,workdir=/w,metacopy=on");
  EXPECT_EQ(FileSystemOptionsOf(kMounts, 102), "rw") << "the last line has no end";
  for (const uint64_t id : {0, 1, 10, 27}) EXPECT_FALSE(FileSystemOptionsOf(kMounts, id).has_value()) << id;
  EXPECT_FALSE(FileSystemOptionsOf(kMounts, 2).has_value()) << "a line that the kernel does not write";
  EXPECT_FALSE(FileSystemOptionsOf("", 22).has_value());
}

TEST(MountInfoTextTest, OptionsHaveValues) {
  EXPECT_EQ(OptionValue("rw,metacopy=on,xino=off", "metacopy"), "on");
  EXPECT_EQ(OptionValue("rw,metacopy=on,xino=off", "xino"), "off");
  EXPECT_FALSE(OptionValue("rw,lowerdir=/metacopy=on", "metacopy").has_value());
  EXPECT_FALSE(OptionValue("", "metacopy").has_value());
}

TEST(MountInfoTextTest, ADescriptorSaysItsMount) {
  EXPECT_EQ(MountIdOfDescriptor("pos:\t0\nflags:\t012000000\nmnt_id:\t1027\nino:\t12\n"), 1027u);
  EXPECT_FALSE(MountIdOfDescriptor("pos:\t0\nmnt_id:\t\n").has_value());
  EXPECT_FALSE(MountIdOfDescriptor("").has_value());
}

}  // namespace
}  // namespace clrsampler
