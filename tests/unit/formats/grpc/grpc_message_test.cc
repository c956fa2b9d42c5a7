#include "formats/grpc/grpc_message.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace clrsampler {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// A google.rpc.Status: code 8, "slow down", and two details, of which the second is RetryInfo with this duration.
std::string Details(absl::string_view duration) {
  const std::string retry_type = "type.googleapis.com/google.rpc.RetryInfo";
  const std::string quota_type = "type.googleapis.com/google.rpc.QuotaFailure";
  const auto message = [](int tag, absl::string_view bytes) {
    return std::string(1, static_cast<char>(tag << 3 | 2)) + static_cast<char>(bytes.size()) + std::string(bytes);
  };
  const std::string info = message(1, duration);
  return std::string("\x08\x08") + message(2, "slow down") + message(3, message(1, quota_type)) +
         message(3, message(1, retry_type) + message(2, info));
}

GrpcStatus StatusWithDetails(const std::string& details, bool padded = true) {
  std::string text = absl::Base64Escape(details);
  while (!padded && text.back() == '=') text.pop_back();
  return GrpcStatusOf(200, {{"grpc-status", "8"}, {"grpc-status-details-bin", text}});
}

TEST(GrpcFrameTest, SaysTheLengthAndWhetherItIsCompressed) {
  EXPECT_EQ(GrpcFrame("abc", false), std::string("\0\0\0\0\3abc", 8));
  EXPECT_EQ(GrpcFrame(std::string(0x1234, 'x'), true).substr(0, 5), std::string("\1\0\0\x12\x34", 5));
}

TEST(GrpcFrameTest, AnAnswerIsOneWholeMessage) {
  EXPECT_EQ(*GrpcUnframe(GrpcFrame("", false)), "");
  EXPECT_EQ(*GrpcUnframe(GrpcFrame("abc", false)), "abc");
  for (const std::string& body :
       {std::string(), std::string("\0\0\0\0", 4), std::string("\0\0\0\0\4abc", 8), std::string("\0\0\0\0\2abc", 8),
        GrpcFrame("abc", true), GrpcFrame("", false) + GrpcFrame("", false), std::string("\0\xff\xff\xff\xff", 5)}) {
    EXPECT_FALSE(GrpcUnframe(body).ok()) << absl::CHexEscape(body);
  }
}

TEST(GrpcStatusTest, IsWhatTheTrailersSay) {
  const GrpcStatus status = GrpcStatusOf(200, {{"grpc-status", "14"}, {"grpc-message", "no%20room, %e2%82%ac%zz%4"}});
  EXPECT_EQ(status.code, GrpcCode::kUnavailable);
  EXPECT_TRUE(status.told);
  EXPECT_EQ(status.message, "no room, \xE2\x82\xAC%zz%4");
  EXPECT_FALSE(status.retry_delay);
}

TEST(GrpcStatusTest, NumbersThatNobodyKnowsAreUnknown) {
  for (const char* number : {"17", "-1", "", "ok", "99999999999999999999"}) {
    EXPECT_EQ(GrpcStatusOf(200, {{"grpc-status", number}}).code, GrpcCode::kUnknown) << number;
  }
}

TEST(GrpcStatusTest, FollowsFromHttpWhereNoneIsThere) {
  EXPECT_EQ(GrpcStatusOf(503, {}).code, GrpcCode::kUnavailable);
  EXPECT_EQ(GrpcStatusOf(429, {}).code, GrpcCode::kUnavailable);
  EXPECT_EQ(GrpcStatusOf(404, {}).code, GrpcCode::kUnimplemented);
  EXPECT_EQ(GrpcStatusOf(401, {}).code, GrpcCode::kUnauthenticated);
  EXPECT_EQ(GrpcStatusOf(200, {}).code, GrpcCode::kUnknown) << "an answer without a status is not taken for a good one";
  EXPECT_FALSE(GrpcStatusOf(200, {}).told);
}

TEST(GrpcStatusTest, RetryInfoIsAmongTheDetails) {
  EXPECT_EQ(StatusWithDetails(Details(std::string("\x08\x01\x10\x80\xca\xb5\xee\x01", 8))).retry_delay,
            nanoseconds(milliseconds(1500)));
  EXPECT_EQ(StatusWithDetails(Details(std::string("\x08\x02", 2)), /*padded=*/false).retry_delay,
            nanoseconds(seconds(2)));
  EXPECT_EQ(StatusWithDetails(Details("")).retry_delay, nanoseconds(0));
}

TEST(GrpcStatusTest, DelaysAreBounded) {
  EXPECT_EQ(StatusWithDetails(Details("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f")).retry_delay,
            nanoseconds(seconds(600)));
  EXPECT_EQ(StatusWithDetails(Details("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")).retry_delay, nanoseconds(0))
      << "less than nothing";
}

TEST(GrpcStatusTest, DamagedDetailsAreNone) {
  const std::string whole = Details(std::string("\x08\x02", 2));
  for (size_t size = whole.size() - 30; size < whole.size(); ++size) {
    EXPECT_FALSE(StatusWithDetails(whole.substr(0, size)).retry_delay) << size;
  }
  EXPECT_FALSE(GrpcStatusOf(200, {{"grpc-status", "8"}, {"grpc-status-details-bin", "!"}}).retry_delay);
  EXPECT_FALSE(StatusWithDetails(std::string("\x18\x01", 2)).retry_delay) << "a field of another type";
}

}  // namespace
}  // namespace clrsampler
