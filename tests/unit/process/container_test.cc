#include "process/container.h"

#include <gtest/gtest.h>

#include <string>

namespace clrsampler {
namespace {

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kPod = "0::/kubepods/burstable/pod0a1b2c3d-4e5f-6789-abcd-ef0123456789/" + kId + "\n";

TEST(ContainerTest, APodIsNamedByItsHostname) {
  const Container container = ContainerOf(kPod, absl::string_view("A=b\0HOSTNAME=shop-7d9f-x\0", 24));
  EXPECT_EQ(container.name, "shop-7d9f-x");
  EXPECT_EQ(container.Label(), "shop-7d9f-x");
}

TEST(ContainerTest, AHostnameThatRepeatsTheIdIsNoName) {
  const Container container = ContainerOf("0::/docker/" + kId + "\n", "HOSTNAME=0123456789ab");
  EXPECT_EQ(container.name, "");
  EXPECT_EQ(container.Label(), "docker:0123456789ab");
}

TEST(ContainerTest, ANameIsLettersOnly) {
  EXPECT_EQ(ContainerOf(kPod, "HOSTNAME=a\x1b[31mb").name, "");
  EXPECT_EQ(ContainerOf(kPod, "HOSTNAME=" + std::string(254, 'a')).name, "");
}

TEST(ContainerTest, OutsideAContainerTheEnvironmentCountsNothing) {
  const Container container = ContainerOf("0::/system.slice/shop.service\n", "HOSTNAME=web");
  EXPECT_EQ(container.name, "");
  EXPECT_EQ(container.Label(), "shop.service");
  EXPECT_EQ(ContainerOf("", "").Label(), "");
}

}  // namespace
}  // namespace clrsampler
