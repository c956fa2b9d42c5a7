#include "output/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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

TEST(SummaryTest, NamesTheFiveHottestMethodsInADozenLines) {
  Account account;
  account.samples_written = 1000;
  account.samples_expected = 1100;
  account.samples_set_aside = 1;
  account.lost["ring_full"] = 10;
  account.pauses["pauses"] = 5;
  account.CountFrame(Frame{FrameKind::kJit, NameSource::kNone, "[jit: not in the map]", "", ""}, 4);
  HottestMethods hottest;
  for (int i = 0; i < 9; ++i) hottest.methods.push_back({"Shop.M" + std::to_string(i), "", {}, 500u - i, 1000});
  hottest.methods[1].name = "Shop." + std::string(300, 'x') + ".Last\x1b";
  hottest.total = 1000;
  hottest.more = "open cpu.html in a browser";
  const std::string text = SummaryText(account, hottest);
  EXPECT_THAT(text, HasSubstr(" 50.0 %  Shop.M0\n"));
  EXPECT_THAT(text, HasSubstr("x.Last?\n"));
  EXPECT_THAT(text, HasSubstr("Shop.M4\n"));
  EXPECT_THAT(text, Not(HasSubstr("Shop.M5")));
  EXPECT_THAT(text, HasSubstr("more: open cpu.html in a browser\n"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 12);
}

TEST(SummaryTest, WithoutManagedCodeLinesAreThoseOfNativeCode) {
  Account account;
  Frame native{FrameKind::kNative, NameSource::kElfSymbols, "main"};
  native.place = {"main.c", 3, 0, LineKind::kExact};
  account.CountFrame(native, 2);
  account.pdbs = {{"found", 0}};
  account.native_lines = {{"opened", 1}};
  EXPECT_THAT(SummaryText(account), HasSubstr("lines: 100.0 % of the native frames have one\n"));
}

TEST(SummaryTest, WithLinesItSaysHowManyFramesHaveOneAndWhichAssembliesHaveNone) {
  Account account;
  account.CountFrame(Frame{FrameKind::kJit, NameSource::kRuntimeMemory, "Shop.Cart.Total"}, 1);
  EXPECT_THAT(SummaryText(account), Not(HasSubstr("lines:")));
  Frame with_line{FrameKind::kJit, NameSource::kRuntimeMemory, "Shop.Cart.Total"};
  with_line.place = {"/src/Cart.cs", 57, 9, LineKind::kExact};
  account.CountFrame(with_line, 3);
  account.pdbs = {{"found", 1}, {"without", 0}};
  EXPECT_THAT(SummaryText(account), HasSubstr("lines: 75.0 % of the managed frames have one\n"));
  Frame native{FrameKind::kNative, NameSource::kElfSymbols, "malloc"};
  account.CountFrame(native, 1);
  native.place = {"malloc.c", 3301, 0, LineKind::kOptimised};
  account.CountFrame(native, 1);
  account.native_lines = {{"opened", 1}};
  EXPECT_THAT(SummaryText(account),
              HasSubstr("lines: 75.0 % of the managed frames, 50.0 % of the native frames have one\n"));
  account.pdbs["without"] = 5;
  account.without_pdb = {"A", "B\x1b", "C", "D", "E"};
  EXPECT_THAT(SummaryText(account), HasSubstr("have one; no PDB: A, B?, C and 2 more (--pdb-path, --symbol-server)\n"));
}

TEST(SummaryTest, ARunWithoutLossSaysNothingOfLoss) {
  Account account;
  account.lost["ring_full"] = 0;
  EXPECT_THAT(SummaryText(account), Not(HasSubstr("lost:")));
}

TEST(SummaryTest, SaysWhoWouldNameTheRuntimesFunctionsWhereManyHaveNoName) {
  Account account;
  HottestMethods hottest;
  hottest.total = 1000;
  hottest.nameless_runtime = 50;
  EXPECT_THAT(SummaryText(account, hottest), Not(HasSubstr("--symbol-server"))) << "5 % and no more";
  hottest.nameless_runtime = 62;
  EXPECT_THAT(SummaryText(account, hottest), HasSubstr("  6.2 %  in functions of the .NET runtime without a name: "
                                                       "--symbol-server microsoft "));
  account.symbol_server["wanted"] = 1;
  EXPECT_THAT(SummaryText(account, hottest), Not(HasSubstr("--symbol-server"))) << "servers were asked";
}

}  // namespace
}  // namespace clrsampler
