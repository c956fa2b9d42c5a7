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
using ::testing::IsEmpty;

TEST(CpuListTest, ReadsRangesAndSingleNumbers) {
  EXPECT_THAT(*ParseCpuList("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(*ParseCpuList("0\n"), ElementsAre(0));
  EXPECT_THAT(*ParseCpuList("\n"), IsEmpty());
}

TEST(CpuListTest, SortsAndMergesOverlaps) { EXPECT_THAT(*ParseCpuList("5,2-4,3-5"), ElementsAre(2, 3, 4, 5)); }

TEST(CpuListTest, RefusesWhatIsNoListOfPossibleCpus) {
  for (const char* text :
       {"a", "1-", "-1", "3-1", "1,,2", "0-8192", "0-99999999999", "0-3:1/2", "0-8191,0-8191,0-8191"}) {
    EXPECT_FALSE(ParseCpuList(text).ok()) << text;
  }
}

TEST(CpuListTest, AcceptsTheLargestKernel) { EXPECT_EQ(ParseCpuList("0-8191")->size(), 8192u); }

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

TEST(CpuListTest, TellsArrivedFromGone) {
  const std::vector<int> attached = {0, 1, 3};
  const std::vector<int> online = {0, 2, 3, 4};
  const CpuChanges changes = CompareCpus(attached, online);
  EXPECT_THAT(changes.arrived, ElementsAre(2, 4));
  EXPECT_THAT(changes.gone, ElementsAre(1));
}

}  // namespace
}  // namespace clrsampler
