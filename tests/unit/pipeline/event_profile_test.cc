// Events of a made-up stream, with addresses of this process.
#include "pipeline/event_profile.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Return addresses of it lie behind its first byte.
extern "C" [[gnu::noinline]] void EventProfileTestThrows() { asm volatile("nop\nnop\nnop\nnop"); }

uint64_t ReturnAddress() { return reinterpret_cast<uint64_t>(&EventProfileTestThrows) + 1; }

ClrEvent Thrown(std::string type) {
  ClrException exception;
  exception.type = std::move(type);
  return {ClrEventKind::kExceptionThrown, exception};
}

class EventProfileTest : public ::testing::Test {
 protected:
  static EventProfileOptions Options(ProfileView view, bool keep_samples = false) {
    EventProfileOptions options;
    options.view = view;
    options.stacks.pid = static_cast<uint32_t>(getpid());
    options.keep_samples = keep_samples;
    options.buffer_megabytes = 16;
    return options;
  }
  static void Add(EventProfile& profile, uint64_t time_ns, ClrEvent event, std::vector<uint64_t> stack,
                  uint64_t tid = 7) {
    ClrEventRecord record;
    record.time_ns = profile.began().ns + time_ns;
    record.tid = tid;
    record.stack = stack;
    record.event = std::move(event);
    profile.Add(record);
  }
  // "outer;inner" -> weight
  static std::vector<std::pair<std::string, uint64_t>> Stacks(const EventProfile& profile) {
    std::vector<std::pair<std::string, uint64_t>> texts;
    for (StackId id = 0; id < profile.stacks().size(); ++id) {
      std::string text;
      for (const FrameId frame : profile.stacks().stack(id).frames) {
        absl::StrAppend(&text, text.empty() ? "" : ";", profile.frames().at(frame).text);
      }
      texts.emplace_back(text, profile.stacks().count(id));
    }
    return texts;
  }
};

TEST_F(EventProfileTest, ExceptionsStandOnTheirNamedStackWithTheirType) {
  EventProfile profile(Options(ProfileView::kExceptions, /*keep_samples=*/true));
  profile.Begin(SystemClock().Now());
  Add(profile, kMillisecondNs, Thrown("Shop.OutOfStock"), {ReturnAddress()});
  Add(profile, 2 * kMillisecondNs, Thrown("Shop.OutOfStock"), {ReturnAddress()});
  Add(profile, 3 * kMillisecondNs, Thrown("System.Collections.Generic.List`1[System.Int32]"), {});
  profile.Finish({});
  EXPECT_THAT(Stacks(profile),
              UnorderedElementsAre(Pair("EventProfileTestThrows;Shop.OutOfStock", 2u),
                                   Pair("[stack not taken];System.Collections.Generic.List<int>", 1u)));
  std::vector<uint64_t> times;
  profile.samples().ForEach([&](const SampleLog::Row& row) { times.push_back(row.time_ns - profile.began().ns); });
  EXPECT_THAT(times, ElementsAre(kMillisecondNs, 2 * kMillisecondNs, 3 * kMillisecondNs));
  EXPECT_EQ(profile.account().samples_written, 3u);
  EXPECT_EQ(profile.account().events.at("counted"), 3u);
  EXPECT_EQ(profile.account().events.at("without_stack"), 1u);
  EXPECT_THAT(profile.account().notices, IsEmpty());
  ASSERT_EQ(profile.account().processes.size(), 1u);
  EXPECT_EQ(profile.account().processes[0].samples, 3u);
}

TEST_F(EventProfileTest, AWaitHasTheStackOfItsBeginning) {
  EventProfile profile(Options(ProfileView::kContention));
  profile.Begin(SystemClock().Now());
  Add(profile, kMillisecondNs, {ClrEventKind::kThreadBlockedMonitor, ClrContention{}}, {ReturnAddress()});
  ClrContention over;
  over.duration_ns = 20 * kMillisecondNs;
  Add(profile, 21 * kMillisecondNs, {ClrEventKind::kThreadAcquiredMonitor, over}, {});
  Add(profile, 90 * kMillisecondNs, {ClrEventKind::kThreadAcquiredMonitor, over}, {});
  profile.Finish({});
  EXPECT_THAT(Stacks(profile), UnorderedElementsAre(Pair("EventProfileTestThrows", 20 * kMillisecondNs),
                                                    Pair("[stack not taken]", 20 * kMillisecondNs)));
}

TEST_F(EventProfileTest, AStackThatTheRuntimeCutSaysSo) {
  EventProfile profile(Options(ProfileView::kExceptions));
  profile.Begin(SystemClock().Now());
  Add(profile, kMillisecondNs, Thrown("Shop.OutOfStock"),
      std::vector<uint64_t>(EventStacks::kMostFrames, ReturnAddress()));
  profile.Finish({});
  ASSERT_EQ(Stacks(profile).size(), 1u);
  EXPECT_THAT(Stacks(profile)[0].first, ::testing::StartsWith("[deeper than the limit of frames];EventProfileTest"));
  EXPECT_EQ(profile.account().stacks_truncated, 1u);
}

