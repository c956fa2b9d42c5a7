#include "export/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/http_server.h"
#include "export/metric_families.h"
#include "export/series_slots.h"
#include "formats/names/utf8.h"
#include "os/own_usage.h"

namespace clrsampler {
namespace {

using CounterFamily = prometheus::Family<prometheus::Counter>;
using GaugeFamily = prometheus::Family<prometheus::Gauge>;
using HistogramFamily = prometheus::Family<prometheus::Histogram>;
using prometheus::Labels;

constexpr size_t kMaxLabelBytes = 200;
// Words of labels come from fixed sets; should that ever change, their number stays bounded.
constexpr size_t kMostWords = 32;
constexpr size_t kMostReasons = 24;  // of one process: reason and generation
constexpr char kOther[] = "other";
constexpr char kUnlisted[] = "unlisted";
constexpr uint64_t kQuietNs = uint64_t{600} * 1'000'000'000;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// Names come from the processes: one that is no UTF-8 would make Prometheus refuse the whole text.
std::string LabelValue(absl::string_view text) {
  std::string value = WellFormedUtf8(text.substr(0, kMaxLabelBytes));
  for (char& c : value) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return value;
}

// A container whose name is one of our two words is told apart from what they mean.
std::string ContainerLabel(const std::string& container) {
  if (container.empty()) return "none";
  std::string label = LabelValue(container);
  if (label == "none" || label == kOther) label.push_back('\'');
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

// Pauses of one window with the same labels.
struct PauseSums {
  std::vector<double> pause_buckets, suspend_buckets;
  uint64_t pause_ns = 0, suspend_ns = 0;

  PauseSums() : pause_buckets(std::size(kPauseBuckets) + 1), suspend_buckets(std::size(kPauseBuckets) + 1) {}
  void Add(double count, uint64_t each_pause_ns, uint64_t each_suspend_ns) {
    pause_buckets[BucketOf(each_pause_ns)] += count;
    suspend_buckets[BucketOf(each_suspend_ns)] += count;
  }
  // An upper bound is in its bucket: le means less or equal.
  static size_t BucketOf(uint64_t ns) {
    return static_cast<size_t>(std::lower_bound(std::begin(kPauseBuckets), std::end(kPauseBuckets), Seconds(ns)) -
                               std::begin(kPauseBuckets));
  }
};

using PauseKey = std::pair<std::string, std::string>;  // reason, generation

// What a window says of one process, or of several that share their series.
struct ProcessAmounts {
  std::array<uint64_t, kCpuShareCount> cpu_ns{};
  std::map<PauseKey, PauseSums> pauses;
  std::array<uint64_t, 3> collections{};
  uint64_t background = 0;
  std::map<std::string, std::pair<uint64_t, uint64_t>> jit;  // by tier: compilations, ns
  bool dotnet = false;
};

// Families of the registry, by their rows.
class Families {
 public:
  explicit Families(bool own_process) {
    for (const MetricFamilyRow& row : MetricFamilies()) {
      const bool own = row.id >= MetricId::kSelfCpu;
      if (own != own_process) continue;
      const size_t i = static_cast<size_t>(row.id);
      switch (row.kind) {
        case MetricKind::kCounter:
          counters_[i] = &prometheus::BuildCounter().Name(row.name).Help(row.help).Register(registry_);
          break;
        case MetricKind::kGauge:
          gauges_[i] = &prometheus::BuildGauge().Name(row.name).Help(row.help).Register(registry_);
          break;
        case MetricKind::kHistogram:
          histograms_[i] = &prometheus::BuildHistogram().Name(row.name).Help(row.help).Register(registry_);
          break;
      }
    }
  }
  CounterFamily& counter(MetricId id) { return *counters_[static_cast<size_t>(id)]; }
  GaugeFamily& gauge(MetricId id) { return *gauges_[static_cast<size_t>(id)]; }
  HistogramFamily& histogram(MetricId id) { return *histograms_[static_cast<size_t>(id)]; }

  void Add(MetricId id, const Labels& labels, double amount) { counter(id).Add(labels).Increment(amount); }
  void Set(MetricId id, double value) { gauge(id).Add({}).Set(value); }

  std::string Text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, registry_.Collect());
    return out.str();
  }

 private:
  prometheus::Registry registry_;
  std::array<CounterFamily*, kMetricIdCount> counters_{};
  std::array<GaugeFamily*, kMetricIdCount> gauges_{};
  std::array<HistogramFamily*, kMetricIdCount> histograms_{};
};

// Words that a label has had; the one behind the last that fits is "other".
class Words {
 public:
  explicit Words(size_t most) : most_(most) {}
  std::string Bounded(absl::string_view word) {
    std::string value = LabelValue(word);
    if (seen_.contains(value)) return value;
    if (seen_.size() >= most_) return kOther;
    seen_.insert(value);
    return value;
  }

