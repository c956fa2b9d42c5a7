#include "export/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "export/metric_families.h"
#include "test_paths.h"
#include "unit/export/made_up_windows.h"

namespace clrsampler {
namespace {

using test_support::kMadeUpSecond;
using test_support::kMadeUpStart;
using test_support::ShopWindow;
using test_support::WindowBuilder;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::Pair;

MetricsOptions Options(size_t most = 50) {
  MetricsOptions options;
  options.version = "0.1.0";
  options.max_processes = most;
  options.process_exists = [](uint32_t) { return true; };
  return options;
}

// Series with their labels as they stand in the text -> value.
std::map<std::string, double> SeriesOf(const std::string& text) {
  std::map<std::string, double> series;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const size_t space = line.rfind(' ');
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(space + 1), &value)) << line;
    EXPECT_TRUE(series.emplace(line.substr(0, space), value).second) << "twice: " << line;
  }
  return series;
}

// The sum over all series of a name whose labels have all of these.
double Sum(const Metrics& metrics, absl::string_view name, const std::vector<std::string>& labels = {}) {
  double sum = 0;
  for (const auto& [series, value] : SeriesOf(metrics.Text(true))) {
    const std::vector<std::string> parts = absl::StrSplit(series, absl::MaxSplits('{', 1));
    if (parts[0] != name) continue;
    bool all = true;
    for (const std::string& label : labels) all &= absl::StrContains(series, label);
    if (all) sum += value;
  }
  return sum;
}

TEST(MetricsTest, WhatWasTakenIsWrittenSetAsideOrLost) {
  const auto metrics = Metrics::Make(Options());
  EXPECT_EQ(Sum(*metrics, "clrsampler_samples_set_aside_total"), 0) << "it is there from the start";
  Account account;
  account.samples_taken = 10;
  account.samples_written = 4;
  account.samples_set_aside = 5;
  account.lost["window"] = 1;
  Window window;
  window.account = account;
  metrics->Observe(window);
  EXPECT_EQ(Sum(*metrics, "clrsampler_samples_set_aside_total"), 5);
  EXPECT_EQ(Sum(*metrics, "clrsampler_samples_taken_total"), Sum(*metrics, "clrsampler_samples_written_total") +
                                                                 Sum(*metrics, "clrsampler_samples_set_aside_total") +
                                                                 Sum(*metrics, "clrsampler_samples_lost_total"));
}

