#include "clr/event_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;

constexpr MonotonicTime kSessionNow{1000};
constexpr MonotonicTime kTooLate{1000 + EventSession::kPatienceNs};

std::string Session(uint64_t number) {
  return EncodeDiagnosticsReply(std::nullopt,
                                AsBytes(absl::string_view(reinterpret_cast<const char*>(&number), sizeof number)));
}

// The runtime's end of each connection that the session makes.
class EventSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto session =
        EventSession::Start([this] { return Connect(); }, {.provider = "P", .keywords = 9, .level = 5}, kSessionNow);
    ASSERT_TRUE(session.ok());
    session_.emplace(*std::move(session));
  }
  absl::StatusOr<UniqueFd> Connect() {
    if (refuses_) return absl::UnavailableError("its queue is full");
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return absl::InternalError("");
    connections_.emplace_back(ends[1]);
    return UniqueFd(ends[0]);
  }
  void Send(size_t connection, absl::string_view bytes) {
    ASSERT_EQ(send(connections_[connection].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string Received(size_t connection) {
    char bytes[256];
    const ssize_t got = recv(connections_[connection].get(), bytes, sizeof bytes, 0);
    return std::string(bytes, got > 0 ? static_cast<size_t>(got) : 0);
  }
  bool Step(MonotonicTime now = kSessionNow) {
    return session_->Step(now, [this](std::span<const std::byte> bytes) {
      absl::StrAppend(&taken_, AsText(bytes));
      if (fails_) session_->Abandon(absl::DataLossError("no stream"));
    });
  }

  bool refuses_ = false;
  bool fails_ = false;
  std::vector<UniqueFd> connections_;
  std::optional<EventSession> session_;
  std::string taken_;
};

TEST_F(EventSessionTest, TakesAStreamAndStopsByTheSessionsNumber) {
  EXPECT_FALSE(Step());
  EXPECT_FALSE(session_->began());
  EXPECT_EQ(Received(0),
            EncodeCollectTracing(DiagnosticsCommand::kCollectTracing3, {.provider = "P", .keywords = 9, .level = 5}));
  Send(0, Session(77) + "Net");  // the stream begins in the same packet
  EXPECT_FALSE(Step());
  EXPECT_TRUE(session_->began());
  EXPECT_EQ(taken_, "Net");
  EXPECT_EQ(Received(1), EncodeDiagnosticsRequest(DiagnosticsCommand::kProcessInfo));
  Send(0, "trace");
  EXPECT_FALSE(Step());
  EXPECT_EQ(taken_, "Nettrace");

  session_->Stop(kSessionNow);
  EXPECT_FALSE(Step());
  EXPECT_EQ(Received(2), EncodeStopTracing(77));
  Send(0, "end");
  connections_[0].reset();
  EXPECT_TRUE(Step());
  EXPECT_TRUE(session_->status().ok()) << session_->status();
  EXPECT_EQ(taken_, "Nettraceend");
  EXPECT_EQ(session_->fd(), -1);
}

TEST_F(EventSessionTest, AReplyByteByByteLosesNothingOfTheStream) {
  for (const char byte : Session(1) + "abc") {
    EXPECT_FALSE(Step());
    Send(0, absl::string_view(&byte, 1));
  }
  EXPECT_FALSE(Step());
  EXPECT_EQ(taken_, "abc");
}

TEST_F(EventSessionTest, ARuntimeThatExitsEndsTheStream) {
  Send(0, Session(1) + "abc");
  EXPECT_FALSE(Step());
  connections_[0].reset();
  EXPECT_TRUE(Step());
  EXPECT_TRUE(session_->status().ok());
}

TEST_F(EventSessionTest, StopBeforeTheReplyStopsAfterIt) {
  session_->Stop(kSessionNow);
  EXPECT_FALSE(Step());
  EXPECT_EQ(connections_.size(), 1u);
  Send(0, Session(5));
  EXPECT_FALSE(Step());
  ASSERT_EQ(connections_.size(), 3u);
  EXPECT_FALSE(Step());
  EXPECT_EQ(Received(1), EncodeStopTracing(5));
}

// 11.0 agrees first, and enables the events while its server is busy with that.
TEST_F(EventSessionTest, EventsAreEnabledOnceTheNextRequestIsAnswered) {
  Send(0, Session(1));
  EXPECT_FALSE(Step());
  EXPECT_FALSE(Step());
  EXPECT_TRUE(session_->began());
  EXPECT_FALSE(session_->enabled());
  Send(0, "early");
  EXPECT_FALSE(Step());
  EXPECT_EQ(taken_, "early");
  Send(1, EncodeDiagnosticsReply(kDiagnosticsUnknownCommand, {}));
  EXPECT_FALSE(Step());
  EXPECT_TRUE(session_->enabled());
  EXPECT_EQ(connections_.size(), 2u);
}

TEST_F(EventSessionTest, AProofThatCantBeAskedForIsAskedForAgainAndNotAwaitedForEver) {
  Send(0, Session(1));
  refuses_ = true;
  EXPECT_FALSE(Step());
  refuses_ = false;
  EXPECT_FALSE(Step());
  EXPECT_EQ(Received(1), EncodeDiagnosticsRequest(DiagnosticsCommand::kProcessInfo));
  EXPECT_FALSE(Step({kTooLate.ns - 1}));
  EXPECT_FALSE(session_->enabled());
  EXPECT_FALSE(Step(kTooLate));
  EXPECT_TRUE(session_->enabled());
}

TEST_F(EventSessionTest, NoReplyEndsAtTheDeadline) {
  EXPECT_FALSE(Step({kTooLate.ns - 1}));
  EXPECT_TRUE(Step(kTooLate));
  EXPECT_TRUE(absl::IsDeadlineExceeded(session_->status()));
}

TEST_F(EventSessionTest, AStreamThatDoesNotEndIsLeft) {
  Send(0, Session(1));
  EXPECT_FALSE(Step(kTooLate)) << "there is no deadline but for replies";
  session_->Stop(kSessionNow);
  Send(0, "more");
  EXPECT_FALSE(Step({kTooLate.ns - 1}));
  EXPECT_TRUE(Step(kTooLate));
  EXPECT_TRUE(absl::IsDeadlineExceeded(session_->status()));
  EXPECT_EQ(taken_, "more");
}

TEST_F(EventSessionTest, ARefusalIsSaid) {
  Send(0, EncodeDiagnosticsReply(0x80131384, {}));
  EXPECT_TRUE(Step());
  EXPECT_TRUE(absl::IsFailedPrecondition(session_->status()));
  EXPECT_THAT(session_->status().message(), HasSubstr("could not read the message"));
}

// As 8.0.34.
TEST_F(EventSessionTest, ARuntimeThatDoesNotKnowTheCommandIsAskedByTheOlderOne) {
  Send(0, EncodeDiagnosticsReply(kDiagnosticsUnknownCommand, {}));
  EXPECT_FALSE(Step());
  EXPECT_FALSE(Step());
  ASSERT_EQ(connections_.size(), 2u);
  EXPECT_EQ(Received(1),
            EncodeCollectTracing(DiagnosticsCommand::kCollectTracing2, {.provider = "P", .keywords = 9, .level = 5}));
  Send(1, Session(3) + "abc");
  EXPECT_FALSE(Step());
  EXPECT_EQ(taken_, "abc");
}

TEST_F(EventSessionTest, ARuntimeThatKnowsNeitherCommandRefuses) {
  Send(0, EncodeDiagnosticsReply(kDiagnosticsUnknownCommand, {}));
  EXPECT_FALSE(Step());
  Send(1, EncodeDiagnosticsReply(kDiagnosticsUnknownCommand, {}));
  EXPECT_TRUE(Step());
  EXPECT_TRUE(absl::IsFailedPrecondition(session_->status()));
}

TEST_F(EventSessionTest, NonsenseIsSaid) {
  Send(0, "HTTP/1.1 200 OK");
  EXPECT_TRUE(Step());
  EXPECT_TRUE(absl::IsDataLoss(session_->status()));
}

TEST_F(EventSessionTest, AReplyWithoutANumberIsNonsense) {
  Send(0, EncodeDiagnosticsReply(std::nullopt, {}));
  EXPECT_TRUE(Step());
  EXPECT_TRUE(absl::IsDataLoss(session_->status()));
}

TEST_F(EventSessionTest, AStreamThatCantBeReadIsAbandoned) {
  fails_ = true;
  Send(0, Session(1) + "x");
  EXPECT_TRUE(Step());
  EXPECT_TRUE(absl::IsDataLoss(session_->status()));
  EXPECT_EQ(send(connections_[0].get(), "x", 1, MSG_NOSIGNAL), -1) << "the runtime sees it";
}

TEST_F(EventSessionTest, WhereNobodyTakesTheRequestTheStreamIsReadOnAndClosedAtTheDeadline) {
  Send(0, Session(1));
  EXPECT_FALSE(Step());
  refuses_ = true;
  session_->Stop(kSessionNow);
  Send(0, "more");
  EXPECT_FALSE(Step({kTooLate.ns - 1}));
  EXPECT_EQ(taken_, "more");
  EXPECT_TRUE(Step(kTooLate));
  EXPECT_TRUE(absl::IsUnavailable(session_->status()));
  EXPECT_EQ(send(connections_[0].get(), "x", 1, MSG_NOSIGNAL), -1);
}

TEST_F(EventSessionTest, AProcessThatExitsInsteadOfTakingTheRequestEndsTheStream) {
  Send(0, Session(1));
  EXPECT_FALSE(Step());
  refuses_ = true;
  session_->Stop(kSessionNow);
  Send(0, "last");
  connections_[0].reset();
  EXPECT_TRUE(Step());
  EXPECT_TRUE(session_->status().ok()) << session_->status();
  EXPECT_EQ(taken_, "last");
}

TEST_F(EventSessionTest, AFullQueueIsAskedAgain) {
  Send(0, Session(5));
  EXPECT_FALSE(Step());
  refuses_ = true;
  session_->Stop(kSessionNow);
  EXPECT_FALSE(Step());
  refuses_ = false;
  EXPECT_FALSE(Step());
  ASSERT_EQ(connections_.size(), 3u);
  EXPECT_EQ(Received(2), EncodeStopTracing(5));
  EXPECT_FALSE(Step());
  EXPECT_EQ(connections_.size(), 3u) << "one request is enough";
}

TEST_F(EventSessionTest, AFloodIsTakenInSteps) {
  Send(0, Session(1));
  EXPECT_FALSE(Step());
  const int room = 4 << 20;
  setsockopt(connections_[0].get(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
  const std::string piece(60'000, 'x');
  size_t sent = 0;
  for (ssize_t did = 0; did >= 0; sent += static_cast<size_t>(did > 0 ? did : 0)) {
    did = send(connections_[0].get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ASSERT_GT(sent, EventSession::kStepBytes + (64 << 10));
  EXPECT_FALSE(Step());
  EXPECT_LE(taken_.size(), EventSession::kStepBytes + (64 << 10));
  for (int i = 0; i < 100 && taken_.size() < sent; ++i) EXPECT_FALSE(Step());
  EXPECT_EQ(taken_.size(), sent);
}

}  // namespace
}  // namespace clrsampler
