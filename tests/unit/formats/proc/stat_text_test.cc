#include "formats/proc/stat_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/file_io.h"

namespace clrsampler {
namespace {

constexpr char kRest[] = " S 1 2 3 34816 -1 4194304 100 0 0 0 1234 567 0 0 20 -5 19 0 987654 1000 200\n";

TEST(StatTextTest, ReadsTheFieldsByTheirNumber) {
  const auto stat = ParseStat(std::string("4711 (dotnet)") + kRest);
  ASSERT_TRUE(stat.ok());
  EXPECT_EQ(stat->pid, 4711u);
  EXPECT_EQ(stat->comm, "dotnet");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent_pid, 1u);
  EXPECT_EQ(stat->user_ticks, 1234u);
  EXPECT_EQ(stat->system_ticks, 567u);
  EXPECT_EQ(stat->threads, 19u);
  EXPECT_EQ(stat->start_ticks, 987654u);
}

TEST(StatTextTest, TheStartOfTheStackIsTheSixthFieldBehindTheStartTime) {
  const std::string line = "4711 (dotnet) S 1 2 3 0 -1 4 100 0 0 0 1234 567 0 0 20 -5 19 0 987654";
  EXPECT_EQ(ParseStat(line + " 1 2 18446744073709551615 4 5 140727581839360 0 0")->start_stack, 140727581839360u);
  EXPECT_EQ(ParseStat(line + " 1 2 18446744073709551615 4 5")->start_stack, 0u);
  EXPECT_EQ(ParseStat(line + " 1 2 x 4 5 6")->start_stack, 0u);
}

TEST(StatTextTest, ANameCannotForgeFields) {
  for (const std::string comm : {"a b", "x) R 9 9 9", "(((", ")", "", ") S 1 (", "\n"}) {
    const auto stat = ParseStat("7 (" + comm + ")" + kRest);
    ASSERT_TRUE(stat.ok()) << comm;
    EXPECT_EQ(stat->comm, comm);
    EXPECT_EQ(stat->start_ticks, 987654u) << comm;
  }
}

TEST(StatTextTest, RefusesEveryTruncation) {
  const std::string whole = std::string("4711 (dot net)") + kRest;
  const size_t start_time = whole.find("987654");
  for (size_t length = 0; length <= start_time; ++length)
    EXPECT_FALSE(ParseStat(whole.substr(0, length)).ok()) << length;
  EXPECT_FALSE(ParseStat("1) (x S 1").ok());
  EXPECT_FALSE(ParseStat(")").ok());
}

TEST(StatTextTest, ReadsOurOwn) {
  const auto text = ReadWholeFile("/proc/self/stat", 1 << 20);
  ASSERT_TRUE(text.ok());
  const auto stat = ParseStat(*text);
  ASSERT_TRUE(stat.ok());
  EXPECT_EQ(stat->pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(stat->parent_pid, static_cast<uint32_t>(getppid()));
  EXPECT_GT(stat->start_ticks, 0u);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  EXPECT_GT(stat->start_stack, here) << "stacks grow downwards";
  EXPECT_LT(stat->start_stack - here, uint64_t{1} << 30);
}

}  // namespace
}  // namespace clrsampler