TEST_F(EventProfileTest, AnAddressWithoutCodeSaysSo) {
  EventProfile profile(Options(ProfileView::kExceptions));
  profile.Begin(SystemClock().Now());
  Add(profile, kMillisecondNs, Thrown("Shop.OutOfStock"), {0, 1, UINT64_MAX});
  profile.Finish({});
  EXPECT_THAT(Stacks(profile),
              ElementsAre(Pair("[native: no code mapped here];[native: no code mapped here];Shop.OutOfStock", 1u)));
}

TEST_F(EventProfileTest, TypesAreBounded) {
  EventProfile profile(Options(ProfileView::kExceptions));
  profile.Begin(SystemClock().Now());
  for (size_t i = 0; i <= EventProfile::kMaxTypes; ++i) Add(profile, kMillisecondNs, Thrown(absl::StrCat("T", i)), {});
  Add(profile, kMillisecondNs, Thrown("T0"), {});
  profile.Finish({});
  const auto stacks = Stacks(profile);
  EXPECT_EQ(stacks.size(), EventProfile::kMaxTypes + 1);
  EXPECT_THAT(stacks.front(), Pair("[stack not taken];T0", 2u));
  EXPECT_THAT(stacks.back(), Pair("[stack not taken];[type of a program with too many]", 1u));
}

// Each bit of its number is an address in code, or one where none is.
std::vector<uint64_t> NumberedStack(uint64_t number) {
  std::vector<uint64_t> stack;
  for (int bit = 0; bit < 18; ++bit) stack.push_back((number >> bit & 1) != 0 ? ReturnAddress() : 2);
  return stack;
}

TEST_F(EventProfileTest, StacksAreBounded) {
  EventProfile profile(Options(ProfileView::kExceptions));
  profile.Begin(SystemClock().Now());
  constexpr uint64_t kMore = 5;
  for (uint64_t i = 0; i < EventProfile::kMaxStacks + kMore; ++i) {
    Add(profile, kMillisecondNs, Thrown("T"), NumberedStack(i));
  }
  Add(profile, kMillisecondNs, Thrown("T"), NumberedStack(1));
  profile.Finish({});
  const auto stacks = Stacks(profile);
  ASSERT_EQ(stacks.size(), EventProfile::kMaxStacks + 1);
  EXPECT_EQ(stacks[1].second, 2u) << "one that is known has room";
  EXPECT_THAT(stacks.back(), Pair("[stack of a program with too many];T", kMore));
  EXPECT_EQ(profile.account().events.at("stacks_left_out"), kMore);
  EXPECT_EQ(profile.account().events.at("counted"), EventProfile::kMaxStacks + kMore + 1);
  ASSERT_EQ(profile.account().notices.size(), 1u);
  EXPECT_EQ(profile.account().notices[0].kind, "event_stacks_left_out");
}

// A stream says by itself which thread an event is of.
TEST_F(EventProfileTest, ThreadsAreBounded) {
  EventProfile profile(Options(ProfileView::kExceptions, /*keep_samples=*/true));
  profile.Begin(SystemClock().Now());
  constexpr uint64_t kMore = 5;
  for (uint64_t i = 0; i < EventProfile::kMaxThreads + kMore; ++i) {
    Add(profile, kMillisecondNs, Thrown("T"), {}, 100 + i);
  }
  Add(profile, kMillisecondNs, Thrown("T"), {}, 100);
  profile.Finish({});
  const auto& threads = profile.samples().threads();
  ASSERT_EQ(threads.size(), EventProfile::kMaxThreads + 1);
  EXPECT_EQ(threads.back().tid, 0u);
  EXPECT_EQ(threads.back().name, "[thread of a program with too many]");
  EXPECT_EQ(profile.account().events.at("threads_left_out"), kMore);
  ASSERT_EQ(profile.account().notices.size(), 1u);
  EXPECT_EQ(profile.account().notices[0].kind, "event_threads_left_out");
}

TEST_F(EventProfileTest, WhatIsMissingIsSaid) {
  EventProfile profile(Options(ProfileView::kExceptions));
  profile.Begin(SystemClock().Now());
  profile.Finish({.lost = 5,
                  .damaged = 2,
                  .unsorted = 1,
                  .not_taken = 3,
                  .broke_off = true,
                  .ended = absl::DataLossError("nonsense")});
  EXPECT_THAT(profile.account().events,
              UnorderedElementsAre(Pair("counted", 0u), Pair("lost", 5u), Pair("damaged", 2u), Pair("unsorted", 1u),
                                   Pair("not_taken", 3u), Pair("without_stack", 0u), Pair("stacks_left_out", 0u),
                                   Pair("threads_left_out", 0u), Pair("broke_off", 1u), Pair("failed", 1u)));
  std::vector<std::string> kinds;
  for (const Notice& notice : profile.account().notices) kinds.push_back(notice.kind);
  EXPECT_THAT(kinds, ElementsAre("events_lost", "events_damaged", "events_not_taken", "events_broke_off"));
}

}  // namespace
}  // namespace clrsampler
