#include "export/metrics.h"

#include <prometheus/labels.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/http_server.h"
#include "export/metric_families.h"
#include "export/metric_series.h"
#include "export/series_slots.h"
#include "os/own_usage.h"

namespace clrsampler {
namespace {

using prometheus::Labels;

// Words of labels come from fixed sets. Should that ever change, their number stays bounded.
constexpr size_t kMostWords = 32;
constexpr char kUnlisted[] = "unlisted";
constexpr const char* kPdbResults[] = {"found", "without", "refused"};  // of AssemblyPdbsCounters::ByName
constexpr const char* kNativeLineResults[] = {"opened", "failed"};      // of NativeLineCounters::ByName
// The account's counts of waits, with the words of the metric.
constexpr std::pair<const char*, const char*> kWaitResults[] = {{"kept", "told"},
                                                                {"short", "short"},
                                                                {"passed_over", "passed_over"},
                                                                {"records_lost", "lost"},
                                                                {"without_stack", "without_stack"},
                                                                {"without_waker_stack", "without_waker_stack"}};
constexpr uint64_t kQuietNs = uint64_t{600} * 1'000'000'000;

// A container whose name is one of our two words is told apart from what they mean.
std::string ContainerLabel(const std::string& container) {
  if (container.empty()) return "none";
  std::string label = LabelValue(container);
  if (label == "none" || label == kOtherSeries) label.push_back('\'');
  return label;
}

absl::string_view Architecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

class PrometheusMetrics : public Metrics {
 public:
  explicit PrometheusMetrics(const MetricsOptions& options)
      : families_(false),
        processes_(options.max_processes, options.grace_ns, kQuietNs,
                   options.process_exists ? options.process_exists : &IsInProc),
        containers_(options.max_processes, options.grace_ns, kQuietNs, nullptr),
        process_series_(options.max_processes),
        container_series_(options.max_processes),
        other_process_(families_, kOtherSeries, ""),
        other_container_(families_, kOtherSeries),
        tiers_(kMostWords),
        reasons_(kMostWords),
        losses_(kMostWords),
        notices_(2 * kMostWords),
        event_sources_(kMostWords),
        triggers_(kMostWords),
        endpoints_(kMostWords),
        codes_(kMostWords) {
    families_.gauge(MetricId::kBuildInfo)
        .Add({{"version", options.version}, {"arch", std::string(Architecture())}})
        .Set(1);
    MakeKnownSeries();
    families_.Set(MetricId::kLastWindow, Seconds(options.started_unix_ns));
  }

  void Observe(const Window& window) override {
    const std::vector<ProcessAmounts> amounts = AmountsOf(window);
    // The wall clock may be set, so that series would stay for hours.
    observed_ns_ += std::max<uint64_t>(1, window.end_unix_ns - std::min(window.begin_unix_ns, window.end_unix_ns));
    AddProcesses(window, amounts);
    AddContainers(window);
    AddHost(window);
    AddAccount(window.account);
  }

  void CountWindow(WindowResult result) override {
    families_.Add(MetricId::kWindows, {{"result", result == WindowResult::kWritten ? "written" : "failed"}}, 1);
  }
  void SetStoreBytes(uint64_t bytes) override { families_.Set(MetricId::kStoreBytes, static_cast<double>(bytes)); }

  void ExpectRecordings(absl::string_view trigger) override {
    for (const auto result : {RecordingResult::kKept, RecordingResult::kLimited, RecordingResult::kFailed}) {
      AddRecordings(trigger, result, 0);
    }
  }
  void CountRecording(absl::string_view trigger, RecordingResult result) override { AddRecordings(trigger, result, 1); }

  void CountRequest(absl::string_view endpoint, unsigned status) override {
    const std::lock_guard lock(words_mutex_);
    families_.Add(MetricId::kHttpRequests,
                  {{"endpoint", endpoints_.Bounded(endpoint)}, {"code", codes_.Bounded(absl::StrCat(status))}}, 1);
  }

  void CountConnectionEnd(absl::string_view end) override {
    families_.Add(MetricId::kHttpConnectionsEnded, {{"reason", std::string(end)}}, 1);
  }

  void CountPush(PushResult result, uint64_t bytes) override {
    families_.Add(MetricId::kPushes, {{"result", PushResultText(result)}}, 1);
    if (result == PushResult::kSent) families_.Add(MetricId::kPushBytes, {}, static_cast<double>(bytes));
  }
  void CountPushLoss(PushLoss loss) override {
    families_.Add(MetricId::kPushDropped, {{"reason", PushLossText(loss)}}, 1);
  }

