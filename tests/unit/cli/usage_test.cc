#include "cli/usage.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "status/status.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::Not;

class UsageTest : public testing::Test {
 protected:
  UsageTest() {
    app_.add_option("--pid", pid_);
    record_->add_option("--pid", pid_);
    jit_->add_option("--pid", pid_)->required();
    app_.require_subcommand(0, 1);
  }
  absl::Status Parse(std::vector<std::string> words, bool has_command = false) {
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& error) {
      return WrongUsage(app_, record_, error);
    }
    return CheckPlaces(app_, record_, has_command);
  }

  std::string pid_;
  CLI::App app_{"", "clrsampler"};
  CLI::App* record_ = app_.add_subcommand("record");
  CLI::App* jit_ = app_.add_subcommand("jit");
};

TEST_F(UsageTest, TheHintNamesTheHelpOfTheCommandThatWasChosen) {
  EXPECT_EQ(HintOf(Parse({"jit"})), "clrsampler jit --help lists the options");
  EXPECT_EQ(HintOf(Parse({"jit", "--pid", "1", "--bogus"})), "clrsampler jit --help lists the options");
  EXPECT_EQ(HintOf(Parse({"--pid"})), "clrsampler --help lists the options");
  EXPECT_TRUE(absl::IsInvalidArgument(Parse({"jit"})));
}

TEST_F(UsageTest, AStrayWordOfRecordHasTheHintHowToNameAProcess) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"4711"}, {"record", "4711"}}) {
    EXPECT_THAT(HintOf(Parse(words)), HasSubstr("--pid PID samples a running process"));
  }
  EXPECT_THAT(HintOf(Parse({"record", "4711"})), HasSubstr("clrsampler record --help"));
  EXPECT_THAT(HintOf(Parse({"jit", "--pid", "1", "4711"})), Not(HasSubstr("COMMAND")));
}

TEST_F(UsageTest, WordsWithoutEffectAreErrors) {
  EXPECT_TRUE(Parse({"jit", "--pid", "1"}).ok());
  EXPECT_TRUE(Parse({}, /*has_command=*/true).ok());
  EXPECT_TRUE(Parse({"record"}, /*has_command=*/true).ok());
  EXPECT_THAT(std::string(Parse({"jit", "--pid", "1"}, /*has_command=*/true).message()),
              HasSubstr("jit starts no program"));
  EXPECT_THAT(std::string(Parse({"--pid", "1", "jit", "--pid", "1"}).message()), HasSubstr("--pid before jit"));
  EXPECT_TRUE(Parse({"--pid", "1", "record"}).ok());
  const absl::Status twice = Parse({"--pid", "1", "record", "--pid", "2"});
  EXPECT_EQ(twice.message(), "--pid is given before and behind record");
  EXPECT_EQ(HintOf(twice), "give it once, behind record");
}

}  // namespace
}  // namespace clrsampler