 private:
  const size_t most_;
  std::set<std::string> seen_;
};

// The series of one process, or of all others. They go with it.
class ProcessSeries {
 public:
  ProcessSeries(Families& families, const std::string& process, const std::string& container)
      : families_(families), process_(process), container_(container) {
    for (int share = 0; share < kCpuShareCount; ++share) {
      cpu_[static_cast<size_t>(share)] =
          &families.counter(MetricId::kProcessCpu)
               .Add({{"process", process_},
                     {"container", container_},
                     {"share", std::string(CpuShareText(static_cast<CpuShare>(share)))}});
    }
  }
  ProcessSeries(const ProcessSeries&) = delete;
  ProcessSeries& operator=(const ProcessSeries&) = delete;
  ~ProcessSeries() {
    for (prometheus::Counter* one : cpu_) families_.counter(MetricId::kProcessCpu).Remove(one);
    for (auto& [key, one] : pauses_) {
      families_.histogram(MetricId::kSuspension).Remove(one.first);
      families_.histogram(MetricId::kTimeToSuspend).Remove(one.second);
    }
    for (prometheus::Counter* one : collections_) {
      if (one != nullptr) families_.counter(MetricId::kCollections).Remove(one);
    }
    if (background_ != nullptr) families_.counter(MetricId::kBackgroundCollections).Remove(background_);
    for (auto& [tier, one] : jit_) {
      families_.counter(MetricId::kJitSeconds).Remove(one.first);
      families_.counter(MetricId::kJitMethods).Remove(one.second);
    }
    if (info_ != nullptr) families_.gauge(MetricId::kProcessInfo).Remove(info_);
  }

  void Describe(const WindowProcess& process) {
    // What becomes known later (a runtime, a container's name) replaces the series: there is one for each process.
    const Labels labels = {{"process", process_},
                           {"pid", absl::StrCat(process.pid)},
                           {"comm", LabelValue(process.comm)},
                           {"container", LabelValue(process.container)},
                           {"container_id", LabelValue(process.container_id)},
                           {"runtime", LabelValue(process.runtime)}};
    if (labels == described_) return;
    described_ = labels;
    GaugeFamily& family = families_.gauge(MetricId::kProcessInfo);
    if (info_ != nullptr) family.Remove(info_);
    info_ = &family.Add(labels);
    info_->Set(1);
  }

  void Add(const ProcessAmounts& amounts) {
    for (size_t i = 0; i < cpu_.size(); ++i) cpu_[i]->Increment(Seconds(amounts.cpu_ns[i]));
    if (amounts.dotnet) MakeCollections();
    for (size_t i = 0; i < collections_.size(); ++i) {
      if (collections_[i] != nullptr) collections_[i]->Increment(static_cast<double>(amounts.collections[i]));
    }
    if (background_ != nullptr) background_->Increment(static_cast<double>(amounts.background));
    for (const auto& [key, sums] : amounts.pauses) {
      const auto [pause, suspend] = HistogramsOf(key);
      pause->ObserveMultiple(sums.pause_buckets, Seconds(sums.pause_ns));
      suspend->ObserveMultiple(sums.suspend_buckets, Seconds(sums.suspend_ns));
    }
    for (const auto& [tier, sums] : amounts.jit) {
      const auto [seconds, methods] = JitOf(tier);
      methods->Increment(static_cast<double>(sums.first));
      seconds->Increment(Seconds(sums.second));
    }
  }

 private:
  // From the first sight on, so that the first collection is a step from 0.
  void MakeCollections() {
    if (background_ != nullptr) return;
    background_ = &families_.counter(MetricId::kBackgroundCollections).Add({{"process", process_}});
    for (size_t i = 0; i < collections_.size(); ++i) {
      collections_[i] =
          &families_.counter(MetricId::kCollections).Add({{"process", process_}, {"generation", absl::StrCat(i)}});
      HistogramsOf({"gc", absl::StrCat(i)});
    }
  }

  std::pair<prometheus::Histogram*, prometheus::Histogram*> HistogramsOf(const PauseKey& key) {
    const auto found = pauses_.find(key);
    if (found != pauses_.end()) return found->second;
    if (pauses_.size() >= kMostReasons && key.first != kOther) return HistogramsOf({kOther, "none"});
    const Labels labels = {{"process", process_}, {"reason", key.first}, {"generation", key.second}};
    const prometheus::Histogram::BucketBoundaries bounds(std::begin(kPauseBuckets), std::end(kPauseBuckets));
    return pauses_[key] = {&families_.histogram(MetricId::kSuspension).Add(labels, bounds),
                           &families_.histogram(MetricId::kTimeToSuspend).Add(labels, bounds)};
  }

