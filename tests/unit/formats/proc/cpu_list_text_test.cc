#include "formats/proc/cpu_list_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuListTextTest, ReadsRangesAndSingles) {
  EXPECT_THAT(*ParseCpuList("0-3,7\n"), ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(*ParseCpuList("0"), ElementsAre(0));
  EXPECT_THAT(*ParseCpuList("5,8-9"), ElementsAre(5, 8, 9));
  EXPECT_THAT(*ParseCpuList("\n"), IsEmpty());
}

TEST(CpuListTextTest, RefusesNonsenseAndHugeLists) {
  for (const char* text : {"a", "1-", "3-1", "1,,2", "1,", ",1", "0-4294967295", "65536", "1 2", "2,1", "1,1", "-1"}) {
    const auto cpus = ParseCpuList(text);
    // "1," is what a torn read of a longer list looks like: it is refused too.
    EXPECT_FALSE(cpus.ok()) << text;
  }
}

}  // namespace
}  // namespace clrsampler
