#include "cli/push_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PushOptionsTest, WithoutAUrlNothingIsSent) {
  EXPECT_TRUE(ParsePush({})->url.empty());
  EXPECT_TRUE(ParseOtlp({})->endpoint.url.empty());
}

TEST(PushOptionsTest, OtlpHasItsOwnHeadersAndResources) {
  PushConfig config;
  config.otlp = "grpcs://collector:4317";
  config.otlp_by = PushBy::kProcess;
  config.otlp_headers = {"Authorization: Bearer a:b"};
  config.push_headers = {"X-Scope-OrgID: shop"};
  const absl::StatusOr<OtlpOptions> options = ParseOtlp(config);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->endpoint.transport, OtlpTransport::kGrpc);
  EXPECT_EQ(options->by, PushBy::kProcess);
  EXPECT_EQ(options->headers, config.otlp_headers);
  EXPECT_EQ(ParsePush(config)->by, PushBy::kService);
}

TEST(PushOptionsTest, AWrongHeaderIsNamedByItsOptionAndNotRepeated) {
  for (const char* header : {"Bearer secret", ": secret", "", "A B: secret", "A: secret\r\nB: c"}) {
    PushConfig config;
    config.otlp_headers = {header};
    const absl::Status status = ParseOtlp(config).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("--otlp-header")) << header;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
    config = {};
    config.push_headers = {header};
    EXPECT_THAT(std::string(ParsePush(config).status().message()), HasSubstr("--push-header"));
  }
}

TEST(PushOptionsTest, AuthoritiesAreCertificates) {
  PushConfig config;
  config.otlp_ca = "/dev/null";
  EXPECT_THAT(std::string(ParseOtlp(config).status().message()), HasSubstr("--otlp-ca /dev/null has no certificate"));
  config.otlp_ca = "/no/such/file";
  EXPECT_THAT(std::string(ParseOtlp(config).status().message()), HasSubstr("--otlp-ca"));
}

TEST(PushOptionsTest, AWrongUrlHasAHint) {
  PushConfig config;
  config.otlp = "collector:4317";
  const absl::Status status = ParseOtlp(config).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("collector:4317"));
  EXPECT_THAT(HintOf(status), HasSubstr("grpc://"));
}

}  // namespace
}  // namespace clrsampler
