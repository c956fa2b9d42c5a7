#include "formats/proc/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/file_io.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;

TEST(StatusTextTest, ReadsANamespacedProcess) {
  const auto status = ParseStatus(
      "Name:\tShop\\nApi\\\\x\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\nNgid:\t0\nPid:\t4712\nPPid:\t1\n"
      "Uid:\t1000\t1001\t1000\t1000\nGid:\t5\t5\t5\t5\nNStgid:\t4711\t17\t1\nNSpid:\t4712\t18\t2\nThreads:\t42\n");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->name, "Shop\nApi\\x");
  EXPECT_EQ(status->tgid, 4711u);
  EXPECT_EQ(status->pid, 4712u);
  EXPECT_EQ(status->parent_pid, 1u);
  EXPECT_EQ(status->real_uid, 1000u);
  EXPECT_EQ(status->effective_uid, 1001u);
  EXPECT_EQ(status->threads, 42u);
  EXPECT_THAT(status->namespace_tgids, ElementsAre(4711, 17, 1));
  EXPECT_THAT(status->namespace_pids, ElementsAre(4712, 18, 2));
  EXPECT_EQ(status->innermost_tgid(), 1u);
}

TEST(StatusTextTest, SwitchesOfBothKindsAreAddedUp) {
  const auto status = ParseStatus(
      "Name:\ta\nTgid:\t7\nPid:\t7\nUid:\t0\t0\t0\t0\nvoluntary_ctxt_switches:\t150\n"
      "nonvoluntary_ctxt_switches:\t545\n");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->switches, 695u);
}

TEST(StatusTextTest, AKernelWithoutPidNamespacesStillHasAnInnermostPid) {
  const auto status = ParseStatus("Name:\ta\nTgid:\t7\nPid:\t7\nUid:\t0\t0\t0\t0\n");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->innermost_tgid(), 7u);
}

TEST(StatusTextTest, RefusesAStatusThatDoesNotSayWhoItIs) {
  EXPECT_FALSE(ParseStatus("").ok());
  EXPECT_FALSE(ParseStatus("Name:\ta\nPid:\t7\nUid:\t0\t0\t0\t0\n").ok());
  EXPECT_FALSE(ParseStatus("Name:\ta\nTgid:\tx\nPid:\t7\nUid:\t0\t0\t0\t0\n").ok());
  EXPECT_FALSE(ParseStatus("Name:\ta\nTgid:\t99999999999\nPid:\t7\nUid:\t0\t0\t0\t0\n").ok());
}

TEST(StatusTextTest, BoundsTheNesting) {
  std::string text = "Tgid:\t7\nPid:\t7\nUid:\t0\t0\nNSpid:";
  for (int i = 0; i < 10'000; ++i) text += "\t1";
  const auto status = ParseStatus(text);
  ASSERT_TRUE(status.ok());
  EXPECT_LE(status->namespace_pids.size(), 33u);
}

TEST(StatusTextTest, ReadsOurOwn) {
  const auto text = ReadWholeFile("/proc/self/status", 1 << 20);
  ASSERT_TRUE(text.ok());
  const auto status = ParseStatus(*text);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->innermost_tgid(), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(status->parent_pid, static_cast<uint32_t>(getppid()));
  EXPECT_EQ(status->effective_uid, geteuid());
}

}  // namespace
}  // namespace clrsampler