  void CountOtlp(PushResult result, uint64_t bytes, uint64_t samples) override {
    families_.Add(MetricId::kOtlpRequests, {{"result", PushResultText(result)}}, 1);
    if (result != PushResult::kSent && result != PushResult::kUnreadable) return;
    families_.Add(MetricId::kOtlpBytes, {}, static_cast<double>(bytes));
    families_.Add(MetricId::kOtlpSamples, {{"result", "sent"}}, static_cast<double>(samples));
  }
  void CountOtlpLoss(PushLoss loss, uint64_t samples) override {
    families_.Add(MetricId::kOtlpDropped, {{"reason", PushLossText(loss)}}, 1);
    families_.Add(MetricId::kOtlpSamples, {{"result", "dropped"}}, static_cast<double>(samples));
  }
  void CountOtlpTaken(uint64_t samples) override {
    families_.Add(MetricId::kOtlpSamples, {{"result", "taken"}}, static_cast<double>(samples));
  }
  void CountOtlpRejected(uint64_t profiles) override {
    families_.Add(MetricId::kOtlpRejected, {}, static_cast<double>(profiles));
  }
  void SetOtlpWaiting(uint64_t requests, uint64_t bytes, uint64_t samples) override {
    families_.Set(MetricId::kOtlpWaitingRequests, static_cast<double>(requests));
    families_.Set(MetricId::kOtlpWaitingBytes, static_cast<double>(bytes));
    families_.Set(MetricId::kOtlpWaitingSamples, static_cast<double>(samples));
  }

  std::string Text(bool own_process) const override {
    std::string text = families_.Text();
    if (!own_process) return text;
    Families own(true);
    const OwnUsage usage = ReadOwnUsage();
    own.Add(MetricId::kSelfCpu, {}, usage.cpu_seconds);
    own.Set(MetricId::kSelfResident, static_cast<double>(usage.resident_bytes));
    own.Set(MetricId::kSelfVirtual, static_cast<double>(usage.virtual_bytes));
    own.Set(MetricId::kSelfOpenFds, static_cast<double>(usage.open_fds));
    own.Set(MetricId::kSelfMaxFds, static_cast<double>(usage.max_fds));
    own.Set(MetricId::kSelfStart, usage.start_unix_seconds);
    absl::StrAppend(&text, own.Text());
    return text;
  }

 private:
  void AddRecordings(absl::string_view trigger, RecordingResult result, double count) {
    const std::lock_guard lock(words_mutex_);
    families_.Add(MetricId::kFlightRecordings,
                  {{"trigger", triggers_.Bounded(trigger)},
                   {"result", result == RecordingResult::kKept      ? "kept"
                              : result == RecordingResult::kLimited ? "limited"
                                                                    : "failed"}},
                  count);
  }

  static std::string PushResultText(PushResult result) {
    switch (result) {
      case PushResult::kSent:
        return "sent";
      case PushResult::kUnreadable:
        return "unreadable";
      case PushResult::kRefused:
        return "refused";
      case PushResult::kFailed:
        return "failed";
    }
    return "";
  }
  static std::string PushLossText(PushLoss loss) {
    switch (loss) {
      case PushLoss::kQueueFull:
        return "queue_full";
      case PushLoss::kRefused:
        return "refused";
      case PushLoss::kTooOld:
        return "too_old";
      case PushLoss::kEnding:
        return "ending";
      case PushLoss::kWindow:
        return "window";
      case PushLoss::kTooLarge:
        return "too_large";
    }
    return "";
  }

