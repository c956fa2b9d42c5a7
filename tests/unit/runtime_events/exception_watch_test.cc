#include "runtime_events/exception_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_join.h"
#include "process/target_files.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr ProcessKey kKey{41, 7};
constexpr uint64_t kOutOfStock = 0x7f0000001000, kTimeout = 0x7f0000002000, kForeign = 0x7f0000003000;

class ExceptionWatchTest : public testing::Test {
 protected:
  ExceptionWatchTest()
      : watch_({.on_exception =
                    [this](const ObservedException& exception) {
                      EXPECT_EQ(exception.process, kKey);
                      std::vector<std::string> texts;
                      for (const FrameId frame : exception.frames) texts.push_back(frames_.at(frame).text);
                      seen_.push_back(absl::StrJoin(texts, ";"));
                      times_.push_back(exception.time.ns);
                    },
                .type_frame = [this](const Process&, uint64_t table) -> std::optional<FrameId> {
                  if (table == kForeign) return std::nullopt;
                  return Type(table == kOutOfStock ? "OutOfStock" : "Timeout");
                }},
               frames_) {}

  FrameId Type(const char* text) {
    return frames_.Intern(Frame{FrameKind::kType, NameSource::kRuntimeMemory, text, "", ""});
  }
  FrameId Managed(const char* text) {
    return frames_.Intern(Frame{FrameKind::kJit, NameSource::kRuntimeMemory, text, "Shop", ""});
  }
  FrameId Native(const char* text) {
    return frames_.Intern(Frame{FrameKind::kNative, NameSource::kElfSymbols, text, "libcoreclr.so", ""});
  }
  // A record as it leaves the ring, and its turn.
  void Throw(uint64_t time, uint32_t tid, uint64_t type, uint32_t flags = WIRE_EXCEPTION_HAS_STACK,
             uint64_t not_sent = 0) {
    wire_exception event{};
    event.header = {sizeof event, WIRE_EXCEPTION, 0, time};
    event.tid = tid;
    event.type = type;
    event.flags = flags;
    watch_.Handle(kKey, watch_.Arrived(process_, event, not_sent));
  }
  void Stack(uint64_t time, uint32_t tid, std::vector<FrameId> frames) {
    wire_cpu_sample sample{};
    sample.header = {sizeof sample, WIRE_EXCEPTION_STACK, 0, time};
    sample.tid = tid;
    watch_.HandleStack(kKey, sample, frames);
  }

  FrameTable frames_;
  const Process process_{kKey, TargetFiles("/nonexistent", kKey.tgid)};
  std::vector<std::string> seen_;
  std::vector<uint64_t> times_;
  ExceptionWatch watch_;
};

TEST_F(ExceptionWatchTest, AnExceptionHasTheStackOfTheMethodThatThrew) {
  Throw(10, 1, kOutOfStock);
  Throw(11, 2, kTimeout);
  EXPECT_THAT(seen_, IsEmpty());
  Stack(11, 2, {Managed("Main"), Managed("Ship")});
  Stack(10, 1, {Managed("Main"), Managed("Take"), Native("IL_Throw"), Native("RaiseException")});
  EXPECT_THAT(seen_, ElementsAre("Main;Ship;Timeout", "Main;Take;OutOfStock"));
  EXPECT_THAT(times_, ElementsAre(11, 10));
  EXPECT_EQ(watch_.ThrownOf(kKey), 2u);
  EXPECT_EQ(watch_.FactorOf(kKey), 1);
}

TEST_F(ExceptionWatchTest, WhatLooksForHandlersIsNotOnTheStack) {
  const FrameId looks = frames_.Intern(Frame{FrameKind::kR2r, NameSource::kR2rImage, "System.Runtime.EH.DispatchEx",
                                             "System.Private.CoreLib", "", "System.Runtime.EH::DispatchEx(ref)"});
  Throw(10, 1, kOutOfStock);
  Stack(10, 1, {Managed("Take"), looks, Native("SfiInit")});
  EXPECT_THAT(seen_, ElementsAre("Take;OutOfStock"));
}

TEST_F(ExceptionWatchTest, AStackOfNativeCodeAloneIsWhole) {
  Throw(10, 1, kOutOfStock);
  Stack(10, 1, {Native("start_thread"), Native("ThreadNative")});
  EXPECT_THAT(seen_, ElementsAre("start_thread;ThreadNative;OutOfStock"));
}

TEST_F(ExceptionWatchTest, WithoutAStackAnExceptionCountsAllTheSame) {
  Throw(10, 1, kOutOfStock, 0);
  Throw(11, 1, kTimeout);  // its stack never comes
  Throw(12, 1, kTimeout);
  Stack(11, 1, {Managed("Late")});  // of the one before
  watch_.GiveWaiting(kKey);
  EXPECT_THAT(seen_,
              ElementsAre("[stack not taken];OutOfStock", "[stack not taken];Timeout", "[stack not taken];Timeout"));
  EXPECT_EQ(watch_.counters().without_stack, 3u);
  EXPECT_EQ(watch_.counters().thrown, 3u);
}

TEST_F(ExceptionWatchTest, AnExceptionThatIsThrownAgainIsNoNewOne) {
  Throw(10, 1, kOutOfStock);
  Stack(10, 1, {Managed("Take")});
  Throw(11, 1, kOutOfStock, WIRE_EXCEPTION_RETHROWN);
  Throw(12, 1, kOutOfStock, WIRE_EXCEPTION_RETHROWN);
  EXPECT_THAT(seen_, ElementsAre("Take;OutOfStock"));
  EXPECT_THAT(watch_.RethrownOf(kKey), UnorderedElementsAre(Pair(Type("OutOfStock"), 2)));
  EXPECT_EQ(watch_.ThrownOf(kKey), 1u);
  EXPECT_EQ(watch_.HitsOf(kKey), 3u);
  EXPECT_EQ(watch_.counters().rethrown, 2u);
}

TEST_F(ExceptionWatchTest, TypesThatAreNoneOrWereNotReadAreSaid) {
  Throw(10, 1, 0, 0);
  Throw(11, 1, kForeign, 0);
  EXPECT_THAT(seen_, ElementsAre("[stack not taken];[type not seen]", "[stack not taken];[type not seen]"));
  EXPECT_EQ(watch_.counters().types_not_seen, 2u);
  EXPECT_EQ(watch_.counters().types_not_named, 1u);
}

TEST_F(ExceptionWatchTest, WhatWasNotSentIsTold) {
  Throw(10, 1, kOutOfStock, 0);
  Throw(11, 1, kOutOfStock, WIRE_EXCEPTION_RETHROWN);
  Throw(12, 1, kOutOfStock, 0, /*not_sent=*/3);
  EXPECT_EQ(watch_.FactorOf(kKey), 2);
  EXPECT_EQ(watch_.HitsOf(kKey), 6u);
  EXPECT_EQ(watch_.counters().not_sent, 3u);
}

TEST_F(ExceptionWatchTest, AProcessThatIsForgottenBeginsAnew) {
  Throw(10, 1, kOutOfStock);
  EXPECT_TRUE(watch_.Knows(kKey));
  watch_.End(kKey);
  EXPECT_FALSE(watch_.Knows(kKey));
  Stack(10, 1, {Managed("Take")});
  EXPECT_THAT(seen_, IsEmpty());
  EXPECT_EQ(watch_.FactorOf(kKey), 1);
}

}  // namespace
}  // namespace clrsampler