TEST(MetricsTest, AddsUpWhatWindowsSay) {
  const auto metrics = Metrics::Make(Options());
  for (uint64_t i = 1; i <= 3; ++i) metrics->Observe(*ShopWindow(i));
  const std::string shop = "process=\"Shop-4711\"";
  EXPECT_THAT(Sum(*metrics, "clrsampler_process_cpu_seconds_total", {shop, "share=\"managed\""}), DoubleNear(15, 1e-9));
  EXPECT_THAT(Sum(*metrics, "clrsampler_host_cpu_seconds_total"), DoubleNear(21, 1e-9));
  EXPECT_THAT(Sum(*metrics, "clrsampler_process_cpu_seconds_total"), DoubleNear(21, 1e-9)) << "nothing is left out";
  EXPECT_THAT(Sum(*metrics, "clrsampler_container_cpu_seconds_total", {"container=\"shop-web\""}),
              DoubleNear(15, 1e-9));
  EXPECT_THAT(Sum(*metrics, "clrsampler_container_cpu_seconds_total", {"container=\"none\""}), DoubleNear(6, 1e-9));
  EXPECT_EQ(Sum(*metrics, "clrsampler_gc_collections_total", {shop, "generation=\"1\""}), 3);
  EXPECT_EQ(Sum(*metrics, "clrsampler_gc_collections_total", {shop, "generation=\"2\""}), 0);
  EXPECT_EQ(Sum(*metrics, "clrsampler_gc_suspension_duration_seconds_count", {shop}), 6);
  EXPECT_THAT(Sum(*metrics, "clrsampler_gc_suspension_duration_seconds_sum", {shop}), DoubleNear(3 * 0.0203, 1e-12));
  EXPECT_THAT(Sum(*metrics, "clrsampler_gc_time_to_suspend_seconds_sum", {shop}), DoubleNear(3 * 0.00104, 1e-12));
  EXPECT_EQ(Sum(*metrics, "clrsampler_jit_methods_total", {shop, "tier=\"OptimizedTier1\""}), 6);
  EXPECT_THAT(Sum(*metrics, "clrsampler_jit_seconds_total", {shop}), DoubleNear(0.015, 1e-12));
  EXPECT_EQ(Sum(*metrics, "clrsampler_allocated_bytes_total", {shop}), 126'000'000);
  EXPECT_EQ(Sum(*metrics, "clrsampler_allocated_bytes_total"), 126'000'000) << "native programs have no such series";
  EXPECT_EQ(Sum(*metrics, "clrsampler_wait_seconds_total", {shop, "kind=\"monitor\""}), 9);
  EXPECT_EQ(Sum(*metrics, "clrsampler_wait_seconds_total", {shop, "kind=\"task wait\""}), 3);
  EXPECT_EQ(Sum(*metrics, "clrsampler_wait_seconds_total"), 12) << "running is no wait, and others have not waited";
  EXPECT_EQ(Sum(*metrics, "clrsampler_waits_total", {"result=\"told\""}), 6);
  EXPECT_EQ(Sum(*metrics, "clrsampler_waits_total", {"result=\"short\""}), 210);
  EXPECT_EQ(Sum(*metrics, "clrsampler_waits_total", {"result=\"lost\""}), 3);
  EXPECT_EQ(Sum(*metrics, "clrsampler_frames_total", {"kind=\"managed\"", "named=\"true\""}), 600);
  EXPECT_EQ(Sum(*metrics, "clrsampler_samples_lost_total", {"reason=\"ring_full\""}), 3);
  EXPECT_EQ(Sum(*metrics, "clrsampler_samples_taken_total"), 420);
  EXPECT_EQ(Sum(*metrics, "clrsampler_covered_seconds_total"), 30);
  EXPECT_EQ(Sum(*metrics, "clrsampler_notices_total", {"kind=\"jitdump_dead\""}), 3);
  EXPECT_EQ(Sum(*metrics, "clrsampler_sampling_frequency_hertz"), 20);
  EXPECT_EQ(Sum(*metrics, "clrsampler_process_info", {shop, "pid=\"4711\"", "runtime=\"10.0.12\""}), 1);
  EXPECT_GT(Sum(*metrics, "process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(Sum(*metrics, "process_open_fds"), 2);
}

TEST(MetricsTest, BeforeTheFirstWindowAWatcherSeesWhenTheServiceBegan) {
  MetricsOptions options = Options();
  options.started_unix_ns = kMadeUpStart;
  const auto metrics = Metrics::Make(options);
  const std::string name = "clrsampler_last_window_timestamp_seconds";
  EXPECT_EQ(Sum(*metrics, name), static_cast<double>(kMadeUpStart / kMadeUpSecond));
  metrics->Observe(*ShopWindow(1));
  EXPECT_EQ(Sum(*metrics, name), static_cast<double>(ShopWindow(1)->end_unix_ns / kMadeUpSecond));
}

TEST(MetricsTest, RecordingsThatMayComeAreThereWithZero) {
  const auto metrics = Metrics::Make(Options());
  metrics->ExpectRecordings("pause");
  const std::string before = metrics->Text(false);
  for (const char* result : {"kept", "limited", "failed"}) {
    EXPECT_THAT(SeriesOf(before),
                Contains(Pair(
                    absl::StrCat("clrsampler_flight_recordings_total{result=\"", result, "\",trigger=\"pause\"}"), 0)));
  }
  metrics->CountRecording("pause", RecordingResult::kFailed);
  EXPECT_EQ(Sum(*metrics, "clrsampler_flight_recordings_total", {"result=\"failed\""}), 1);
}

TEST(MetricsTest, AProcessSaysItsPod) {
  const auto metrics = Metrics::Make(Options());
  Window window = *ShopWindow(1);
  for (WindowProcess& process : window.processes) {
    process.labels.Set(LabelKey::kKubernetesNamespace, "prod");
    process.labels.Set(LabelKey::kKubernetesPod, process.comm);
    process.labels.Set(LabelKey::kKubernetesContainer, "web");
  }
  metrics->Observe(window);
  EXPECT_EQ(Sum(*metrics, "clrsampler_process_info",
                {"pid=\"4711\"", "k8s_namespace_name=\"prod\"", "k8s_pod_name=\"Shop\"", "k8s_container_name=\"web\""}),
            1);
}

TEST(MetricsTest, LinesAndPdbsAreCountedWhereTheyAreWanted) {
  const auto metrics = Metrics::Make(Options());
  metrics->Observe(*ShopWindow(1));
  EXPECT_EQ(Sum(*metrics, "clrsampler_frames_with_line_total"), 0);
  EXPECT_EQ(Sum(*metrics, "clrsampler_pdbs_total"), 0);
  for (uint64_t i = 2; i <= 3; ++i) {
    Window window = *ShopWindow(i);
    window.account.frames_with_line = 40;
    window.account.native_frames_with_line = 7;
    window.account.native_lines = {{"opened", 4}, {"failed", 1}, {"addresses", 90}};
    window.account.pdbs = {{"found", 5}, {"embedded", 2}, {"without", 3}, {"refused", 1}};
    metrics->Observe(window);
  }
  EXPECT_EQ(Sum(*metrics, "clrsampler_frames_with_line_total"), 80);
  EXPECT_EQ(Sum(*metrics, "clrsampler_native_frames_with_line_total"), 14);
  EXPECT_EQ(Sum(*metrics, "clrsampler_native_line_files_total", {"result=\"opened\""}), 8);
  EXPECT_EQ(Sum(*metrics, "clrsampler_native_line_files_total", {"result=\"failed\""}), 2);
  EXPECT_EQ(Sum(*metrics, "clrsampler_pdbs_total", {"result=\"found\""}), 10);
  EXPECT_EQ(Sum(*metrics, "clrsampler_pdbs_total", {"result=\"without\""}), 6);
  EXPECT_EQ(Sum(*metrics, "clrsampler_pdbs_total", {"result=\"refused\""}), 2);
  EXPECT_EQ(Sum(*metrics, "clrsampler_pdbs_total"), 18) << "what is embedded was found";
}

TEST(MetricsTest, WhatAHypervisorTookAddsUp) {
  const auto metrics = Metrics::Make(Options());
  const std::string name = "clrsampler_host_stolen_cpu_seconds_total";
  EXPECT_THAT(SeriesOf(metrics->Text(false)), Contains(Pair(name, 0))) << "it is there from the start";
  uint64_t number = 0;
  for (const double seconds : {0.25, 0.0, 1.5}) {
    Window window = *ShopWindow(++number);
    window.account.stolen_seconds = seconds;
    metrics->Observe(window);
  }
  EXPECT_EQ(Sum(*metrics, name), 1.75);
}

TEST(MetricsTest, ALostEventOfARuntimeCountsOnce) {
  const auto metrics = Metrics::Make(Options());
  for (uint64_t i = 1; i <= 2; ++i) {
    Window window = *ShopWindow(i);
    // One ring and one limit: the account has their counts in each of these.
    window.account.pauses = window.account.jit =
        window.account.allocations = {{"events_lost", 7}, {"events_limited", 5}};
    metrics->Observe(window);
  }
  EXPECT_EQ(Sum(*metrics, "clrsampler_runtime_events_lost_total", {"source=\"ring\""}), 14);
  EXPECT_EQ(Sum(*metrics, "clrsampler_runtime_events_lost_total", {"source=\"limit\""}), 10);
  EXPECT_EQ(Sum(*metrics, "clrsampler_runtime_events_lost_total"), 24);
}

TEST(MetricsTest, ABucketHoldsItsUpperBound) {
  const auto metrics = Metrics::Make(Options());
  WindowBuilder builder(1, kMadeUpStart);
  builder.Process(1, "app", 1);
  builder.Pause(0, 1'000'000, 50'000, 2);  // exactly 1 ms and 50 µs
  builder.Pause(0, 1'000'001, 50'001, 2);
  builder.Pause(0, 60'000'000'000, 20'000'000'000, 2);  // beyond the last one
  metrics->Observe(*builder.Build());
  const std::string name = "clrsampler_gc_suspension_duration_seconds_bucket";
  EXPECT_EQ(Sum(*metrics, name, {"le=\"0.0005\""}), 0);
  EXPECT_EQ(Sum(*metrics, name, {"le=\"0.001\""}), 1);
  EXPECT_EQ(Sum(*metrics, name, {"le=\"0.0025\""}), 2);
  EXPECT_EQ(Sum(*metrics, name, {"le=\"10\""}), 2);
  EXPECT_EQ(Sum(*metrics, name, {"le=\"+Inf\""}), 3);
  EXPECT_EQ(Sum(*metrics, "clrsampler_gc_time_to_suspend_seconds_bucket", {"le=\"5e-05\""}), 1);
}

TEST(MetricsTest, PausesThatAWindowDoesNotListAreInTheSums) {
  const auto metrics = Metrics::Make(Options());
  WindowBuilder builder(1, kMadeUpStart);
  builder.Process(1, "app", 1);
  builder.Pause(0, 30'000'000, 1'000'000, 0);
  for (int i = 0; i < 10; ++i) builder.Pause(0, 200'000 + static_cast<uint64_t>(i), 10'000, 0, false);
  metrics->Observe(*builder.Build());
  EXPECT_EQ(Sum(*metrics, "clrsampler_gc_suspension_duration_seconds_count"), 11);
  EXPECT_THAT(Sum(*metrics, "clrsampler_gc_suspension_duration_seconds_sum"), DoubleNear(0.032000045, 1e-12));
  EXPECT_EQ(Sum(*metrics, "clrsampler_gc_suspension_duration_seconds_count", {"reason=\"unlisted\""}), 10);
  EXPECT_EQ(Sum(*metrics, "clrsampler_gc_suspension_duration_seconds_bucket", {"unlisted", "le=\"0.0001\""}), 0);
  EXPECT_EQ(Sum(*metrics, "clrsampler_gc_suspension_duration_seconds_bucket", {"unlisted", "le=\"0.00025\""}), 10);
  EXPECT_THAT(Sum(*metrics, "clrsampler_gc_time_to_suspend_seconds_sum"), DoubleNear(0.0011, 1e-12));
}

TEST(MetricsTest, ShortLivesByTheThousandLeaveABoundedNumberOfSeries) {
  const auto metrics = Metrics::Make(Options(10));
  size_t most = 0;
  double cpu = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    WindowBuilder builder(i + 1, kMadeUpStart + i * 10 * kMadeUpSecond);
    for (uint32_t j = 0; j < 100; ++j) {
      WindowProcess& process =
          builder.Process(1000 + i * 100 + j, absl::StrCat("sh", j), 1, j % 2 == 0, absl::StrCat("job-", i, "-", j));
      process.exited = j % 3 != 0;  // the end of some is never told
      builder.Pause(0, 1'000'000, 100'000, j % 3);
      cpu += 0.05;
    }
    for (uint32_t pid = 1; pid <= 5; ++pid) builder.Process(pid, "service", 20);
    cpu += 5;
    metrics->Observe(*builder.Build());
    const auto series = SeriesOf(metrics->Text(false));
    most = std::max(most, series.size());
    std::set<std::string> processes;
    for (const auto& [name, value] : series) {
      if (absl::StartsWith(name, "clrsampler_process_info")) processes.insert(name);
    }
    ASSERT_LE(processes.size(), 10u);
  }
  // 10 processes and "other", each with at most: 5 shares, 4 collections, allocations, 3 generations of two histograms
  // of 20. None of them waits.
  EXPECT_LE(most, 11 * (1 + 5 + 4 + 1 + 3 * 2 * 20) + 11 * 5 + 120);
  EXPECT_THAT(Sum(*metrics, "clrsampler_host_cpu_seconds_total"), DoubleNear(cpu, 1e-6));
  EXPECT_EQ(Sum(*metrics, "clrsampler_process_info", {"comm=\"service\""}), 5) << "those that stay have theirs";
}

TEST(MetricsTest, CountersOfALivingSeriesNeverGoBackwards) {
  const auto metrics = Metrics::Make(Options(3));
  std::map<std::string, double> before;
  for (uint32_t i = 0; i < 200; ++i) {
    WindowBuilder builder(i + 1, kMadeUpStart + i * 10 * kMadeUpSecond);
    for (uint32_t pid = 1; pid <= 6; ++pid) {
      if ((i / 7 + pid) % 3 == 0) continue;
      builder.Process(pid, "app", (i * pid) % 17).exited = i % 40 == pid;
      builder.Pause(0, 1'000'000 * pid, 100'000, pid % 3);
      builder.Method("A.B()", "Tier0", 1, 1000);
    }
    metrics->Observe(*builder.Build());
    std::map<std::string, double> now = SeriesOf(metrics->Text(false));
    for (const auto& [series, value] : now) {
      const auto old = before.find(series);
      const bool counter = absl::StrContains(series, "_total") || absl::StrContains(series, "_bucket") ||
                           absl::StrContains(series, "_sum") || absl::StrContains(series, "_count");
      if (old == before.end() || !counter || !absl::StrContains(series, "process=\"other\"")) continue;
      ASSERT_GE(value, old->second) << series;
    }
    before = std::move(now);
  }
}

TEST(MetricsTest, ASeriesGoesTwoMinutesAfterItsProcess) {
  const auto metrics = Metrics::Make(Options());
  const auto window = [&](uint64_t number, bool with, bool exited) {
    WindowBuilder builder(number, kMadeUpStart + number * 10 * kMadeUpSecond);
    if (with) builder.Process(7, "app", 2).exited = exited;
    metrics->Observe(*builder.Build());
    return absl::StrContains(metrics->Text(false), "process=\"app-7\"");
  };
  EXPECT_TRUE(window(1, true, false));
  EXPECT_TRUE(window(2, true, true));
  for (uint64_t i = 3; i < 14; ++i) EXPECT_TRUE(window(i, false, false)) << i;
  EXPECT_FALSE(window(14, false, false));
}

TEST(MetricsTest, ASeriesGoesTwoMinutesAfterItsProcessHoweverTheClockIsSet) {
  for (const int64_t jump_s : {-36'000, 36'000}) {
    const auto metrics = Metrics::Make(Options());
    const auto window = [&](uint64_t number, bool with, bool exited) {
      const uint64_t jumped = number >= 5 ? static_cast<uint64_t>(jump_s) : 0;
      WindowBuilder builder(number, kMadeUpStart + (number * 10 + jumped) * kMadeUpSecond);
      if (with) builder.Process(7, "app", 2).exited = exited;
      metrics->Observe(*builder.Build());
      return absl::StrContains(metrics->Text(false), "process=\"app-7\"");
    };
    window(1, true, false);
    window(2, true, true);
    for (uint64_t i = 3; i < 14; ++i) EXPECT_TRUE(window(i, false, false)) << i;
    EXPECT_FALSE(window(14, false, false)) << jump_s;
  }
}

// Windows with one process, whose name is that of each.
std::shared_ptr<const Window> NamedWindow(uint64_t number, const std::string& name) {
  WindowBuilder builder(number, kMadeUpStart + number * 10 * kMadeUpSecond);
  builder.Process(7, name, 20);
  return builder.Build();
}

TEST(MetricsTest, ASeriesHasTheNameThatTheProcessHasSinceItsExec) {
  const auto metrics = Metrics::Make(Options());
  for (uint64_t i = 1; i <= 2; ++i) metrics->Observe(*NamedWindow(i, "sh"));
  EXPECT_EQ(Sum(*metrics, "clrsampler_process_info", {"process=\"sh-7\"", "comm=\"sh\""}), 1);
  for (uint64_t i = 3; i <= 5; ++i) metrics->Observe(*NamedWindow(i, "dotnet"));
  EXPECT_FALSE(absl::StrContains(metrics->Text(false), "sh-7"));
  EXPECT_EQ(Sum(*metrics, "clrsampler_process_info", {"process=\"dotnet-7\"", "comm=\"dotnet\""}), 1);
  EXPECT_THAT(Sum(*metrics, "clrsampler_process_cpu_seconds_total", {"process=\"dotnet-7\""}), DoubleNear(3, 1e-9));
}

TEST(MetricsTest, AProcessThatIsCalledOtherwiseInEachWindowHasABoundedNumberOfSeries) {
  const auto metrics = Metrics::Make(Options());
  std::set<std::string> infos, processes;
  for (uint64_t i = 1; i <= 100; ++i) {
    metrics->Observe(*NamedWindow(i, absl::StrCat("name", i)));
    for (const auto& [series, value] : SeriesOf(metrics->Text(false))) {
      if (absl::StartsWith(series, "clrsampler_process_info")) infos.insert(series);
      if (absl::StartsWith(series, "clrsampler_allocated_bytes_total")) processes.insert(series);
    }
  }
  EXPECT_EQ(infos.size(), 17u);
  EXPECT_EQ(processes.size(), 17u);
  EXPECT_THAT(Sum(*metrics, "clrsampler_process_cpu_seconds_total", {"process=\"name17-7\""}), DoubleNear(84, 1e-9));
}

TEST(MetricsTest, NoNameOfAProcessCanSpoilTheText) {
  const auto metrics = Metrics::Make(Options());
  WindowBuilder builder(1, kMadeUpStart);
  const std::string hostile = "a\"} 1\n# TYPE x\xff\xfe\\";
  builder.Process(1, hostile, 3, true, hostile);
  builder.Process(2, "other", 3, true, "other");
  builder.Process(3, "none", 3, true, "none");
  builder.Pause(0, 1, 1, 0);
  builder.Method("m", hostile, 1, 1);
  builder.window().account.lost[hostile] = 1;
  const auto window = builder.Build();
  for (int i = 0; i < 3; ++i) metrics->Observe(*window);
  metrics->CountRequest(hostile, 200);
  const std::string text = metrics->Text(true);
  SeriesOf(text);
  EXPECT_FALSE(absl::StrContains(text, "\xff"));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(absl::StartsWith(line, "# ") || absl::StartsWith(line, "clrsampler_") ||
                absl::StartsWith(line, "process_"))
        << line;
  }
  EXPECT_THAT(Sum(*metrics, "clrsampler_container_cpu_seconds_total"), DoubleNear(3 * 9 * 0.05, 1e-9));
}

TEST(MetricsTest, TheFileForNodeExporterHasNoneOfItsNames) {
  const auto metrics = Metrics::Make(Options());
  EXPECT_TRUE(absl::StrContains(metrics->Text(true), "\nprocess_cpu_seconds_total "));
  EXPECT_FALSE(absl::StrContains(metrics->Text(false), "\nprocess_cpu_seconds_total "));
}

TEST(MetricsTest, SheddingOfLoadIsCounted) {
  const auto metrics = Metrics::Make(Options());
  WindowBuilder first(1, kMadeUpStart), second(2, kMadeUpStart + 10 * kMadeUpSecond);
  first.window().frequencies_hz = {19, 10, 5};
  second.window().frequencies_hz = {5, 10};
  metrics->Observe(*first.Build());
  metrics->Observe(*second.Build());
  EXPECT_EQ(Sum(*metrics, "clrsampler_sampling_frequency_changes_total", {"down"}), 2);
  EXPECT_EQ(Sum(*metrics, "clrsampler_sampling_frequency_changes_total", {"up"}), 1);
}

TEST(MetricsTest, CountsWhatIsNotInWindows) {
  const auto metrics = Metrics::Make(Options());
  metrics->CountWindow(WindowResult::kWritten);
  metrics->CountWindow(WindowResult::kFailed);
  metrics->SetStoreBytes(12345);
  metrics->CountRecording("pause", RecordingResult::kLimited);
  metrics->CountRequest("/metrics", 200);
  metrics->CountConnectionEnd("evicted");
  metrics->CountPush(PushResult::kSent, 1000);
  metrics->CountPushLoss(PushLoss::kQueueFull);
  EXPECT_EQ(Sum(*metrics, "clrsampler_windows_total", {"failed"}), 1);
  EXPECT_EQ(Sum(*metrics, "clrsampler_store_bytes"), 12345);
  EXPECT_EQ(Sum(*metrics, "clrsampler_flight_recordings_total", {"pause", "limited"}), 1);
  EXPECT_EQ(Sum(*metrics, "clrsampler_http_requests_total", {"endpoint=\"/metrics\"", "code=\"200\""}), 1);
  EXPECT_EQ(Sum(*metrics, "clrsampler_http_connections_ended_total", {"evicted"}), 1);
  EXPECT_EQ(Sum(*metrics, "clrsampler_push_bytes_total"), 1000);
  EXPECT_EQ(Sum(*metrics, "clrsampler_push_dropped_total", {"queue_full"}), 1);
}

TEST(MetricsTest, SamplesOfOtlpAreCountedFromTheWindowToTheirEnd) {
  const auto metrics = Metrics::Make({.version = "1"});
  metrics->CountOtlpTaken(100);
  metrics->CountOtlp(PushResult::kFailed, 1000, 40);
  metrics->CountOtlp(PushResult::kSent, 1000, 40);
  metrics->CountOtlp(PushResult::kUnreadable, 500, 30);
  metrics->CountOtlpLoss(PushLoss::kTooLarge, 10);
  metrics->CountOtlpRejected(3);
  metrics->SetOtlpWaiting(2, 700, 20);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_samples_total", {"taken"}), 100);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_samples_total", {"sent"}), 70);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_samples_total", {"dropped"}), 10);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_waiting_samples"), 20);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_waiting_requests"), 2);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_waiting_bytes"), 700);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_requests_total", {"failed"}), 1);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_requests_total", {"unreadable"}), 1);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_bytes_total"), 1500);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_dropped_total", {"too_large"}), 1);
  EXPECT_EQ(Sum(*metrics, "clrsampler_otlp_rejected_profiles_total"), 3);
}

