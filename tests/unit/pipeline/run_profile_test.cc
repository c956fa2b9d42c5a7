#include "pipeline/run_profile.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ProcessKey kShop{4711, 1};

std::vector<std::string> Texts(const RunProfile& profile) {
  std::vector<std::string> texts;
  for (const EventLog::Entry& entry : profile.events().entries()) {
    texts.push_back(absl::StrCat(ModelEventKindText(entry.kind), " ", entry.began.ns, "+", entry.duration_ns, " of ",
                                 entry.thread.pid, "/", entry.thread.tid, " ", entry.name, " (", entry.detail, ")"));
  }
  return texts;
}

ObservedPause Collection() {
  ObservedPause observed{.process = kShop};
  observed.pause.requested = {1'000};
  observed.pause.stopped = {3'000};
  observed.pause.resume_begun = {9'000};
  observed.pause.kind = PauseKind::kBlockingGc;
  observed.pause.generation = 2;
  observed.culprits.push_back({.method = "Shop.Cart.Sum", .tid = 12, .delay_ns = 2'000'000});
  return observed;
}

void AddAll(RunProfile& profile) {
  profile.AddPause(Collection());
  ObservedPause other{.process = kShop};
  other.pause.requested = {20'000};
  other.pause.resume_begun = {20'500};
  other.pause.reason = 5;  // of the runtime's SUSPEND_REASON: ReJIT
  profile.AddPause(other);
  profile.AddCollection(kShop, {.time = {30'000}, .generation = 2, .reason = 1, .background = true});
  profile.AddCollection(kShop, {.time = {9'000}, .generation = 2});
  NamedCompilation compilation{.tgid = 4711, .method = "Shop.Cart.Sum", .tier = "Optimized"};
  compilation.compilation.began = {40'000};
  compilation.compilation.done = {41'000};
  compilation.compilation.tid = 13;
  profile.AddCompilation(kShop, compilation);
}

TEST(RunProfileTest, WhatTheRuntimeDidIsKeptWithItsTimes) {
  FrameTable frames;
  RunProfile profile({.keep_samples = true}, frames);
  AddAll(profile);
  EXPECT_THAT(Texts(profile), ElementsAre("pause 1000+8000 of 4711/0 blocking gen2 (Shop.Cart.Sum ran on for 2ms)",
                                          absl::StrCat("pause 20000+500 of 4711/0 ", SuspendReasonText(5), " ()"),
                                          "collection 30000+0 of 4711/0 background gen2 ended (induced)",
                                          "compilation 40000+1000 of 4711/13 Shop.Cart.Sum (Optimized)"));
}

TEST(RunProfileTest, CountsAloneNeedNoEvents) {
  FrameTable frames;
  RunProfile profile({}, frames);
  AddAll(profile);
  EXPECT_THAT(Texts(profile), IsEmpty());
}

TEST(RunProfileTest, WaitsBeyondALimitCountAndHaveNoTime) {
  FrameTable frames;
  RunProfile profile({.view = RecordView::kOffCpu, .keep_samples = true, .max_kept = 2}, frames);
  WaitWatch::Threads threads;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) {
      ObservedWait wait{.process = kShop, .tid = 7, .ended = {9 * kMillisecondNs}, .wait_ns = 2 * kMillisecondNs};
      profile.AddWait(wait);
    }
    threads[7].blocked_ns = 6 * kMillisecondNs;
    profile.SumUpThreads(kShop, threads);
  }
  std::vector<std::string> rows;
  profile.samples().ForEach([&](const SampleLog::Row& row) {
    rows.push_back(
        absl::StrCat(row.time_ns == kNoTime ? "-" : absl::StrCat(row.time_ns / kMillisecondNs), " ", row.weight));
  });
  EXPECT_THAT(rows, ElementsAre("7 2000", "7 2000", "- 2000", "7 2000", "7 2000", "- 2000"));
}

}  // namespace
}  // namespace clrsampler
