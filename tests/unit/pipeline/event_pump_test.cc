// On a made-up runtime at the other end of a socket, whose stream this process writes.
#include "pipeline/event_pump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "unit/formats/nettrace/nettrace_writer.h"

namespace clrsampler {
namespace {

constexpr size_t kEvents = 3000;  // fit into one piece of 64 KiB, and into a socket

class EventPumpTest : public testing::Test {
 protected:
  absl::StatusOr<UniqueFd> Connect() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return absl::InternalError("");
    connections_.emplace_back(ends[1]);
    if (connections_.size() == 2) connections_[1].reset();  // an end is an answer as well: the events are enabled
    return UniqueFd(ends[0]);
  }
  void Send(absl::string_view bytes) {
    ASSERT_EQ(send(connections_[0].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static NettraceWriter Described() {
    NettraceWriter writer;
    writer.Rows("MetadataBlock", Description(1, 251, kClrProvider) + Description(2, 80, kClrProvider));
    return writer;
  }
  // All in one block. Those that are not sorted are held until the stream ends.
  static std::string Flood(bool sorted = true) {
    return Described().Events(std::vector<WrittenRow>(kEvents, {1, 0, 7, 0, 1, sorted, ""})).Ended();
  }
  // The runtime agrees, then sends `stream` and is gone.
  EventWatchResult Run(const std::string& stream, uint64_t duration_ns = 0) {
    absl::StatusOr<EventSession> session = EventSession::Start([this] { return Connect(); }, {}, clock_.Now());
    absl::StatusOr<StopEvents> stop = StopEvents::Create();
    const uint64_t number = 1;
    Send(EncodeDiagnosticsReply(std::nullopt, std::as_bytes(std::span(&number, 1))));
    const auto began = [&](MonotonicTime) {
      Send(stream);
      connections_[0].reset();
    };
    return EventPump(*session, *stop, clock_, duration_ns).Run(AllClrEventKinds(), began, [&](const ClrEventRecord&) {
      if (came_++ == 0 && signals_) raise(SIGTERM);
      clock_.Advance(event_ns_);
      if (asked_after_ == 0 && connections_.size() == 3) asked_after_ = came_;
    });
  }

  FakeClock clock_;
  std::vector<UniqueFd> connections_;
  uint64_t event_ns_ = 0;  // that each takes
  bool signals_ = false;
  size_t came_ = 0;
  size_t asked_after_ = 0;  // so many events the runtime was asked to end
};

TEST_F(EventPumpTest, ASignalCountsBetweenTheEventsOfABlock) {
  signals_ = true;
  const EventWatchResult result = Run(Flood());
  EXPECT_GT(asked_after_, 0u);
  EXPECT_LE(asked_after_, EventPump::kEventsPerLook + 1);
  EXPECT_EQ(came_, kEvents) << "those that had come are worth having";
  EXPECT_TRUE(result.ended.ok()) << result.ended;
  EXPECT_EQ(result.not_taken, 0u);
}

TEST_F(EventPumpTest, SoDoesTheEndOfTheDuration) {
  event_ns_ = kMillisecondNs;
  EXPECT_TRUE(Run(Flood(), kSecondNs).ended.ok());
  EXPECT_GE(asked_after_, 1000u);
  EXPECT_LE(asked_after_, 1000u + EventPump::kEventsPerLook);
}

TEST_F(EventPumpTest, EventsThatComeTooLongAfterTheEndAreNotTaken) {
  signals_ = true;
  event_ns_ = 10 * kMillisecondNs;
  const EventWatchResult result = Run(Flood());
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.ended)) << result.ended;
  const size_t in_time = EventSession::kPatienceNs / event_ns_;
  EXPECT_GE(came_, in_time);
  EXPECT_LE(came_, in_time + 2 * EventPump::kEventsPerLook);
  EXPECT_EQ(came_ + result.not_taken, kEvents);
}

TEST_F(EventPumpTest, NorAreThoseThatWereHeldForTheirOrder) {
  signals_ = true;
  event_ns_ = 10 * kMillisecondNs;
  const EventWatchResult result = Run(Flood(/*sorted=*/false));
  EXPECT_TRUE(result.ended.ok()) << result.ended;
  EXPECT_LE(came_, EventSession::kPatienceNs / event_ns_ + 2 * EventPump::kEventsPerLook);
  EXPECT_EQ(came_ + result.not_taken, kEvents);
}

TEST_F(EventPumpTest, AnErrorDoesNotForgetWhatWasLost) {
  const EventWatchResult result =
      Run(Described()
              .Events({{1, 0, 7, 0, 5, false, ""}, {2, 4, 7, 0, 1, false, "short"}, {1, 0, 7, 0, 1, true, ""}})
              .Events({{1, 0, 7, 0, 1, false, ""}})
              .Block("Odd", "")
              .bytes());
  EXPECT_TRUE(absl::IsDataLoss(result.ended)) << result.ended;
  EXPECT_EQ(result.lost, 4u);
  EXPECT_EQ(result.damaged, 1u);
  EXPECT_EQ(result.unsorted, 1u);
  EXPECT_FALSE(result.broke_off) << "the process is there";
  EXPECT_EQ(came_, 3u);
}

TEST_F(EventPumpTest, AStreamWithoutItsEndBrokeOff) {
  const std::string stream = Described().Events({{1, 0, 7, 0, 5, false, ""}}).bytes();
  const EventWatchResult result = Run(stream);
  EXPECT_TRUE(result.ended.ok());
  EXPECT_TRUE(result.broke_off);
  EXPECT_EQ(came_, 1u);
}

}  // namespace
}  // namespace clrsampler
