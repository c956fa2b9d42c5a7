#include "output/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SummaryTest, SaysWhatWasLostAndWhatHasNoName) {
  Account account;
  account.samples_written = 90;
  account.samples_expected = 100;
  account.lost["ring_full"] = 10;
  account.CountFrame(Frame{FrameKind::kJit, NameSource::kNone, "[jit: not in the map]", "", ""}, 4);
  account.notices.push_back({"kind", "the jitdump is dead", "use the perf map"});
  const std::string text = SummaryText(account);
  EXPECT_THAT(text, HasSubstr("90 samples"));
  EXPECT_THAT(text, HasSubstr("lost: 10 ring_full"));
  EXPECT_THAT(text, HasSubstr("4 [jit: not in the map]"));
  EXPECT_THAT(text, HasSubstr("hint: use the perf map"));
}

TEST(SummaryTest, ControlCharactersOfTargetsDoNotReachTheTerminal) {
  Account account;
  account.CountFrame(Frame{FrameKind::kNative, NameSource::kNone, "[native: a\x1b]0;b]", "", ""}, 1);
  account.notices.push_back({"kind",
                             "process 1 (\xc2\x9b"
                             "2J\nnote: forged \xc3\xa9)",
                             ""});
  const std::string text = SummaryText(account);
  EXPECT_THAT(text, HasSubstr("[native: a?]0;b]"));
  EXPECT_THAT(text, HasSubstr("note: process 1 (?2J?note: forged \xc3\xa9)\n"));
}

TEST(SummaryTest, ARunWithoutLossSaysNothingOfLoss) {
  Account account;
  account.lost["ring_full"] = 0;
  EXPECT_THAT(SummaryText(account), Not(HasSubstr("lost:")));
}

}  // namespace
}  // namespace clrsampler
