#include "formats/proc/cpu_list_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuListTextTest, ReadsRangesAndSingleNumbers) {
  EXPECT_THAT(*ParseCpuList("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(*ParseCpuList("0\n"), ElementsAre(0));
  EXPECT_THAT(*ParseCpuList("\n"), IsEmpty());
}

TEST(CpuListTextTest, SortsAndMergesOverlaps) { EXPECT_THAT(*ParseCpuList("5,2-4,3-5"), ElementsAre(2, 3, 4, 5)); }

TEST(CpuListTextTest, RefusesWhatIsNoListOfPossibleCpus) {
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "1,", ",1", "1 2", "0-4294967295", "0-8192", "0-99999999999",
                           "0-3:1/2", "0-8191,0-8191,0-8191"}) {
    EXPECT_FALSE(ParseCpuList(text).ok()) << text;
  }
}

TEST(CpuListTextTest, AcceptsTheLargestKernel) { EXPECT_EQ(ParseCpuList("0-8191")->size(), 8192u); }

}  // namespace
}  // namespace clrsampler
