#include "capture/cpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CpuListTest, ReadsFilesBelowTheGivenRoot) {
  std::string folder = ::testing::TempDir() + "/cpu_list_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path root = folder;
  std::filesystem::create_directories(root / "sys/devices/system/cpu");
  std::ofstream(root / "sys/devices/system/cpu/online") << "0,2\n";
  std::ofstream(root / "sys/devices/system/cpu/possible") << "0-7\n";
  EXPECT_THAT(*OnlineCpus(root.string()), ElementsAre(0, 2));
  EXPECT_EQ(*PossibleCpuLimit(root.string()), 8);
  std::ofstream(root / "sys/devices/system/cpu/possible") << "\n";
  EXPECT_THAT(std::string(PossibleCpuLimit(root.string()).status().message()), HasSubstr("lists no CPU"));
  std::filesystem::remove_all(root);
  EXPECT_THAT(std::string(OnlineCpus(root.string()).status().message()), HasSubstr("sys/devices/system/cpu/online"));
}

TEST(CpuListTest, ValuesOfPossibleCpusGoToTheirNumbers) {
  EXPECT_THAT(ByCpuNumber(std::vector<uint64_t>{7, 8, 9}, std::vector<int>{0, 2, 3}), testing::ElementsAre(7, 0, 8, 9));
  EXPECT_THAT(ByCpuNumber({}, std::vector<int>{0, 1}), testing::IsEmpty()) << "the kernel did not say";
}

TEST(CpuListTest, TellsArrivedFromGone) {
  const std::vector<int> attached = {0, 1, 3};
  const std::vector<int> online = {0, 2, 3, 4};
  const CpuChanges changes = CompareCpus(attached, online);
  EXPECT_THAT(changes.arrived, ElementsAre(2, 4));
  EXPECT_THAT(changes.gone, ElementsAre(1));
}

}  // namespace
}  // namespace clrsampler
