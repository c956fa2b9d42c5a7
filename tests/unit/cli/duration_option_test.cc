#include "cli/duration_option.h"

#include <gmock/gmock.h>

#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;

TEST(ParseDurationNsTest, NumbersAreSeconds) {
  EXPECT_EQ(*ParseDurationNs("--duration", "1.5"), 1'500'000'000u);
  EXPECT_EQ(*ParseDurationNs("--duration", "1m30s"), 90'000'000'000u);
}

TEST(ParseDurationNsTest, ErrorsNameTheOption) {
  for (const char* text : {"soon", "0s", "-1s", "nan", "9000h"}) {
    const absl::Status status = ParseDurationNs("--to", text).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("--to ")) << text;
    EXPECT_NE(HintOf(status), "") << text;
  }
}

TEST(ParseOffsetNsTest, ARecordingStartsAtZero) {
  EXPECT_EQ(*ParseOffsetNs("--from", "0s"), 0u);
  EXPECT_EQ(*ParseOffsetNs("--from", "2s"), 2'000'000'000u);
  EXPECT_THAT(std::string(ParseOffsetNs("--from", "-1s").status().message()), HasSubstr("--from -1s"));
}

}  // namespace
}  // namespace clrsampler
