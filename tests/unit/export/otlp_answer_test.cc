#include "export/otlp_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "formats/grpc/grpc_message.h"

namespace clrsampler {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// An ExportProfilesServiceResponse: partial_success {rejected_profiles: 3, error_message: "bad"}, and {error_message:
// "old"}.
const std::string kPartial(
    "\x0a\x07\x08\x03\x12\x03"
    "bad",
    9);
const std::string kWarning(
    "\x0a\x05\x12\x03"
    "old",
    7);

PostOutcome Http(unsigned status, const std::string& answer = "") {
  PostOutcome outcome;
  outcome.status = status;
  outcome.answer = answer;
  outcome.retry_after = seconds(7);
  return outcome;
}

PostOutcome Grpc(const std::string& code, const std::string& answer = GrpcFrame("", false)) {
  PostOutcome outcome;
  outcome.status = 200;
  outcome.answer = answer;
  outcome.fields = {{"grpc-status", code}};
  return outcome;
}

TEST(OtlpAnswerTest, NothingIsAnAnswer) {
  const auto partial = ReadOtlpAnswer("");
  ASSERT_TRUE(partial.ok());
  EXPECT_EQ(partial->rejected_profiles, 0u);
}

TEST(OtlpAnswerTest, GarbageIsNone) {
  for (const std::string& bytes : {std::string("\xff"), std::string("<html>"), kPartial.substr(0, 5),
                                   std::string("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13)}) {
    EXPECT_FALSE(ReadOtlpAnswer(bytes).ok()) << absl::CHexEscape(bytes);
  }
}

TEST(OtlpHttpTest, WhatIsTakenIsDone) {
  EXPECT_EQ(JudgeOtlpHttp(Http(200)).answer, PushAnswer::kTaken);
  EXPECT_EQ(JudgeOtlpHttp(Http(200)).why, "");
  EXPECT_EQ(JudgeOtlpHttp(Http(202)).answer, PushAnswer::kTaken);
}

TEST(OtlpHttpTest, PartialSuccessIsTakenCountedAndSaid) {
  const PushVerdict partial = JudgeOtlpHttp(Http(200, kPartial));
  EXPECT_EQ(partial.answer, PushAnswer::kTaken);
  EXPECT_EQ(partial.rejected_profiles, 3u);
  EXPECT_EQ(partial.why, "takes a part of the profiles only (bad)");
  const PushVerdict warning = JudgeOtlpHttp(Http(200, kWarning));
  EXPECT_EQ(warning.rejected_profiles, 0u);
  EXPECT_EQ(warning.why, "takes profiles with a warning (old)");
}

TEST(OtlpHttpTest, AnAnswerThatCannotBeReadIsNotSentAgain) {
  EXPECT_EQ(JudgeOtlpHttp(Http(200, "<html>")).answer, PushAnswer::kUnreadable);
  PostOutcome endless = Http(200, std::string(1000, '\0'));
  endless.cut = true;
  EXPECT_EQ(JudgeOtlpHttp(endless).answer, PushAnswer::kUnreadable);
}

TEST(OtlpHttpTest, FourStatusesAreWorthAnotherTry) {
  for (const unsigned status : {429u, 502u, 503u, 504u}) {
    const PushVerdict verdict = JudgeOtlpHttp(Http(status));
    EXPECT_EQ(verdict.answer, PushAnswer::kPassing) << status;
    EXPECT_EQ(verdict.retry_after, seconds(7));
  }
  for (const unsigned status : {100u, 302u, 400u, 401u, 404u, 408u, 413u, 500u, 501u, 505u, 999u}) {
    EXPECT_EQ(JudgeOtlpHttp(Http(status)).answer, PushAnswer::kRefused) << status;
  }
  PostOutcome none;
  none.error = "nobody there";
  EXPECT_EQ(JudgeOtlpHttp(none).answer, PushAnswer::kPassing);
  EXPECT_EQ(JudgeOtlpHttp(none).why, "nobody there");
}

TEST(OtlpHttpTest, ARefusalIsSaidInTheServersWords) {
  EXPECT_EQ(JudgeOtlpHttp(Http(400, "\x08\x03\x12\x04oops")).why, "HTTP status 400 (oops)") << "a google.rpc.Status";
  EXPECT_EQ(JudgeOtlpHttp(Http(400, "oops\n")).why, "HTTP status 400 (oops)");
}

TEST(OtlpGrpcTest, OkIsTaken) {
  EXPECT_EQ(JudgeOtlpGrpc(Grpc("0")).answer, PushAnswer::kTaken);
  EXPECT_EQ(JudgeOtlpGrpc(Grpc("0", GrpcFrame(kPartial, false))).rejected_profiles, 3u);
  EXPECT_EQ(JudgeOtlpGrpc(Grpc("0", "")).answer, PushAnswer::kUnreadable);
  EXPECT_EQ(JudgeOtlpGrpc(Grpc("0", GrpcFrame("\xff", false))).answer, PushAnswer::kUnreadable);
}

TEST(OtlpGrpcTest, SomeCodesAreWorthAnotherTry) {
  for (const char* code : {"1", "4", "10", "11", "14", "15"}) {
    EXPECT_EQ(JudgeOtlpGrpc(Grpc(code)).answer, PushAnswer::kPassing) << code;
  }
  for (const char* code : {"2", "3", "5", "6", "7", "8", "9", "12", "13", "16", "17"}) {
    EXPECT_EQ(JudgeOtlpGrpc(Grpc(code)).answer, PushAnswer::kRefused) << code;
  }
  EXPECT_THAT(JudgeOtlpGrpc(Grpc("7")).why, HasSubstr("PERMISSION_DENIED"));
}

TEST(OtlpGrpcTest, ExhaustedResourcesComeBackIfTheServerSaysWhen) {
  PostOutcome outcome = Grpc("8");
  const std::string type = "type.googleapis.com/google.rpc.RetryInfo";
  const std::string info("\x0a\x02\x08\x05", 4);
  const std::string any = std::string("\x0a") + static_cast<char>(type.size()) + type + "\x12\x04" + info;
  outcome.fields["grpc-status-details-bin"] =
      absl::Base64Escape(std::string("\x1a") + static_cast<char>(any.size()) + any);
  const PushVerdict verdict = JudgeOtlpGrpc(outcome);
  EXPECT_EQ(verdict.answer, PushAnswer::kPassing);
  EXPECT_EQ(verdict.retry_after, seconds(5));
}

TEST(OtlpGrpcTest, WithoutAStatusItIsNotTaken) {
  PostOutcome outcome;
  outcome.status = 200;
  EXPECT_EQ(JudgeOtlpGrpc(outcome).answer, PushAnswer::kRefused);
  outcome.status = 503;
  EXPECT_EQ(JudgeOtlpGrpc(outcome).answer, PushAnswer::kPassing);
  outcome.status = 0;
  EXPECT_EQ(JudgeOtlpGrpc(outcome).answer, PushAnswer::kPassing);
  PostOutcome endless = Grpc("0");
  endless.cut = true;
  EXPECT_EQ(JudgeOtlpGrpc(endless).answer, PushAnswer::kRefused);
}

}  // namespace
}  // namespace clrsampler