  // Series that are known beforehand are there from the start, with 0. An absent series would hide the first step.
  void MakeKnownSeries() {
    for (const MetricFamilyRow& row : MetricFamilies()) {
      if (row.labels[0] != '\0' || row.id >= MetricId::kSelfCpu) continue;
      if (row.kind == MetricKind::kCounter) families_.counter(row.id).Add({});
      if (row.kind == MetricKind::kGauge) families_.gauge(row.id).Add({});
    }
    for (int share = 0; share < kCpuShareCount; ++share) {
      families_.Add(MetricId::kHostCpu, {{"share", std::string(CpuShareText(static_cast<CpuShare>(share)))}}, 0);
    }
    for (const char* reason : {"ring_full", "queue_full", "no_scratch", "damaged_record", "window"}) {
      families_.Add(MetricId::kSamplesLost, {{"reason", losses_.Bounded(reason)}}, 0);
    }
    for (const char* source : {"ring", "limit"}) {
      families_.Add(MetricId::kRuntimeEventsLost, {{"source", event_sources_.Bounded(source)}}, 0);
    }
    for (const char* kind : {"managed", "native", "kernel"}) {
      for (const char* named : {"true", "false"})
        families_.Add(MetricId::kFrames, {{"kind", kind}, {"named", named}}, 0);
    }
    for (const char* result : {"complete", "truncated", "broken"}) {
      families_.Add(MetricId::kStacks, {{"result", result}}, 0);
    }
    for (const char* direction : {"down", "up"}) {
      families_.Add(MetricId::kFrequencyChanges, {{"direction", direction}}, 0);
    }
    for (const char* result : {"written", "failed"}) families_.Add(MetricId::kWindows, {{"result", result}}, 0);
    for (const absl::string_view end : kConnectionEnds) {
      families_.Add(MetricId::kHttpConnectionsEnded, {{"reason", std::string(end)}}, 0);
    }
    MakePushSeries();
    for (const char* kind : {"dotnet", "other"}) families_.gauge(MetricId::kProcesses).Add({{"kind", kind}});
  }

  // The answers and losses that a protocol has.
  void MakePushSeries() {
    for (const PushResult result : {PushResult::kSent, PushResult::kRefused, PushResult::kFailed}) {
      families_.Add(MetricId::kPushes, {{"result", PushResultText(result)}}, 0);
      families_.Add(MetricId::kOtlpRequests, {{"result", PushResultText(result)}}, 0);
    }
    families_.Add(MetricId::kOtlpRequests, {{"result", PushResultText(PushResult::kUnreadable)}}, 0);
    for (const PushLoss loss :
         {PushLoss::kQueueFull, PushLoss::kRefused, PushLoss::kTooOld, PushLoss::kEnding, PushLoss::kWindow}) {
      families_.Add(MetricId::kPushDropped, {{"reason", PushLossText(loss)}}, 0);
      families_.Add(MetricId::kOtlpDropped, {{"reason", PushLossText(loss)}}, 0);
    }
    families_.Add(MetricId::kOtlpDropped, {{"reason", PushLossText(PushLoss::kTooLarge)}}, 0);
    for (const char* result : {"taken", "sent", "dropped"}) {
      families_.Add(MetricId::kOtlpSamples, {{"result", result}}, 0);
    }
  }

  std::vector<ProcessAmounts> AmountsOf(const Window& window) {
    std::vector<ProcessAmounts> all(window.processes.size());
    struct Listed {
      uint64_t pauses = 0, pause_ns = 0, suspend_ns = 0, compilations = 0, compile_ns = 0;
    };
    std::vector<Listed> listed(all.size());
    for (const WindowPause& pause : window.pauses) {
      const std::string generation = pause.generation ? absl::StrCat(std::min(*pause.generation, 3u)) : "none";
      PauseSums& sums = all[pause.process].pauses[{reasons_.Bounded(pause.reason), generation}];
      sums.Add(1, pause.pause_ns, pause.suspend_ns);
      sums.pause_ns += pause.pause_ns;
      sums.suspend_ns += pause.suspend_ns;
      Listed& seen = listed[pause.process];
      ++seen.pauses;
      seen.pause_ns += pause.pause_ns;
      seen.suspend_ns += pause.suspend_ns;
    }
    for (const WindowMethod& method : window.methods) {
      auto& [count, ns] = all[method.process].jit[tiers_.Bounded(method.tier)];
      count += method.count;
      ns += method.total_ns;
      listed[method.process].compilations += method.count;
      listed[method.process].compile_ns += method.total_ns;
    }
    for (size_t i = 0; i < all.size(); ++i) {
      const WindowProcess& process = window.processes[i];
      const Listed& seen = listed[i];
      all[i].cpu_ns = process.cpu_ns;
      all[i].collections = process.collections;
      all[i].background = process.background_collections;
      all[i].allocated_bytes = process.allocated_bytes;
      all[i].waits = process.waits;
      all[i].dotnet = !process.runtime.empty() || process.hooked || process.allocated_bytes > 0;
      if (process.pauses > seen.pauses) {
        const uint64_t count = process.pauses - seen.pauses;
        const uint64_t pause_ns = process.pause_ns - std::min(seen.pause_ns, process.pause_ns);
        const uint64_t suspend_ns = process.suspend_ns - std::min(seen.suspend_ns, process.suspend_ns);
        PauseSums& sums = all[i].pauses[{kUnlisted, "none"}];
        sums.Add(static_cast<double>(count), pause_ns / count, suspend_ns / count);
        sums.pause_ns += pause_ns;
        sums.suspend_ns += suspend_ns;
      }
      if (process.compilations > seen.compilations || process.compile_ns > seen.compile_ns) {
        auto& [count, ns] = all[i].jit[kUnlisted];
        count += process.compilations - std::min(seen.compilations, process.compilations);
        ns += process.compile_ns - std::min(seen.compile_ns, process.compile_ns);
      }
    }
    return all;
  }

