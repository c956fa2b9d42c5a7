#include "serve/process_selection.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

class ProcessSelectionTest : public testing::Test {
 protected:
  ProcessSelectionTest() : process_(ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)) {
    process_.comm = "dotnet";
    process_.uid = 1000;
    process_.container = ContainerOf("0::/system.slice/docker-" + std::string(64, 'a') + ".scope\n", "HOSTNAME=shop\0");
  }
  Process process_;
};

TEST_F(ProcessSelectionTest, NothingGivenIsEverything) { EXPECT_TRUE(Selects({}, process_)); }

TEST_F(ProcessSelectionTest, ByCgroupAndWhatLiesBelow) {
  EXPECT_TRUE(Selects({.cgroups = {"/system.slice"}}, process_));
  EXPECT_TRUE(Selects({.cgroups = {"/system.slice/"}}, process_));
  EXPECT_TRUE(Selects({.cgroups = {"/"}}, process_));
  EXPECT_FALSE(Selects({.cgroups = {"/system"}}, process_));
  EXPECT_FALSE(Selects({.cgroups = {"/user.slice"}}, process_));
}

TEST_F(ProcessSelectionTest, ByContainerNameOrId) {
  EXPECT_TRUE(Selects({.containers = {"shop"}}, process_));
  EXPECT_TRUE(Selects({.containers = {std::string(12, 'a')}}, process_));
  EXPECT_TRUE(Selects({.containers = {std::string(64, 'a')}}, process_));
  EXPECT_FALSE(Selects({.containers = {"aa"}}, process_));
  EXPECT_FALSE(Selects({.containers = {""}}, process_));
  process_.container = {};
  EXPECT_FALSE(Selects({.containers = {""}}, process_));
}

TEST_F(ProcessSelectionTest, OneOfEachKindMustFit) {
  EXPECT_TRUE(Selects({.comms = {"web", "dotnet"}}, process_));
  EXPECT_FALSE(Selects({.comms = {"dot"}}, process_));
  EXPECT_TRUE(Selects({.comms = {"dotnet"}, .uids = {1, 1000}}, process_));
  EXPECT_FALSE(Selects({.comms = {"dotnet"}, .uids = {0}}, process_));
  process_.comm = "Shop.Orders.Wor";  // as the kernel cuts it
  EXPECT_TRUE(Selects({.comms = {"Shop.Orders.Worker"}}, process_));
  process_.uid.reset();
  EXPECT_FALSE(Selects({.uids = {0}}, process_));
}

}  // namespace
}  // namespace clrsampler
