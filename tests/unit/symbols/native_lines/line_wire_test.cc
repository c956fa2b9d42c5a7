#include "symbols/native_lines/line_wire.h"

#include <gtest/gtest.h>

#include <string>

namespace clrsampler {
namespace {

LineAnswer Two() { return {7, "", {{"/src/a.c", 12, true}, {"", 0, false}}}; }

TEST(LineWireTest, QuestionsComeBackAsTheyWere) {
  const LineQuestion question{5, 9, {0x1000, UINT64_MAX}};
  const std::optional<LineQuestion> parsed = ParseLineQuestion(LineQuestionBytes(question));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->number, 5u);
  EXPECT_EQ(parsed->file, 9u);
  EXPECT_EQ(parsed->addresses, question.addresses);
}

TEST(LineWireTest, QuestionsOfAnotherSizeAreNone) {
  const std::string bytes = LineQuestionBytes({5, 9, {1, 2}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ParseLineQuestion(bytes.substr(0, size)).has_value(), size == bytes.size() - 8) << size;
  }
  EXPECT_FALSE(ParseLineQuestion(LineQuestionBytes({5, 9, {}})).has_value());
  EXPECT_TRUE(ParseLineQuestion(LineQuestionBytes({5, 9, std::vector<uint64_t>(kMaxQuestionAddresses)})).has_value());
  EXPECT_FALSE(
      ParseLineQuestion(LineQuestionBytes({5, 9, std::vector<uint64_t>(kMaxQuestionAddresses + 1)})).has_value());
}

TEST(LineWireTest, AnswersComeBackAsTheyWere) {
  const std::optional<LineAnswer> parsed = ParseLineAnswer(LineAnswerBytes(Two()), 2);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->number, 7u);
  EXPECT_EQ(parsed->lines, Two().lines);
  EXPECT_TRUE(parsed->failure.empty());
  const std::optional<LineAnswer> failed = ParseLineAnswer(LineAnswerBytes({8, "damaged", {}}), 2);
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->failure, "damaged");
  EXPECT_TRUE(failed->lines.empty());
}

// The reader may have been taken over: its bytes are whatever somebody wants.
TEST(LineWireTest, AnswersThatAreCutOrTooLongAreNone) {
  const std::string bytes = LineAnswerBytes(Two());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseLineAnswer(bytes.substr(0, size), 2).has_value()) << size;
  }
  EXPECT_FALSE(ParseLineAnswer(bytes + "x", 2).has_value());
  EXPECT_FALSE(ParseLineAnswer(bytes, 1).has_value());
  EXPECT_FALSE(ParseLineAnswer(bytes, 3).has_value());
  EXPECT_FALSE(ParseLineAnswer(bytes, kMaxQuestionAddresses + 1).has_value());
}

TEST(LineWireTest, EveryByteMayBeAnother) {
  const std::string bytes = LineAnswerBytes(Two());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string other = bytes;
      other[at] = static_cast<char>(value);
      const std::optional<LineAnswer> parsed = ParseLineAnswer(other, 2);
      if (!parsed) continue;
      EXPECT_EQ(parsed->lines.size(), parsed->failure.empty() ? 2u : 0u);
      for (const NativeLine& line : parsed->lines) EXPECT_EQ(line.line == 0, line.file.empty());
    }
  }
}

TEST(LineWireTest, PathsAreCleanAndBounded) {
  LineAnswer answer{1, "", {{std::string("/a\n\x1b\x7f\xff;b"), 1, false}, {std::string(1025, 'x'), 2, false}}};
  const std::optional<LineAnswer> parsed = ParseLineAnswer(LineAnswerBytes(answer), 2);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->lines[0].file, "/a???\xEF\xBF\xBD;b");
  EXPECT_EQ(parsed->lines[1], NativeLine()) << "longer than any path is kept";
  std::string whole = LineAnswerBytes({1, "", {{std::string(1024, 'x'), 2, false}}});
  EXPECT_TRUE(ParseLineAnswer(whole, 1).has_value());
  whole[whole.size() - 1024 - 2] = 1;  // the path says that it has 1025 bytes
  whole.push_back('x');
  EXPECT_FALSE(ParseLineAnswer(whole, 1).has_value());
}

TEST(LineWireTest, TheLargestAnswerFitsIntoADatagram) {
  LineAnswer answer{1, "", {}};
  for (size_t i = 0; i < kMaxQuestionAddresses; ++i) {
    answer.lines.push_back({std::string(kMaxLinePathBytes, 'x'), 1, false});
  }
  EXPECT_LE(LineAnswerBytes(answer).size(), 64u * 1024);
}

TEST(LineWireTest, WordsOfTheKeeper) {
  EXPECT_EQ(ParseReaderLost(ReaderLostBytes(77)), 77u);
  EXPECT_FALSE(ParseReaderLost(ReaderLostBytes(77) + "x").has_value());
  EXPECT_FALSE(ParseReaderLost("L").has_value());
  EXPECT_FALSE(ParseReaderLost(LineAnswerBytes(Two())).has_value());
  const std::optional<NoAnswers> none = ParseNoAnswers(NoAnswersBytes({"no libdw", "install\nit"}));
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->why, "no libdw");
  EXPECT_EQ(none->hint, "install?it");
  EXPECT_FALSE(ParseNoAnswers("").has_value());
  EXPECT_FALSE(ParseNoAnswers(std::string(100000, 'N')).has_value());
  EXPECT_FALSE(AnsweredQuestion(NoAnswersBytes(*none)).has_value());
}

}  // namespace
}  // namespace clrsampler