  void AddProcesses(const Window& window, const std::vector<ProcessAmounts>& amounts) {
    std::vector<SeriesCandidate> candidates;
    size_t dotnet = 0;
    for (const WindowProcess& process : window.processes) {
      SeriesCandidate candidate;
      candidate.key = absl::StrCat(process.pid, "@", process.started_boot_ns);
      candidate.label = absl::StrCat(LabelValue(process.comm), "-", process.pid);
      candidate.activity = Seconds(process.total_cpu_ns() + process.pause_ns);
      candidate.ended = process.exited;
      candidate.eager = !process.runtime.empty();
      candidate.pid = process.pid;
      dotnet += !process.runtime.empty();
      candidates.push_back(std::move(candidate));
    }
    const SeriesSlots::Decision decision = processes_.Next(candidates, observed_ns_);
    // Its series have to go before others of the same name come.
    for (const size_t slot : decision.freed) process_series_[slot].reset();
    for (const SeriesSlots::Taken& taken : decision.taken) {
      process_series_[taken.slot] = std::make_unique<ProcessSeries>(
          families_, taken.label, LabelValue(window.processes[taken.candidate].container));
    }
    for (size_t i = 0; i < amounts.size(); ++i) {
      const std::optional<size_t> slot = decision.slot_of[i];
      if (slot) process_series_[*slot]->Describe(window.processes[i]);
      (slot ? *process_series_[*slot] : other_process_).Add(amounts[i]);
    }
    families_.gauge(MetricId::kProcesses).Add({{"kind", "dotnet"}}).Set(static_cast<double>(dotnet));
    families_.gauge(MetricId::kProcesses)
        .Add({{"kind", "other"}})
        .Set(static_cast<double>(window.processes.size() - dotnet));
  }

  void AddContainers(const Window& window) {
    std::map<std::string, std::array<uint64_t, kCpuShareCount>> sums;
    for (const WindowProcess& process : window.processes) {
      auto& sum = sums[ContainerLabel(process.container)];
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += process.cpu_ns[i];
    }
    std::vector<SeriesCandidate> candidates;
    for (const auto& [container, cpu_ns] : sums) {
      SeriesCandidate candidate;
      candidate.key = candidate.label = container;
      for (const uint64_t ns : cpu_ns) candidate.activity += Seconds(ns);
      candidate.eager = true;
      candidates.push_back(std::move(candidate));
    }
    const SeriesSlots::Decision decision = containers_.Next(candidates, observed_ns_);
    for (const size_t slot : decision.freed) container_series_[slot].reset();
    for (const SeriesSlots::Taken& taken : decision.taken) {
      container_series_[taken.slot] = std::make_unique<ContainerSeries>(families_, taken.label);
    }
    for (size_t i = 0; i < candidates.size(); ++i) {
      const std::optional<size_t> slot = decision.slot_of[i];
      (slot ? *container_series_[*slot] : other_container_).Add(sums[candidates[i].key]);
    }
  }

  void AddHost(const Window& window) {
    std::array<uint64_t, kCpuShareCount> cpu_ns{};
    for (const WindowProcess& process : window.processes) {
      for (size_t i = 0; i < cpu_ns.size(); ++i) cpu_ns[i] += process.cpu_ns[i];
    }
    for (int share = 0; share < kCpuShareCount; ++share) {
      families_.Add(MetricId::kHostCpu, {{"share", std::string(CpuShareText(static_cast<CpuShare>(share)))}},
                    Seconds(cpu_ns[static_cast<size_t>(share)]));
    }
    for (const uint32_t hz : window.frequencies_hz) {
      if (last_hz_ != 0 && hz != last_hz_) {
        families_.Add(MetricId::kFrequencyChanges, {{"direction", hz < last_hz_ ? "down" : "up"}}, 1);
      }
      last_hz_ = hz;
    }
    families_.Set(MetricId::kFrequency, window.frequency_hz);
    families_.Add(MetricId::kCoveredSeconds, {}, Seconds(window.end_unix_ns - window.begin_unix_ns));
    families_.Set(MetricId::kLastWindow, Seconds(window.end_unix_ns));
    if (window.clock_jump_ns != 0) families_.Add(MetricId::kClockJumps, {}, 1);
    families_.Set(MetricId::kAgentMemory, static_cast<double>(window.rss_bytes));
  }

