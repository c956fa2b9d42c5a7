#include "container_runtime/cri_wire.h"

#include <gtest/gtest.h>

#include <string>

namespace clrsampler {
namespace {

const std::string kWireId(64, 'a');

TEST(CriWireTest, AQuestionComesAsItWasSent) {
  const auto question = ParseCriQuestion(CriQuestionText({7, {kWireId, std::string(64, 'b')}}));
  ASSERT_TRUE(question.has_value());
  EXPECT_EQ(question->number, 7u);
  EXPECT_EQ(question->ids, (std::vector<std::string>{kWireId, std::string(64, 'b')}));
}

TEST(CriWireTest, OnlyIdsAreAsked) {
  for (const std::string& text : {std::string(), std::string("7"), "x\n" + kWireId, "7\n" + kWireId.substr(1),
                                  "7\n" + std::string(63, 'a') + "/", "7\n" + kWireId + "\n", std::string("7\n\n")}) {
    EXPECT_FALSE(ParseCriQuestion(text).has_value()) << text;
  }
  EXPECT_FALSE(ParseCriQuestion(CriQuestionText({7, std::vector<std::string>(5, kWireId)})).has_value());
}

TEST(CriWireTest, AnAnswerComesAsItWasSent) {
  CriAnswer answer{9, CriResult::kKnown, "", "", {}};
  answer.labels.Set(LabelKey::kKubernetesPod, "shop-1");
  answer.labels.Set(LabelKey::kImageTag, "1.2");
  const auto parsed = ParseCriAnswer(CriAnswerText(answer));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->number, 9u);
  EXPECT_EQ(parsed->result, CriResult::kKnown);
  EXPECT_EQ(parsed->labels, answer.labels);
}

TEST(CriWireTest, AFailureIsOneLine) {
  const auto parsed = ParseCriAnswer(CriAnswerText({9, CriResult::kBad, "no\n4\x1b[31m", std::string(1000, 'h'), {}}));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->failure, "no 4 [31m");
  EXPECT_EQ(parsed->hint.size(), 500u);
}

TEST(CriWireTest, OtherTextsAreNoAnswers) {
  const std::string good = CriAnswerText({9, CriResult::kUnknown, "", "", {}});
  EXPECT_TRUE(ParseCriAnswer(good).has_value());
  EXPECT_FALSE(ParseCriAnswer(good + "\n").has_value());
  EXPECT_FALSE(ParseCriAnswer("x" + good).has_value());
  EXPECT_FALSE(ParseCriAnswer("9\n4" + good.substr(3)).has_value());
  EXPECT_FALSE(ParseCriAnswer("").has_value());
}

}  // namespace
}  // namespace clrsampler
