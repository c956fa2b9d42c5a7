// Windows in, answers out: what was kept is told by time, process, container, thread and view, also after roll-ups.
#include "store/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "os/clock.h"
#include "unit/store/made_up_host.h"
#include "unit/store/store_folder.h"

namespace clrsampler {
namespace {

using test_support::MadeUpHost;
using test_support::StoreFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kHour = 3600 * kSecondNs, kDay = 24 * kHour;
constexpr uint64_t kBegin = 1'790'000'000 * kSecondNs / kHour * kHour;  // of an hour

// Folded stacks and their weights: what a profile says, whatever its numbers are.
std::map<std::string, uint64_t> Stacks(const ProfileModel& model) {
  std::map<std::string, uint64_t> stacks;
  for (size_t i = 0; i < model.samples.size(); ++i) {
    const ModelThread& thread = model.threads[model.samples.thread[i]];
    std::string text =
        absl::StrCat(thread.pid, "/", thread.tid, "/", model.text(thread.comm), "/", model.text(thread.name), "/",
                     model.text(thread.container_id), "/", SampleStateText(model.samples.state_of(i)));
    for (NodeIndex node = model.samples.stack[i]; node != kRootNode; node = model.nodes[node].parent) {
      const ModelFrame& frame = model.frame_of(node);
      absl::StrAppend(&text, ";", model.text(frame.name), "|", ModelFrameKindText(frame.kind), "|",
                      model.text(frame.source), "|", model.text(frame.module), "|", model.text(frame.module_path), "|",
                      model.text(frame.tier));
    }
    stacks[text] += model.samples.weight_of(i);
  }
  return stacks;
}

void Add(std::map<std::string, uint64_t>& sum, const std::map<std::string, uint64_t>& more) {
  for (const auto& [stack, weight] : more) sum[stack] += weight;
}

HistorySelection All() { return {.from_unix_ns = 0, .to_unix_ns = ~uint64_t{0}}; }

class HistoryTest : public ::testing::Test {
 protected:
  std::vector<Window> Fill(History& history, size_t windows, uint64_t begin = kBegin, size_t samples = 60) {
    MadeUpHost host({.samples = samples, .processes = 12, .methods = 300, .pauses = 6, .compilations = 4}, begin);
    std::vector<Window> kept;
    for (size_t i = 0; i < windows; ++i) {
      kept.push_back(host.Next());
      const absl::Status appended = history.Append(kept.back());
      EXPECT_TRUE(appended.ok()) << appended;
    }
    return kept;
  }
  static void Maintain(History& history, uint64_t now) {
    for (int i = 0; i < 100'000; ++i) {
      const absl::StatusOr<bool> more = history.Maintain(now);
      ASSERT_TRUE(more.ok()) << more.status();
      if (!*more) return;
    }
    FAIL() << "there is always more to do";
  }