  std::pair<prometheus::Counter*, prometheus::Counter*> JitOf(const std::string& tier) {
    const auto found = jit_.find(tier);
    if (found != jit_.end()) return found->second;
    const Labels labels = {{"process", process_}, {"tier", tier}};
    return jit_[tier] = {&families_.counter(MetricId::kJitSeconds).Add(labels),
                         &families_.counter(MetricId::kJitMethods).Add(labels)};
  }

  Families& families_;
  const std::string process_, container_;
  std::array<prometheus::Counter*, kCpuShareCount> cpu_{};
  std::map<PauseKey, std::pair<prometheus::Histogram*, prometheus::Histogram*>> pauses_;
  std::array<prometheus::Counter*, 3> collections_{};
  prometheus::Counter* background_ = nullptr;
  std::map<std::string, std::pair<prometheus::Counter*, prometheus::Counter*>> jit_;
  prometheus::Gauge* info_ = nullptr;
  Labels described_;
};

// The CPU time of one container, or of all others.
class ContainerSeries {
 public:
  ContainerSeries(Families& families, const std::string& container) : families_(families) {
    for (int share = 0; share < kCpuShareCount; ++share) {
      cpu_[static_cast<size_t>(share)] =
          &families.counter(MetricId::kContainerCpu)
               .Add({{"container", container}, {"share", std::string(CpuShareText(static_cast<CpuShare>(share)))}});
    }
  }
  ContainerSeries(const ContainerSeries&) = delete;
  ContainerSeries& operator=(const ContainerSeries&) = delete;
  ~ContainerSeries() {
    for (prometheus::Counter* one : cpu_) families_.counter(MetricId::kContainerCpu).Remove(one);
  }
  void Add(const std::array<uint64_t, kCpuShareCount>& cpu_ns) {
    for (size_t i = 0; i < cpu_.size(); ++i) cpu_[i]->Increment(Seconds(cpu_ns[i]));
  }

 private:
  Families& families_;
  std::array<prometheus::Counter*, kCpuShareCount> cpu_{};
};

bool InProc(uint32_t pid) { return access(absl::StrCat("/proc/", pid).c_str(), F_OK) == 0; }

class PrometheusMetrics : public Metrics {
 public:
  explicit PrometheusMetrics(const MetricsOptions& options)
      : families_(false),
        processes_(options.max_processes, options.grace_ns, kQuietNs,
                   options.process_exists ? options.process_exists : &InProc),
        containers_(options.max_processes, options.grace_ns, kQuietNs, nullptr),
        process_series_(options.max_processes),
        container_series_(options.max_processes),
        other_process_(families_, kOther, ""),
        other_container_(families_, kOther),
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
  }

  void Observe(const Window& window) override {
    const std::vector<ProcessAmounts> amounts = AmountsOf(window);
    AddProcesses(window, amounts);
    AddContainers(window);
    AddHost(window);
    AddAccount(window.account);
  }

  void CountWindow(WindowResult result) override {
    families_.Add(MetricId::kWindows, {{"result", result == WindowResult::kWritten ? "written" : "failed"}}, 1);
  }
  void SetStoreBytes(uint64_t bytes) override { families_.Set(MetricId::kStoreBytes, static_cast<double>(bytes)); }

  void CountRecording(absl::string_view trigger, RecordingResult result) override {
    const std::lock_guard lock(words_mutex_);
    families_.Add(MetricId::kFlightRecordings,
                  {{"trigger", triggers_.Bounded(trigger)},
                   {"result", result == RecordingResult::kKept      ? "kept"
                              : result == RecordingResult::kLimited ? "limited"
                                                                    : "failed"}},
                  1);
  }

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
  static std::string PushResultText(PushResult result) {
    switch (result) {
      case PushResult::kSent:
        return "sent";
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
    }
    return "";
  }