// As docs/metrics.md writes it.
std::string KindText(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "";
}

// | `name` | type | `labels` | meaning |
TEST(MetricsTest, TheDocumentHasEachFamilyAndNoOther) {
  std::ifstream file(TestData("../../docs/metrics.md"));
  std::stringstream text;
  text << file.rdbuf();
  std::map<std::string, std::pair<std::string, std::string>> documented;
  std::string before;
  const std::vector<std::string> lines = absl::StrSplit(text.str(), '\n');
  for (const std::string& line : lines) {
    const std::string last = std::exchange(before, line);
    if (!absl::StartsWith(line, "| `clrsampler_") && !absl::StartsWith(line, "| `process_")) continue;
    EXPECT_TRUE(absl::StartsWith(last, "|")) << "not in a table: " << line;
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    ASSERT_GE(cells.size(), 4u) << line;
    std::string labels = cells[2];
    labels.erase(std::remove(labels.begin(), labels.end(), '`'), labels.end());
    documented[cells[0].substr(3, cells[0].size() - 4)] = {cells[1], labels};
  }
  std::map<std::string, std::pair<std::string, std::string>> served;
  for (const MetricFamilyRow& row : MetricFamilies()) {
    served[row.name] = {KindText(row.kind), row.labels};
  }
  EXPECT_EQ(documented, served);
}

}  // namespace
}  // namespace clrsampler
