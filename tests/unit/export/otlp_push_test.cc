#include "export/otlp_push.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "export/pusher.h"
#include "formats/grpc/grpc_message.h"
#include "formats/profile/gzip.h"
#include "unit/export/made_up_windows.h"
#include "unit/output/read_otlp.h"

namespace clrsampler {
namespace {

using test_support::ReadOtlp;
using test_support::ShopWindow;
using ::testing::Contains;

TEST(OtlpUrlTest, SaysTheTransport) {
  const auto http = ParseOtlpUrl("http://collector:4318/");
  ASSERT_TRUE(http.ok());
  EXPECT_EQ(http->transport, OtlpTransport::kHttp);
  EXPECT_EQ(http->url, "http://collector:4318/v1development/profiles");
  EXPECT_EQ(http->server, "http://collector:4318");
  EXPECT_EQ(ParseOtlpUrl("https://x/otlp/v1/profiles")->url, "https://x/otlp/v1/profiles")
      << "a path is meant as it is";
  constexpr char kExport[] = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
  for (const char* text : {"grpc://collector:4317", "http://collector:4317"}) {
    const auto grpc = ParseOtlpUrl(text);
    ASSERT_TRUE(grpc.ok());
    EXPECT_EQ(grpc->transport, OtlpTransport::kGrpc);
    EXPECT_EQ(grpc->form, HttpForm::kHttp2Plain);
    EXPECT_EQ(grpc->url, std::string("http://collector:4317") + kExport);
  }
  for (const char* text : {"grpcs://collector:4317", "https://collector:4317/"}) {
    EXPECT_EQ(ParseOtlpUrl(text)->form, HttpForm::kHttp2Tls);
    EXPECT_EQ(ParseOtlpUrl(text)->url, std::string("https://collector:4317") + kExport);
  }
  EXPECT_EQ(ParseOtlpUrl("http://collector:14317")->transport, OtlpTransport::kHttp);
}

TEST(OtlpUrlTest, RefusesTheRest) {
  for (const char* text : {"", "collector:4317", "ftp://x", "grpc://", "grpc://x/path", "grpc://user:secret@x",
                           "http://x/?a=b", "grpc://x y", "http://x/\n", "://x"}) {
    EXPECT_FALSE(ParseOtlpUrl(text).ok()) << text;
  }
}

OtlpOptions Options(const char* url) {
  OtlpOptions options;
  options.endpoint = *ParseOtlpUrl(url);
  options.headers = {"X-Scope-OrgID: shop"};
  options.host = "web-3";
  return options;
}

TEST(OtlpPushTest, OverHttpARequestIsTheCompressedMessage) {
  const auto messages = MakeOtlpProtocol(Options("http://x"))->Encode(*ShopWindow(1));
  ASSERT_TRUE(messages.ok());
  ASSERT_EQ(messages->messages.size(), 1u);
  const PushMessage& message = messages->messages[0];
  EXPECT_THAT(message.headers, Contains("X-Scope-OrgID: shop"));
  EXPECT_THAT(message.headers, Contains("Content-Type: application/x-protobuf"));
  EXPECT_THAT(message.headers, Contains("Content-Encoding: gzip"));
  EXPECT_EQ(ReadOtlp(*Gunzip(message.body, 1 << 20)).Sum("samples/count"), 140);
  EXPECT_EQ(message.samples, 140u);
}

TEST(OtlpPushTest, OverGrpcItHasAFrame) {
  const auto messages = MakeOtlpProtocol(Options("grpc://x"))->Encode(*ShopWindow(1));
  ASSERT_TRUE(messages.ok());
  const PushMessage& message = messages->messages[0];
  EXPECT_THAT(message.headers, Contains("TE: trailers"));
  EXPECT_EQ(message.body[0], 1) << "compressed";
  const std::string compressed = message.body.substr(5);
  EXPECT_EQ(message.body, GrpcFrame(compressed, true));
  EXPECT_EQ(ReadOtlp(*Gunzip(compressed, 1 << 20)).Sum("samples/count"), 140);
}

// Answers in turn, then 200.
class TurnPoster : public HttpPoster {
 public:
  explicit TurnPoster(std::vector<PostOutcome> answers) : answers_(std::move(answers)) {}
  PostOutcome Post(const std::string&, const std::vector<std::string>&, absl::string_view) override {
    if (next_ < answers_.size()) return answers_[next_++];
    PostOutcome taken;
    taken.status = 200;
    return taken;
  }
  void Cancel() override {}