  void AddAccount(const Account& account) {
    const auto add = [&](MetricId id, const Labels& labels, uint64_t amount) {
      families_.Add(id, labels, static_cast<double>(amount));
    };
    families_.Add(MetricId::kHostStolen, {}, account.stolen_seconds);
    add(MetricId::kSamplesExpected, {}, account.samples_expected);
    add(MetricId::kSamplesTaken, {}, account.samples_taken);
    add(MetricId::kSamplesWritten, {}, account.samples_written);
    add(MetricId::kSamplesSetAside, {}, account.samples_set_aside);
    for (const auto& [reason, count] : account.lost) {
      add(MetricId::kSamplesLost, {{"reason", losses_.Bounded(reason)}}, count);
    }
    // Pauses and compilations have one ring and one limit, so that each of them has the counts of all events.
    const std::map<std::string, uint64_t>& hooks = account.jit.empty() ? account.pauses : account.jit;
    const auto lost_events = [&](const char* source, const char* kind) {
      const auto found = hooks.find(kind);
      if (found != hooks.end()) add(MetricId::kRuntimeEventsLost, {{"source", source}}, found->second);
    };
    lost_events("ring", "events_lost");
    lost_events("limit", "events_limited");
    if (const auto rested = hooks.find("detached_ms"); rested != hooks.end()) {
      families_.Add(MetricId::kHooksDetached, {}, static_cast<double>(rested->second) / 1e3);
    }
    for (const auto& [key, result] : kWaitResults) {
      const auto count = account.waits.find(key);
      if (count != account.waits.end()) add(MetricId::kWaits, {{"result", result}}, count->second);
    }
    const auto frames = [&](const char* kind, const FrameCounts& counts) {
      add(MetricId::kFrames, {{"kind", kind}, {"named", "true"}}, counts.named);
      add(MetricId::kFrames, {{"kind", kind}, {"named", "false"}}, counts.unnamed);
    };
    frames("managed", account.managed);
    frames("native", account.native);
    frames("kernel", account.kernel);
    add(MetricId::kFramesWithLine, {}, account.frames_with_line);
    for (const char* result : kPdbResults) {
      const auto count = account.pdbs.find(result);
      if (count != account.pdbs.end()) add(MetricId::kPdbs, {{"result", result}}, count->second);
    }
    add(MetricId::kNativeFramesWithLine, {}, account.native_frames_with_line);
    for (const char* result : kNativeLineResults) {
      const auto count = account.native_lines.find(result);
      if (count != account.native_lines.end()) add(MetricId::kNativeLineFiles, {{"result", result}}, count->second);
    }
    add(MetricId::kStacks, {{"result", "complete"}}, account.stacks_complete);
    add(MetricId::kStacks, {{"result", "truncated"}}, account.stacks_truncated);
    add(MetricId::kStacks, {{"result", "broken"}}, account.stacks_broken);
    for (const auto& [kind, count] : account.notice_counts) {
      add(MetricId::kNotices, {{"kind", notices_.Bounded(kind)}}, count);
    }
    for (const auto& [result, count] : account.perf_maps) add(MetricId::kPerfMaps, {{"result", result}}, count);
    families_.Add(MetricId::kAgentCpu, {}, std::max(account.self_cpu_seconds, 0.0));
    families_.Set(MetricId::kBpfMapBytes, static_cast<double>(account.bpf_map_bytes));
  }

  Families families_;
  uint64_t observed_ns_ = 0;  // the lengths of all windows
  SeriesSlots processes_, containers_;
  std::vector<std::unique_ptr<ProcessSeries>> process_series_;
  std::vector<std::unique_ptr<ContainerSeries>> container_series_;
  ProcessSeries other_process_;
  ContainerSeries other_container_;
  LabelWords tiers_, reasons_, losses_, notices_, event_sources_;
  uint32_t last_hz_ = 0;

  std::mutex words_mutex_;  // what is counted from any thread
  LabelWords triggers_, endpoints_, codes_;
};

}  // namespace

bool IsInProc(uint32_t pid) { return access(absl::StrCat("/proc/", pid).c_str(), F_OK) == 0; }

std::unique_ptr<Metrics> Metrics::Make(const MetricsOptions& options) {
  return std::make_unique<PrometheusMetrics>(options);
}

}  // namespace clrsampler