  StoreFolder folder_;
};

TEST_F(HistoryTest, SaysWhatTheDictionaryTakes) {
  const auto history = folder_.Open();
  EXPECT_EQ(history->Span()->dictionary_bytes, 0u);
  Fill(*history, 1);
  const uint64_t first = history->Span()->dictionary_bytes;
  EXPECT_GT(first, 100u);
  Fill(*history, 1, kBegin + 60 * kSecondNs);
  EXPECT_LT(history->Span()->dictionary_bytes, 2 * first) << "names that are known already take nothing";
}

TEST_F(HistoryTest, GivesBackTheStacksOfEachView) {
  const auto history = folder_.Open();
  const std::vector<Window> windows = Fill(*history, 7);
  std::map<std::string, uint64_t> cpu, jit, suspend, pause, allocations, waits;
  for (const Window& window : windows) {
    Add(cpu, Stacks(window.cpu));
    Add(jit, Stacks(window.jit));
    Add(suspend, Stacks(window.suspend_delay));
    Add(allocations, Stacks(window.allocations));
    Add(waits, Stacks(window.waits));
  }
  for (const auto& [stack, weight] : cpu) {
    if (stack.find("/paused") != std::string::npos) pause[stack] = weight;
  }
  ASSERT_FALSE(pause.empty());
  for (const auto& [view, expected] :
       {std::pair(ProfileView::kCpu, &cpu), std::pair(ProfileView::kJit, &jit),
        std::pair(ProfileView::kSuspendDelay, &suspend), std::pair(ProfileView::kPause, &pause),
        std::pair(ProfileView::kAllocations, &allocations), std::pair(ProfileView::kOffCpu, &waits)}) {
    const absl::StatusOr<ProfileModel> model = history->Profile(All(), view);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_TRUE(Stacks(*model) == *expected) << ProfileViewText(view);
    EXPECT_EQ(model->meta.view, view);
    EXPECT_EQ(model->meta.unit, view == ProfileView::kAllocations ? WeightUnit::kBytes : WeightUnit::kNanoseconds);
    EXPECT_EQ(model->meta.start_unix_ns, windows.front().begin_unix_ns);
    EXPECT_EQ(model->meta.duration_ns, 7 * 10 * kSecondNs);
    EXPECT_TRUE(model->meta.whole_host);
  }
}

TEST_F(HistoryTest, TheTimeInWhichNothingWasKeptIsNoPartOfWhatWasRecorded) {
  const auto history = folder_.Open();
  MadeUpHost host({});
  ASSERT_TRUE(history->Append(host.Next()).ok());
  host.SkipTo(host.now_unix_ns() + 80 * kSecondNs);
  ASSERT_TRUE(history->Append(host.Next()).ok());
  ASSERT_TRUE(history->Append(host.Next()).ok());
  const absl::StatusOr<ProfileModel> model = history->Profile(All(), ProfileView::kCpu);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->meta.duration_ns, 110 * kSecondNs);
  EXPECT_EQ(model->meta.recorded_ns(), 30 * kSecondNs);
}

TEST_F(HistoryTest, SelectsByTimeProcessContainerAndThread) {
  const auto history = folder_.Open();
  const std::vector<Window> windows = Fill(*history, 5);
  const auto expected = [&](auto fits) {
    std::map<std::string, uint64_t> sum;
    for (const Window& window : windows) {
      if (window.begin_unix_ns < windows[1].begin_unix_ns || window.begin_unix_ns >= windows[4].begin_unix_ns) continue;
      for (const auto& [stack, weight] : Stacks(window.cpu)) {
        if (fits(stack)) sum[stack] += weight;
      }
    }
    return sum;
  };
  const auto profile = [&](HistorySelection selection) {
    selection.from_unix_ns = windows[1].begin_unix_ns;
    selection.to_unix_ns = windows[4].begin_unix_ns;
    const absl::StatusOr<ProfileModel> model = history->Profile(selection, ProfileView::kCpu);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? Stacks(*model) : std::map<std::string, uint64_t>();
  };
  const auto has = [](const std::string& part) {
    return [part](const std::string& stack) { return stack.find(part) != std::string::npos; };
  };
  EXPECT_TRUE(profile({}) == expected([](const std::string&) { return true; }));
  const auto of_1001 = [](const std::string& stack) { return stack.starts_with("1001/"); };
  const auto of_pid = expected(of_1001);
  EXPECT_FALSE(of_pid.empty());
  EXPECT_TRUE(profile({.pid = 1001}) == of_pid);
  EXPECT_TRUE(profile({.comm = "Shop.Service2"}) == expected(has("/Shop.Service2/")));
  EXPECT_TRUE(profile({.container = "shop-1-1"}) == of_pid);
  EXPECT_TRUE(profile({.container = "1c0ffee00c0ffee00c0ffee00c0ffee00"}) == of_pid);
  EXPECT_TRUE(profile({.container = "1c0ffee00c0f"}) == of_pid) << "the first twelve letters";
  EXPECT_TRUE(profile({.container = "1c0ffee00c0"}).empty()) << "eleven may be any container's";
  EXPECT_TRUE(profile({.thread = "main"}) == expected(has("/main/")));
  EXPECT_TRUE(profile({.thread = "100101"}) == expected(has("/100101/")));
  EXPECT_TRUE(profile({.pid = 1001, .comm = "Shop.Service1", .container = "shop-1-1", .thread = "main"}) ==
              expected([&](const std::string& stack) { return of_1001(stack) && has("/main/")(stack); }));
  EXPECT_TRUE(profile({.pid = 1001, .comm = "Shop.Service2"}).empty());
}

struct Sums {
  std::map<std::string, uint64_t> cpu, jit, suspend, allocations, waits;
  uint64_t pauses, pause_ns, suspend_ns;
  std::map<std::string, uint64_t> by_kind;
  size_t listed_pauses;
  uint64_t compilations, compile_ns;
  std::map<std::string, std::vector<uint64_t>> methods;
  uint64_t covered_ns, taken;
  std::map<std::string, uint64_t> lost;