 private:
  const std::vector<PostOutcome> answers_;
  size_t next_ = 0;
};

struct Counts {
  std::atomic<uint64_t> taken = 0, sent = 0, lost = 0, waiting = 0, rejected = 0, unreadable = 0;
};

std::unique_ptr<Pusher> Start(std::vector<PostOutcome> answers, RecentWindows& windows, Counts& counts,
                              const OtlpOptions& options = Options("http://x"), PushOptions push = {}) {
  push.first_wait = push.longest_wait = std::chrono::milliseconds(1);
  PushObserver observer;
  observer.sent = [&](PushResult result, const PushMessage& message) {
    if (result == PushResult::kUnreadable) ++counts.unreadable;
    if (result == PushResult::kSent || result == PushResult::kUnreadable) counts.sent += message.samples;
  };
  observer.lost = [&](PushLoss, uint64_t samples) { counts.lost += samples; };
  observer.taken = [&](uint64_t samples) { counts.taken += samples; };
  observer.rejected = [&](uint64_t profiles) { counts.rejected += profiles; };
  observer.waiting = [&](const PushQueue& queue) { counts.waiting = queue.samples; };
  observer.said = [](const std::string&) {};
  return Pusher::Start(push, MakeOtlpProtocol(options), std::make_unique<TurnPoster>(std::move(answers)), windows,
                       std::move(observer));
}

void Await(const std::atomic<uint64_t>& value, uint64_t least) {
  for (int i = 0; i < 3000 && value < least; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

PostOutcome Answer(unsigned status, const std::string& body = "") {
  PostOutcome outcome;
  outcome.status = status;
  outcome.answer = body;
  return outcome;
}

TEST(OtlpPushTest, EverySampleIsSentLostOrWaits) {
  RecentWindows windows(64);
  Counts counts;
  auto pusher = Start({Answer(503), Answer(400), Answer(200, "<html>"), Answer(0)}, windows, counts);
  for (uint64_t i = 1; i <= 5; ++i) windows.Add(ShopWindow(i));
  Await(counts.taken, 700);
  Await(counts.sent, 560);
  EXPECT_EQ(counts.sent, 560u);
  EXPECT_EQ(counts.lost, 140u) << "what was refused";
  EXPECT_EQ(counts.unreadable, 1u);
  pusher.reset();
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_EQ(counts.taken, counts.sent + counts.lost);
}

TEST(OtlpPushTest, WhatWaitsAtTheEndIsLost) {
  RecentWindows windows(64);
  Counts counts;
  auto pusher = Start(std::vector<PostOutcome>(100'000, Answer(503)), windows, counts);
  for (uint64_t i = 1; i <= 3; ++i) windows.Add(ShopWindow(i));
  Await(counts.waiting, 420);
  EXPECT_EQ(counts.waiting, 420u);
  pusher.reset();
  EXPECT_EQ(counts.lost, 420u);
  EXPECT_EQ(counts.waiting, 0u);
}

TEST(OtlpPushTest, WhatWaitsTooLongIsLost) {
  RecentWindows windows(64);
  Counts counts;
  PushOptions push;
  push.oldest = std::chrono::milliseconds(1);
  auto pusher = Start(std::vector<PostOutcome>(100'000, Answer(503)), windows, counts, Options("http://x"), push);
  windows.Add(ShopWindow(1));
  Await(counts.lost, 140);
  EXPECT_EQ(counts.lost, 140u);
  EXPECT_EQ(counts.waiting, 0u);
}

TEST(OtlpPushTest, AServerRejectsNoMoreThanItGot) {
  RecentWindows windows(64);
  Counts counts;
  auto pusher = Start({Answer(200, std::string("\x0a\x04\x08\xff\xff\x03", 6))}, windows, counts);
  windows.Add(ShopWindow(1));
  Await(counts.sent, 140);
  pusher.reset();
  EXPECT_EQ(counts.rejected, 4u);
}

TEST(OtlpPushTest, ASampleThatIsTooLargeIsLost) {
  RecentWindows windows(64);
  Counts counts;
  OtlpOptions options = Options("http://x");
  options.request_bytes = 100;
  auto pusher = Start({}, windows, counts, options);
  windows.Add(ShopWindow(1));
  Await(counts.lost, 140);
  pusher.reset();
  EXPECT_EQ(counts.taken, 140u);
  EXPECT_EQ(counts.lost, 140u);
}

}  // namespace
}  // namespace clrsampler
