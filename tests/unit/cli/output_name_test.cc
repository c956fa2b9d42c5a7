#include "cli/output_name.h"

#include <gmock/gmock.h>

#include <string>

#include "status/status.h"

namespace clrsampler {
namespace {

RecordingSubject Subject() { return {{4711, 4712}, "a/b web", absl::FromUnixSeconds(1'790'000'000)}; }

TEST(ExpandOutputNameTest, LettersStandForWhatIsRecorded) {
  EXPECT_EQ(*ExpandOutputName("/tmp/%c.d/%p-%t.json", Subject()), "/tmp/a_b_web.d/4711-4712-20260921-141320.json");
  EXPECT_EQ(*ExpandOutputName("100%%.folded", Subject()), "100%.folded");
  EXPECT_EQ(*ExpandOutputName("-", Subject()), "-");
}

TEST(ExpandOutputNameTest, TheModuleIsFilledInLater) {
  EXPECT_EQ(*ExpandOutputName("%c.%m.mip", Subject()), "a_b_web.%m.mip");
  EXPECT_EQ(NameOfModule("out.%m.mip", "libfoo bar/x.so"), "out.libfoo_bar_x.so.mip");
  EXPECT_EQ(NameOfModule("%m/%m.mip", "[jit]"), "jit/jit.mip");
}

TEST(ExpandOutputNameTest, WhatStandsForNothingIsAnErrorWithAHint) {
  RecordingSubject host = Subject();
  host.pids.clear();
  for (const auto& [pattern, subject] : {std::pair{"%x", Subject()}, {"a%", Subject()}, {"%p.json", host}}) {
    const absl::StatusOr<std::string> name = ExpandOutputName(pattern, subject);
    EXPECT_EQ(name.status().code(), absl::StatusCode::kInvalidArgument) << pattern;
    EXPECT_NE(HintOf(name.status()), "");
  }
}

}  // namespace
}  // namespace clrsampler