  friend bool operator==(const Sums&, const Sums&) = default;
};

Sums SumsOf(History& history) {
  Sums sums;
  const HistorySelection all = All();
  sums.cpu = Stacks(*history.Profile(all, ProfileView::kCpu));
  sums.jit = Stacks(*history.Profile(all, ProfileView::kJit));
  sums.suspend = Stacks(*history.Profile(all, ProfileView::kSuspendDelay));
  sums.allocations = Stacks(*history.Profile(all, ProfileView::kAllocations));
  sums.waits = Stacks(*history.Profile(all, ProfileView::kOffCpu));
  const HistoryPauses pauses = *history.Pauses(all, 100'000);
  sums.pauses = pauses.count;
  sums.pause_ns = pauses.pause_ns;
  sums.suspend_ns = pauses.suspend_ns;
  sums.by_kind = pauses.count_by_kind;
  sums.listed_pauses = pauses.longest.size();
  const HistoryMethods methods = *history.Methods(all, 100'000);
  sums.compilations = methods.count;
  sums.compile_ns = methods.total_ns;
  for (const HistoryMethod& method : methods.methods) {
    sums.methods[absl::StrCat(method.pid, method.comm, method.container, method.method.method, method.method.tier)] = {
        method.method.count, method.method.total_ns, method.method.longest_ns, method.method.bytes};
  }
  const HistoryHealth health = *history.Health(0, ~uint64_t{0});
  sums.covered_ns = health.covered_ns;
  sums.taken = health.samples_taken;
  sums.lost = health.lost;
  return sums;
}

TEST_F(HistoryTest, RollUpsKeepAllSums) {
  const auto history = folder_.Open();
  const std::vector<Window> windows = Fill(*history, 400, kBegin, 10);
  const Sums before = SumsOf(*history);
  EXPECT_EQ(before.taken, 400 * 10u);
  EXPECT_EQ(before.covered_ns, 400 * 10 * kSecondNs);
  EXPECT_EQ(before.pauses, 400 * 6u);
  EXPECT_EQ(before.compilations, 400 * 4u);
  EXPECT_EQ(history->Span()->windows, 400u);

  Maintain(*history, windows.back().end_unix_ns + kDay);
  HistorySpan span = *history->Span();
  EXPECT_EQ(span.windows, 4u) << "of the minute that is not over for a day";
  EXPECT_EQ(span.minutes, 66u);
  EXPECT_TRUE(SumsOf(*history) == before);

  Maintain(*history, windows.back().end_unix_ns + 8 * kDay);
  span = *history->Span();
  EXPECT_EQ(span.windows + span.minutes, 0u);
  EXPECT_EQ(span.hours, 2u);
  EXPECT_EQ(span.oldest_unix_ns, windows.front().begin_unix_ns);
  EXPECT_EQ(span.newest_unix_ns, windows.back().end_unix_ns);
  const Sums after = SumsOf(*history);
  EXPECT_TRUE(after.cpu == before.cpu && after.jit == before.jit && after.suspend == before.suspend);
  EXPECT_TRUE(after.allocations == before.allocations);
  EXPECT_TRUE(after.waits == before.waits);
  EXPECT_EQ(after.pauses, before.pauses);
  EXPECT_EQ(after.pause_ns, before.pause_ns);
  EXPECT_EQ(after.by_kind, before.by_kind);
  EXPECT_TRUE(after.methods == before.methods);
  EXPECT_EQ(after.covered_ns, before.covered_ns);
  EXPECT_EQ(after.lost, before.lost);
  EXPECT_LT(after.listed_pauses, before.listed_pauses) << "an hour lists the longest only";
}

TEST_F(HistoryTest, TheLimitOfBytesHoldsAndTheOldestGoesFirst) {
  constexpr uint64_t kLimit = 1 << 20;
  const auto history = folder_.Open({.max_bytes = kLimit});
  MadeUpHost host({.samples = 100, .processes = 12, .methods = 2000}, kBegin);
  uint64_t most = 0;
  for (int i = 0; i < 250; ++i) {
    ASSERT_TRUE(history->Append(host.Next()).ok());
    Maintain(*history, host.now_unix_ns());
    most = std::max(most, folder_.bytes());
  }
  EXPECT_LE(most, kLimit * 103 / 100);
  const HistorySpan span = *history->Span();
  EXPECT_EQ(span.bytes, folder_.bytes());
  EXPECT_GE(span.bytes, kLimit * 70 / 100) << "what is kept uses the room";
  EXPECT_EQ(span.newest_unix_ns, host.now_unix_ns());
  EXPECT_LT(span.windows, 250u);
  EXPECT_GT(span.windows, 50u);
  EXPECT_EQ(span.newest_unix_ns - span.oldest_unix_ns, span.windows * 10 * kSecondNs) << "no gap";
  EXPECT_EQ(history->Profile(All(), ProfileView::kCpu)->total_weight, span.windows * 100 * 52'631'578);
}

TEST_F(HistoryTest, ASmallerLimitShrinksTheFile) {
  uint64_t before = 0;
  {
    const auto history = folder_.Open();
    Fill(*history, 250, kBegin, 200);
    before = folder_.bytes();
  }
  constexpr uint64_t kLimit = 1 << 20;
  ASSERT_GT(before, 2 * kLimit);
  const auto history = folder_.Open({.max_bytes = kLimit});
  Maintain(*history, kBegin + 2500 * kSecondNs);
  EXPECT_LE(folder_.bytes(), kLimit);
  EXPECT_GT(history->Span()->windows, 10u);
}

TEST_F(HistoryTest, TheLimitOfAgeHolds) {
  const auto history = folder_.Open({.max_age_ns = 2 * kHour, .windows_ns = kHour / 2, .minutes_ns = kHour});
  MadeUpHost host({.samples = 10, .processes = 3, .pauses = 1, .compilations = 1}, kBegin);
  for (int i = 0; i < 4 * 360; ++i) {
    ASSERT_TRUE(history->Append(host.Next()).ok());
    if (i % 60 == 0) Maintain(*history, host.now_unix_ns());
  }
  Maintain(*history, host.now_unix_ns());
  const HistorySpan span = *history->Span();
  EXPECT_GE(span.oldest_unix_ns + 3 * kHour, host.now_unix_ns()) << "an hour that is not too old as a whole is kept";
  EXPECT_LE(span.oldest_unix_ns + 2 * kHour, host.now_unix_ns());
  EXPECT_GT(span.windows, 100u);
  EXPECT_GT(span.minutes, 10u);
  EXPECT_GT(span.hours, 0u);
  const uint64_t covered = host.now_unix_ns() - span.oldest_unix_ns;
  EXPECT_EQ(history->Health(0, ~uint64_t{0})->covered_ns, covered);
}

TEST_F(HistoryTest, ATimelineHasTheTimeOfEachProcess) {
  const auto history = folder_.Open();
  const std::vector<Window> windows = Fill(*history, 60);
  const HistorySelection ten_minutes = {.from_unix_ns = kBegin, .to_unix_ns = kBegin + 600 * kSecondNs};
  const absl::StatusOr<Timeline> line = history->Timeline(ten_minutes, TimelineBy::kProcess, 30, 100);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->begin_unix_ns, kBegin);
  EXPECT_EQ(line->step_ns, 20 * kSecondNs);
  EXPECT_EQ(line->steps, 30u);
  EXPECT_EQ(std::count_if(line->covered_ns.begin(), line->covered_ns.end(), [](uint64_t ns) { return ns > 0; }), 30);
  ASSERT_THAT(line->series, SizeIs(12));
  uint64_t pauses = 0, compile = 0, expected_pauses = 0, expected_compile = 0, allocated = 0, expected_allocated = 0;
  uint64_t waited = 0;
  WaitTimes states, expected_states;
  double cpu = 0;
  for (const TimelineSeries& series : line->series) {
    EXPECT_TRUE(series.dotnet);
    EXPECT_EQ(series.label, absl::StrCat("Shop.Service", (series.pid - 1000) % 5));
    pauses = std::accumulate(series.pause_ns.begin(), series.pause_ns.end(), pauses);
    compile = std::accumulate(series.compile_ns.begin(), series.compile_ns.end(), compile);
    allocated = std::accumulate(series.allocated_bytes.begin(), series.allocated_bytes.end(), allocated);
    waited = std::accumulate(series.wait_ns.begin(), series.wait_ns.end(), waited);
    cpu = std::accumulate(series.cores.begin(), series.cores.end(), cpu);
  }
  ASSERT_EQ(line->states.size(), 30u);
  for (const WaitTimes& step : line->states) AddTimes(states, step);
  for (const Window& window : windows) {
    for (const WindowProcess& process : window.processes) {
      expected_pauses += process.pause_ns;
      expected_compile += process.compile_ns;
      expected_allocated += process.allocated_bytes;
      AddTimes(expected_states, process.waits);
    }
  }
  EXPECT_EQ(pauses, expected_pauses);
  EXPECT_EQ(compile, expected_compile);
  EXPECT_EQ(allocated, expected_allocated);
  EXPECT_GT(allocated, 0u);
  EXPECT_EQ(states, expected_states);
  EXPECT_EQ(waited, expected_states.waited_ns());
  EXPECT_GT(waited, 0u);
  EXPECT_NEAR(cpu * 20, 60 * 60 * 0.052631578, 1e-6);
  EXPECT_EQ(line->series[0].pid, 1000u) << "the busiest first";

  const absl::StatusOr<Timeline> few = history->Timeline(ten_minutes, TimelineBy::kProcess, 30, 4);
  ASSERT_THAT(few->series, SizeIs(4));
  EXPECT_EQ(few->series[3].label, "[others]");
  double others = 0;
  for (const TimelineSeries& series : few->series)
    others = std::accumulate(series.cores.begin(), series.cores.end(), others);
  EXPECT_NEAR(others, cpu, 1e-9);

  const absl::StatusOr<Timeline> containers = history->Timeline(ten_minutes, TimelineBy::kContainer, 30, 100);
  ASSERT_THAT(containers->series, SizeIs(9)) << "eight, and what is in none";
  EXPECT_EQ(std::count_if(containers->series.begin(), containers->series.end(),
                          [](const TimelineSeries& series) { return series.label.empty() && series.pid == 0; }),
            1);

  HistorySelection main = ten_minutes;
  main.thread = "main";
  uint64_t of_main = 0;
  for (const Window& window : windows) {
    for (const auto& [stack, weight] : Stacks(window.cpu)) {
      if (stack.find("/main/") != std::string::npos) of_main += weight;
    }
  }
  double main_cpu = 0;
  const absl::StatusOr<Timeline> main_line = history->Timeline(main, TimelineBy::kProcess, 30, 100);
  for (const TimelineSeries& series : main_line->series) {
    main_cpu = std::accumulate(series.cores.begin(), series.cores.end(), main_cpu);
  }
  EXPECT_NEAR(main_cpu * 20, static_cast<double>(of_main) / 1e9, 1e-6);
}

TEST_F(HistoryTest, ASumHasTheWholeOfTheLastWindow) {
  const auto history = folder_.Open();
  const std::vector<Window> windows = Fill(*history, 6, kBegin + 3 * kSecondNs);
  // The last one begins within the range and ends behind it.
  const HistorySelection range = {.from_unix_ns = kBegin, .to_unix_ns = kBegin + 54 * kSecondNs};
  const absl::StatusOr<Timeline> line = history->Timeline(range, TimelineBy::kProcess, 1, 100);
  ASSERT_TRUE(line.ok()) << line.status();
  ASSERT_EQ(line->steps, 1u);
  uint64_t pauses = 0, expected = 0;
  double cores = 0;
  for (const TimelineSeries& series : line->series) {
    pauses += series.pause_ns[0];
    cores += series.cores[0];
  }
  for (const Window& window : windows) {
    for (const WindowProcess& process : window.processes) expected += process.pause_ns;
  }
  EXPECT_EQ(pauses, expected);
  EXPECT_EQ(pauses, history->Pauses(range, 0)->pause_ns) << "as the other answers";
  EXPECT_NEAR(cores * 60, 6 * 60 * 0.052631578, 1e-6);
}

TEST_F(HistoryTest, LanesHaveTheTimeOfEachThreadAndStayAfterARestart) {
  std::vector<Window> windows;
  {
    const auto history = folder_.Open();
    windows = Fill(*history, 60);
  }
  const auto history = folder_.Open();
  const HistorySelection ten_minutes = {.from_unix_ns = kBegin, .to_unix_ns = kBegin + 600 * kSecondNs};
  const absl::StatusOr<HistoryLanes> lanes = history->Lanes(ten_minutes, {.max_steps = 60, .max_threads = 10});
  ASSERT_TRUE(lanes.ok()) << lanes.status();
  EXPECT_EQ(lanes->steps, 60u);
  EXPECT_EQ(std::count(lanes->covered.begin(), lanes->covered.end(), true), 60);
  ASSERT_THAT(lanes->threads, SizeIs(11));
  EXPECT_GT(lanes->others, 0u);
  uint64_t expected = 0, listed = 0, total = 0;
  for (const Window& window : windows) expected += window.cpu.total_weight + window.waits.total_weight;
  for (const HistoryLanes::Lane& lane : lanes->lanes) {
    for (const auto& [step, ns] : lane.values) listed += ns;
  }
  for (const HistoryLanes::Thread& thread : lanes->threads) total += thread.total_ns;
  EXPECT_EQ(listed, expected);
  EXPECT_EQ(total, expected);
  for (size_t i = 1; i < 10; ++i) EXPECT_GE(lanes->threads[i - 1].total_ns, lanes->threads[i].total_ns);

  HistorySelection one = ten_minutes;
  one.pid = lanes->threads[0].pid;
  one.thread = absl::StrCat(lanes->threads[0].tid);
  const absl::StatusOr<HistoryLanes> own = history->Lanes(one, {.max_steps = 1, .max_threads = 10});
  ASSERT_THAT(own->threads, SizeIs(1));
  EXPECT_EQ(own->threads[0].total_ns, lanes->threads[0].total_ns);
  EXPECT_EQ(
      history->Lanes(ten_minutes, {.method = "no such method", .max_steps = 1, .max_threads = 10})->threads.size(), 0u);
  EXPECT_EQ(history->Lanes(ten_minutes, {.max_steps = 10'000, .max_threads = 100}).status().code(),
            absl::StatusCode::kOk)
      << "60 steps are all that there are";
}

TEST_F(HistoryTest, ALineIsOneProcessAcrossRestarts) {
  uint64_t now = kBegin;
  const auto append = [&](History& history, uint64_t started_boot_ns) {
    Window window = MadeUpHost({.samples = 10, .processes = 1, .pauses = 0, .compilations = 0}, now).Next();
    window.processes[0].started_boot_ns = started_boot_ns;
    ASSERT_TRUE(history.Append(window).ok());
    now = window.end_unix_ns;
  };
  append(*folder_.Open(), 7 * kSecondNs);
  const auto history = folder_.Open();
  append(*history, 7 * kSecondNs);
  EXPECT_THAT(history->Timeline(All(), TimelineBy::kProcess, 10, 10)->series, SizeIs(1));
  append(*history, 9 * kSecondNs);  // its number has another owner now
  EXPECT_THAT(history->Timeline(All(), TimelineBy::kProcess, 10, 10)->series, SizeIs(2));
}

TEST_F(HistoryTest, ATimelineShowsWhereNothingIsKnown) {
  const auto history = folder_.Open();
  Fill(*history, 6, kBegin + 60 * kSecondNs);
  const absl::StatusOr<Timeline> line = history->Timeline(
      {.from_unix_ns = kBegin, .to_unix_ns = kBegin + 180 * kSecondNs}, TimelineBy::kProcess, 100, 100);
  ASSERT_EQ(line->steps, 18u);
  for (size_t i = 0; i < 18; ++i) EXPECT_EQ(line->covered_ns[i] > 0, i >= 6 && i < 12) << i;
  // All time: what there is.
  EXPECT_EQ(history->Timeline(All(), TimelineBy::kProcess, 100, 100)->steps, 6u);
}

TEST_F(HistoryTest, PausesAreTheLongestAndTheSumsOfAll) {
  const auto history = folder_.Open();
  const std::vector<Window> windows = Fill(*history, 20);
  const HistoryPauses pauses = *history->Pauses(All(), 7);
  std::vector<uint64_t> expected;
  uint64_t of_main_of_1001 = 0;
  for (const Window& window : windows) {
    for (const WindowPause& pause : window.pauses) {
      expected.push_back(pause.pause_ns);
      of_main_of_1001 += pause.tid == 100'100 ? 1 : 0;
    }
  }
  std::sort(expected.rbegin(), expected.rend());
  EXPECT_EQ(pauses.count, expected.size());
  EXPECT_EQ(pauses.pause_ns, std::accumulate(expected.begin(), expected.end(), uint64_t{0}));
  ASSERT_THAT(pauses.longest, SizeIs(7));
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(pauses.longest[i].pause.pause_ns, expected[i]);
  EXPECT_EQ(pauses.longest[0].pause.reason, "gc");
  EXPECT_EQ(pauses.longest[0].pause.thread_name, "main");
  EXPECT_EQ(pauses.longest[0].comm, absl::StrCat("Shop.Service", (pauses.longest[0].pid - 1000) % 5));
  EXPECT_TRUE(pauses.longest[0].pause.generation.has_value());
  EXPECT_EQ(pauses.count_by_kind.at("blocking") + pauses.count_by_kind.at("background-initial"), pauses.count);
  HistorySelection one = All();
  one.thread = "100100";
  EXPECT_EQ(history->Pauses(one, 1000)->count, of_main_of_1001);
}

TEST_F(HistoryTest, QuestionsThatMakeNoSenseAreRefused) {
  const auto history = folder_.Open();
  EXPECT_TRUE(absl::IsInvalidArgument(history->Profile({}, ProfileView::kCpu).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(history->Health(5, 5).status()));
  HistorySelection thread = All();
  thread.thread = "main";
  EXPECT_TRUE(absl::IsInvalidArgument(history->Methods(thread, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      History::Open(folder_.folder() + "/tiny.db", {.max_bytes = 1000}, [](const std::string&) {}).status()));
  const HistorySpan nothing = *history->Span();
  EXPECT_EQ(nothing.oldest_unix_ns, 0u);
  EXPECT_TRUE(history->Profile(All(), ProfileView::kCpu)->samples.size() == 0);
  EXPECT_TRUE(history->Timeline({.from_unix_ns = kBegin, .to_unix_ns = kBegin + 1}, TimelineBy::kProcess, 9, 9).ok());
}

TEST_F(HistoryTest, QuestionsEndWhenTheyAreTold) {
  const auto history = folder_.Open();
  Fill(*history, 60);
  std::atomic<int> asked = 0;
  std::vector<std::thread> askers;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([&] {
      absl::Status status;
      for (; status.ok(); ++asked) status = history->Profile(All(), ProfileView::kCpu).status();
      EXPECT_TRUE(absl::IsCancelled(status)) << status;
    });
  }
  while (asked < 3) std::this_thread::yield();
  history->EndQuestions();
  for (std::thread& asker : askers) asker.join();
  EXPECT_TRUE(absl::IsCancelled(history->Span().status()));
  EXPECT_TRUE(history->Append(MadeUpHost({}, kBegin + kHour).Next()).ok()) << "what comes is still kept";
}

TEST_F(HistoryTest, QuestionsAndWindowsAtTheSameTime) {
  const auto history = folder_.Open({.max_bytes = 2 << 20, .windows_ns = 200 * kSecondNs, .minutes_ns = kHour});
  std::atomic<bool> done = false;
  std::atomic<int> answers = 0;
  std::vector<std::thread> askers;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([&] {
      while (!done) {
        // One snapshot: each window that it knows of is in it as a whole.
        const absl::StatusOr<ProfileModel> model = history->Profile(All(), ProfileView::kCpu);
        ASSERT_TRUE(model.ok()) << model.status();
        ASSERT_EQ(model->total_weight % (60 * 52'631'578ull), 0u);
        const absl::StatusOr<HistoryPauses> pauses = history->Pauses(All(), 10);
        ASSERT_TRUE(pauses.ok()) << pauses.status();
        ASSERT_EQ(pauses->count % 20, 0u);
        ++answers;
      }
    });
  }
  MadeUpHost host({.samples = 60, .processes = 12, .methods = 300, .pauses = 20, .compilations = 4}, kBegin);
  for (int i = 0; i < 100 || answers < 20; ++i) {
    const absl::Status appended = history->Append(host.Next());
    ASSERT_TRUE(appended.ok()) << appended;
    const absl::StatusOr<bool> more = history->Maintain(host.now_unix_ns());
    ASSERT_TRUE(more.ok()) << more.status();
  }
  done = true;
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(history->Span()->damaged_parts, 0u);
  EXPECT_TRUE(folder_.said.empty());
}

}  // namespace
}  // namespace clrsampler
