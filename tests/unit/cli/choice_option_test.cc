#include "cli/choice_option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using ::testing::HasSubstr;

enum class Colour { kRed, kGreen };
constexpr Choice<Colour> kColours[] = {{"red", Colour::kRed}, {"green", Colour::kGreen}};

struct Program {
  Colour colour = Colour::kGreen;
  CLI::App app;
  Program() { DeclareChoice(app, "--colour,-c", colour, kColours, "of the frames", "COLOUR"); }
};

TEST(ChoiceOptionTest, AWordSetsItsValue) {
  Program program;
  program.app.parse("-c red");
  EXPECT_EQ(program.colour, Colour::kRed);
}

TEST(ChoiceOptionTest, WithoutItTheDefaultStays) {
  Program program;
  program.app.parse("");
  EXPECT_EQ(program.colour, Colour::kGreen);
}

TEST(ChoiceOptionTest, OtherWordsAreRefusedAndHelpHasAllOfThem) {
  Program program;
  EXPECT_THROW(program.app.parse("--colour blue"), CLI::ValidationError);
  EXPECT_EQ(program.colour, Colour::kGreen);
  EXPECT_THAT(program.app.help(), HasSubstr("COLOUR:{red,green}=green"));
}

}  // namespace
}  // namespace clrsampler