  // Series that are known beforehand are there from the start, with 0: an absent one would hide the first step.
  void MakeKnownSeries() {
    for (const MetricFamilyRow& row : MetricFamilies()) {
      if (row.labels[0] != '\0' || row.id >= MetricId::kSelfCpu) continue;
      if (row.kind == MetricKind::kCounter) families_.counter(row.id).Add({});
      if (row.kind == MetricKind::kGauge) families_.gauge(row.id).Add({});
    }
    for (int share = 0; share < kCpuShareCount; ++share) {
      families_.Add(MetricId::kHostCpu, {{"share", std::string(CpuShareText(static_cast<CpuShare>(share)))}}, 0);
    }
    for (const char* reason : {"ring_full", "no_scratch", "damaged_record"}) {
      families_.Add(MetricId::kSamplesLost, {{"reason", losses_.Bounded(reason)}}, 0);
    }
    for (const char* source : {"pauses", "jit"}) {
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
    for (const PushResult result : {PushResult::kSent, PushResult::kRefused, PushResult::kFailed}) {
      families_.Add(MetricId::kPushes, {{"result", PushResultText(result)}}, 0);
    }
    for (const PushLoss loss :
         {PushLoss::kQueueFull, PushLoss::kRefused, PushLoss::kTooOld, PushLoss::kEnding, PushLoss::kWindow}) {
      families_.Add(MetricId::kPushDropped, {{"reason", PushLossText(loss)}}, 0);
    }
    for (const char* kind : {"dotnet", "other"}) families_.gauge(MetricId::kProcesses).Add({{"kind", kind}});
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
      all[i].dotnet = !process.runtime.empty() || process.hooked;
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
    const SeriesSlots::Decision decision = processes_.Next(candidates, window.end_unix_ns);
    for (const size_t slot : decision.freed) process_series_[slot].reset();
    for (const auto& [slot, index] : decision.taken) {
      process_series_[slot].reset();  // its series have to go before others of the same name come
      process_series_[slot] = std::make_unique<ProcessSeries>(families_, candidates[index].label,
                                                              LabelValue(window.processes[index].container));
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
    const SeriesSlots::Decision decision = containers_.Next(candidates, window.end_unix_ns);
    for (const size_t slot : decision.freed) container_series_[slot].reset();
    for (const auto& [slot, index] : decision.taken) {
      container_series_[slot].reset();
      container_series_[slot] = std::make_unique<ContainerSeries>(families_, candidates[index].label);
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
    add(MetricId::kSamplesExpected, {}, account.samples_expected);
    add(MetricId::kSamplesTaken, {}, account.samples_taken);
    add(MetricId::kSamplesWritten, {}, account.samples_written);
    for (const auto& [reason, count] : account.lost) {
      add(MetricId::kSamplesLost, {{"reason", losses_.Bounded(reason)}}, count);
    }
    const auto lost_events = [&](const char* source, const std::map<std::string, uint64_t>& counts, const char* kind) {
      const auto found = counts.find(kind);
      if (found != counts.end()) add(MetricId::kRuntimeEventsLost, {{"source", source}}, found->second);
    };
    lost_events("pauses", account.pauses, "events_lost");
    lost_events("jit", account.jit, "events_lost");
    // Of both: one limit for all that a process's hooks report.
    lost_events("limit", account.jit.empty() ? account.pauses : account.jit, "events_limited");
    const auto frames = [&](const char* kind, const FrameCounts& counts) {
      add(MetricId::kFrames, {{"kind", kind}, {"named", "true"}}, counts.named);
      add(MetricId::kFrames, {{"kind", kind}, {"named", "false"}}, counts.unnamed);
    };
    frames("managed", account.managed);
    frames("native", account.native);
    frames("kernel", account.kernel);
    add(MetricId::kStacks, {{"result", "complete"}}, account.stacks_complete);
    add(MetricId::kStacks, {{"result", "truncated"}}, account.stacks_truncated);
    add(MetricId::kStacks, {{"result", "broken"}}, account.stacks_broken);
    for (const auto& [kind, count] : account.notice_counts) {
      add(MetricId::kNotices, {{"kind", notices_.Bounded(kind)}}, count);
    }
    families_.Add(MetricId::kAgentCpu, {}, std::max(account.self_cpu_seconds, 0.0));
    families_.Set(MetricId::kBpfMapBytes, static_cast<double>(account.bpf_map_bytes));
  }

  Families families_;
  SeriesSlots processes_, containers_;
  std::vector<std::unique_ptr<ProcessSeries>> process_series_;
  std::vector<std::unique_ptr<ContainerSeries>> container_series_;
  ProcessSeries other_process_;
  ContainerSeries other_container_;
  Words tiers_, reasons_, losses_, notices_, event_sources_;
  uint32_t last_hz_ = 0;

  std::mutex words_mutex_;  // what is counted from any thread
  Words triggers_, endpoints_, codes_;
};

}  // namespace

std::unique_ptr<Metrics> Metrics::Make(const MetricsOptions& options) {
  return std::make_unique<PrometheusMetrics>(options);
}

}  // namespace clrsampler
