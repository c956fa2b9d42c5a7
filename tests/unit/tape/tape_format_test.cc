#include "tape/tape_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "os/tape_answer.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::SizeIs;

std::string Records() {
  TapeWriter out;
  out.Put('R');
  out.PutText("{}");
  out.Put('Q');
  out.PutText("clock");
  out.Put('A');
  out.Put(uint32_t{0});
  out.Put(uint32_t{0});
  out.PutText("one");
  out.Put('T');
  out.Put('A');
  out.Put(uint32_t{0});
  out.Put(uint32_t{2});
  out.PutText("two");
  out.Put('F');
  for (const uint64_t number : {1, 2, 100, 4}) out.Put(number);
  out.Put('P');
  out.Put(uint32_t{0});
  out.Put(uint64_t{90});
  out.PutText("0123456789");
  out.Put('E');
  return out.Take();
}

TEST(TapeFormatTest, ReadsEachKindOfRecord) {
  const std::string records = Records();
  const TapeContent tape = ParseTape(records);
  EXPECT_TRUE(tape.whole);
  EXPECT_EQ(tape.run, "{}");
  EXPECT_EQ(tape.iterations, 1u);
  ASSERT_THAT(tape.questions, SizeIs(1));
  EXPECT_EQ(tape.questions[0].text, "clock");
  EXPECT_THAT(tape.questions[0].answers,
              ElementsAre(Field(&TapeAnswer::bytes, "one"), Field(&TapeAnswer::bytes, "two")));
  EXPECT_EQ(tape.questions[0].answers[1].iteration, 1u);
  EXPECT_EQ(tape.questions[0].answers[1].asked_before, 2u);
  ASSERT_THAT(tape.files, SizeIs(1));
  EXPECT_EQ(tape.files[0].file.size, 100u);
  ASSERT_THAT(tape.files[0].pages, SizeIs(1));
  EXPECT_EQ(tape.files[0].pages[0].second, "0123456789");
}

TEST(TapeFormatTest, KeepsWhatComesBeforeTheDamage) {
  const std::string records = Records();
  size_t last = 0;
  for (size_t length = 0; length < records.size(); ++length) {
    const TapeContent tape = ParseTape(absl::string_view(records).substr(0, length));
    EXPECT_FALSE(tape.whole) << length;
    size_t answers = 0;
    for (const TapeQuestion& question : tape.questions) answers += question.answers.size();
    EXPECT_GE(answers, last) << length;
    last = answers;
  }
  EXPECT_EQ(last, 2u);
}

TEST(TapeFormatTest, RefusesPagesOutsideOfTheirFile) {
  TapeWriter out;
  out.Put('F');
  for (const uint64_t number : {1, 2, 100, 4}) out.Put(number);
  out.Put('P');
  out.Put(uint32_t{0});
  out.Put(uint64_t{95});
  out.PutText("0123456789");
  out.Put('E');
  const std::string records = out.Take();
  const TapeContent tape = ParseTape(records);
  EXPECT_FALSE(tape.whole);
  EXPECT_THAT(tape.files[0].pages, SizeIs(0));
}

TEST(TapeFormatTest, RefusesAnswersThatGoBackInTime) {
  TapeWriter out;
  out.Put('Q');
  out.PutText("clock");
  for (const uint32_t before : {1, 1}) {
    out.Put('A');
    out.Put(uint32_t{0});
    out.Put(before);
    out.PutText("x");
  }
  const std::string records = out.Take();
  EXPECT_THAT(ParseTape(records).questions[0].answers, SizeIs(1));
}

TEST(TapeFormatTest, RefusesOtherFilesAndBombs) {
  EXPECT_TRUE(absl::IsDataLoss(UnpackTape("").status()));
  EXPECT_TRUE(absl::IsDataLoss(UnpackTape("CLRSTRM2z").status()));
  EXPECT_TRUE(absl::IsDataLoss(UnpackTape("CLRSTRM1x").status()));
  EXPECT_TRUE(absl::IsDataLoss(UnpackTape("CLRSTRM1zgarbage").status()));
  EXPECT_EQ(*UnpackTape(absl::StrCat("CLRSTRM1r", Records())), Records());
}

}  // namespace
}  // namespace clrsampler
