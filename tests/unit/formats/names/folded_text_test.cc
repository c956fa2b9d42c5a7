#include "formats/names/folded_text.h"

#include <random>
#include <string>

#include "gtest/gtest.h"
#include "unit/formats/names/folded_rules.h"
#include "unit/rounds.h"

namespace clrsampler {
namespace {

std::string None(const std::string& text) { return FoldedFrame(text, FrameSuffix::kNone); }

TEST(FoldedTextTest, AddsTheMarksThatFlameGraphToolsKnow) {
  EXPECT_EQ(FoldedFrame("do_syscall_64", FrameSuffix::kKernel), "do_syscall_64_[k]");
  EXPECT_EQ(FoldedFrame("Shop.Order.Total", FrameSuffix::kManaged), "Shop.Order.Total_[j]");
  EXPECT_EQ(None("malloc"), "malloc");
}

TEST(FoldedTextTest, KeepsWhatReadersTake) {
  const std::string text =
      "Shop!A.B<int, string>.Run(delegate*<int, void>, ref byte*) [Tier] 'x' \"y\" & | $ @ ~ ünï 名";
  EXPECT_EQ(None(text), text);
}

TEST(FoldedTextTest, ReplacesCharactersThatSplitFrames) {
  EXPECT_EQ(None("a;b"), "a:b");
  EXPECT_EQ(None("List`1[T]"), "List~1[T]");
}

TEST(FoldedTextTest, WhitespaceBecomesOneSpaceAndControlBytesGo) {
  EXPECT_EQ(None(" \t a \r\n b\xC2\xA0\xE2\x80\xA8 c \v"), "a b c");
  EXPECT_EQ(None(std::string("a\0b\x01\x7F\xC2\x80z", 8)), "abz");
}

TEST(FoldedTextTest, InvalidUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(None("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(None("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // overlong
  EXPECT_EQ(None("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // surrogate
  EXPECT_EQ(None("x\xE2\x80"), "x\xEF\xBF\xBD\xEF\xBF\xBD");                // cut
  EXPECT_EQ(None("\xEF\xBF\xBF"), "\xEF\xBF\xBD");                          // U+FFFF
}

TEST(FoldedTextTest, NeverEndsInANumberThatReadsAsACount) {
  EXPECT_EQ(None("Foo 42"), "Foo_42");
  EXPECT_EQ(None("Foo 4.2"), "Foo_4.2");
  EXPECT_EQ(None("Foo 42."), "Foo_42.");
  EXPECT_EQ(None("Foo 1 2"), "Foo 1_2");
  EXPECT_EQ(None("Foo 42 "), "Foo_42");
  EXPECT_EQ(None("Foo42"), "Foo42");
  EXPECT_EQ(None("42"), "42");
  EXPECT_EQ(None("Foo ."), "Foo .");
  EXPECT_EQ(None("Foo .5"), "Foo .5");
  EXPECT_EQ(FoldedFrame("Foo 42", FrameSuffix::kManaged), "Foo_42_[j]");
}

TEST(FoldedTextTest, ALineStandsBetweenTheNameAndTheMark) {
  EXPECT_EQ(FoldedFrame("Shop.Cart.Total", FrameSuffix::kManaged, 57), "Shop.Cart.Total:57_[j]");
  EXPECT_EQ(FoldedFrame("", FrameSuffix::kManaged, 1), "[unnamed]:1_[j]");
  EXPECT_EQ(FoldedFrame("Foo 42", FrameSuffix::kManaged, 7), "Foo 42:7_[j]");  // no count
  EXPECT_EQ(FoldedFrame(std::string(2000, 'x'), FrameSuffix::kManaged, 4294967295).size(), kMaxFoldedFrameBytes);
  EXPECT_EQ(FoldedFrame(std::string(2000, 'x'), FrameSuffix::kManaged, 57).substr(kMaxFoldedFrameBytes - 10),
            "…:57_[j]");
}

TEST(FoldedTextTest, ALineIsANumberAsItIsWrittenBehindTheLastColon) {
  const auto line = [](absl::string_view text) { return SplitFoldedLine(text).line; };
  EXPECT_EQ(line("Total:57"), 57u);
  EXPECT_EQ(SplitFoldedLine("A::Total:57").name, "A::Total");
  EXPECT_EQ(SplitFoldedLine("Total:57:58").name, "Total:57");
  EXPECT_EQ(line("Total:4294967295"), 4294967295u);
  for (const char* text : {"Total", "Total:", "Total:0", "Total:057", "Total:+57", "Total: 57", "Total:57 ", "Total:-1",
                           "Total:4294967296", ":57", ""}) {
    EXPECT_EQ(line(text), 0u) << text;
    EXPECT_EQ(SplitFoldedLine(text).name, text);
  }
}

TEST(FoldedTextTest, OnlyOurMarkIsAMark) {
  EXPECT_EQ(None("evil_[k]"), "evil-[k]");
  EXPECT_EQ(FoldedFrame("evil_[k]", FrameSuffix::kManaged), "evil-[k]_[j]");
  EXPECT_EQ(None("odd_[w]"), "odd-[w]");
  EXPECT_EQ(None("fine_[x]"), "fine_[x]");
}

TEST(FoldedTextTest, NeverEmptyAndNeverASeparator) {
  EXPECT_EQ(None(""), "[unnamed]");
  EXPECT_EQ(FoldedFrame(" \t", FrameSuffix::kKernel), "[unnamed]_[k]");
  EXPECT_EQ(None("-"), "(-)");
  EXPECT_EQ(None("--"), "(--)");
}

TEST(FoldedTextTest, CutsLongTextsAtACharacter) {
  const std::string exact(kMaxFoldedFrameBytes, 'x');
  EXPECT_EQ(None(exact), exact);
  EXPECT_EQ(None(exact + "y"), std::string(kMaxFoldedFrameBytes - 3, 'x') + "…");
  EXPECT_EQ(FoldedFrame(exact, FrameSuffix::kManaged), std::string(kMaxFoldedFrameBytes - 7, 'x') + "…_[j]");
  std::string wide;
  for (int i = 0; i < 600; ++i) wide += "ü";
  std::string expected;
  for (int i = 0; i < 510; ++i) expected += "ü";
  EXPECT_EQ(None(wide), expected + "…");  // 1,021 is inside a character
}

TEST(FoldedTextTest, RootFramesHaveNoSpaces) {
  EXPECT_EQ(FoldedComm("Web Content"), "Web_Content");
  EXPECT_EQ(FoldedComm(".NET TP Worker"), ".NET_TP_Worker");
  EXPECT_EQ(FoldedComm("a;b 7"), "a:b_7");
  EXPECT_EQ(FoldedComm("a [k]"), "a-[k]");
  EXPECT_EQ(FoldedComm(""), "[unnamed]");
}

// Bytes drawn mostly from those that rules are about.
std::string HostileText(std::mt19937& random) {
  static const std::string kPieces[] = {" ",
                                        ";",
                                        "`",
                                        "_[k]",
                                        "_[j]",
                                        "_[i]",
                                        "_[w]",
                                        "4",
                                        "2.5",
                                        ".",
                                        "-",
                                        "\n",
                                        "\t",
                                        "\x7F",
                                        "\xC2",
                                        "\x85",
                                        "\xC2\xA0",
                                        "\xE2\x80\xA8",
                                        "\xEF\xBF\xBF",
                                        "ü",
                                        "名",
                                        "\xF0\x9F\x98\x80",
                                        "\xED\xA0\x80",
                                        "]",
                                        "[",
                                        "<",
                                        "&",
                                        "a",
                                        "Foo"};
  std::string text;
  const size_t pieces = random() % 4 == 0 ? random() % 900 : random() % 12;
  for (size_t i = 0; i < pieces; ++i) {
    if (random() % 8 == 0) {
      text.push_back(static_cast<char>(random()));
    } else {
      text += kPieces[random() % std::size(kPieces)];
    }
  }
  return text;
}

TEST(FoldedTextTest, ObeysEveryRuleForAnyBytes) {
  std::mt19937 random(20240229);
  for (int i = 0; i < Rounds(40'000); ++i) {
    const std::string text = HostileText(random);
    ASSERT_EQ(test_support::BrokenFoldedRule(FoldedFrame(text, FrameSuffix::kNone), ""), "") << text;
    ASSERT_EQ(test_support::BrokenFoldedRule(FoldedFrame(text, FrameSuffix::kKernel), "_[k]"), "") << text;
    ASSERT_EQ(test_support::BrokenFoldedRule(FoldedFrame(text, FrameSuffix::kManaged), "_[j]"), "") << text;
    const std::string comm = FoldedComm(text);
    ASSERT_EQ(test_support::BrokenFoldedRule(comm, ""), "") << text;
    ASSERT_EQ(comm.find(' '), std::string::npos) << text;
    ASSERT_EQ(None(None(text)), None(text));
  }
}

// The checker must be able to find fault, or the test above proves nothing.
TEST(FoldedTextTest, TheCheckerFindsEachBrokenRule) {
  EXPECT_NE(test_support::BrokenFoldedRule("", ""), "");
  EXPECT_NE(test_support::BrokenFoldedRule("_[j]", "_[j]"), "");
  EXPECT_NE(test_support::BrokenFoldedRule("a", "_[j]"), "");
  for (const char* text : {"a;b", "a`b", "a\tb", "a  b", " a", "a ", "a 1", "a 1.5", "a 1.", "a_[k]", "-", "--",
                           "a\xFF", "a\xC2\x85", "a\xC2\xA0", "\xEF\xBF\xBE", "\xED\xA0\x80"}) {
    EXPECT_NE(test_support::BrokenFoldedRule(text, ""), "") << text;
  }
  EXPECT_NE(test_support::BrokenFoldedRule(std::string(1025, 'a'), ""), "");
  EXPECT_EQ(test_support::BrokenFoldedRule("Shop.Order.Total_[j]", "_[j]"), "");
}

}  // namespace
}  // namespace clrsampler
