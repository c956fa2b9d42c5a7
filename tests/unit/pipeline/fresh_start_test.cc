#include "pipeline/fresh_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(FreshStartTest, TheOnlyRecorderGoesOn) {
  EXPECT_EQ(FreshStartFor({.ran_ns = kFreshStartNs, .memory_is_short = true, .names_are_full = true}),
            FreshStart::kNone);
}

TEST(FreshStartTest, ARecorderIsNotReplacedAgainAndAgain) {
  FreshStartInputs inputs{.begins_anew = true, .ran_ns = kFreshStartNs - 1, .names_are_full = true};
  EXPECT_EQ(FreshStartFor(inputs), FreshStart::kNone);
  ++inputs.ran_ns;
  EXPECT_EQ(FreshStartFor(inputs), FreshStart::kNames);
  inputs.names_are_full = false;
  EXPECT_EQ(FreshStartFor(inputs), FreshStart::kNone);
}

TEST(FreshStartTest, EachReasonHasItsOwnHint) {
  EXPECT_EQ(FreshStartFor({.begins_anew = true, .ran_ns = kFreshStartNs, .memory_is_short = true}),
            FreshStart::kMemory);
  EXPECT_THAT(std::string(TextOf(FreshStart::kMemory).hint), HasSubstr("--memory-limit"));
  EXPECT_THAT(std::string(TextOf(FreshStart::kNames).message), HasSubstr("names"));
  EXPECT_THAT(std::string(TextOf(FreshStart::kNames).hint), Not(HasSubstr("--memory-limit")));
}

}  // namespace
}  // namespace clrsampler
