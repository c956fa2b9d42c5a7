// Series of the registry as objects: those of one process, those of one container. They are there as long as their
// object is, and count what windows say of it.
#ifndef CLRSAMPLER_EXPORT_METRIC_SERIES_H_
#define CLRSAMPLER_EXPORT_METRIC_SERIES_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "export/metric_families.h"
#include "profile/window.h"

namespace clrsampler {

inline constexpr char kOtherSeries[] = "other";

inline double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// A word of a process or a container as a label's value: UTF-8, of bounded length.
std::string LabelValue(absl::string_view text);

// Words that a label has had; the one behind the last that fits is "other".
class LabelWords {
 public:
  explicit LabelWords(size_t most) : most_(most) {}
  std::string Bounded(absl::string_view word);

 private:
  const size_t most_;
  std::set<std::string> seen_;
};

// Pauses of one window with the same labels.
struct PauseSums {
  std::vector<double> pause_buckets, suspend_buckets;
  uint64_t pause_ns = 0, suspend_ns = 0;

  PauseSums();
  void Add(double count, uint64_t each_pause_ns, uint64_t each_suspend_ns);
};

using PauseKey = std::pair<std::string, std::string>;  // reason, generation

// The amounts that a window has for one process, or for several that share their series.
struct ProcessAmounts {
  std::array<uint64_t, kCpuShareCount> cpu_ns{};
  std::map<PauseKey, PauseSums> pauses;
  std::array<uint64_t, 3> collections{};
  uint64_t background = 0;
  std::map<std::string, std::pair<uint64_t, uint64_t>> jit;  // by tier: compilations, ns
  uint64_t allocated_bytes = 0;
  WaitTimes waits;
  bool dotnet = false;
};

// Families of the registry, by their rows. Threads: as the registry, any at the same time.
class Families {
 public:
  using Labels = prometheus::Labels;
  using CounterFamily = prometheus::Family<prometheus::Counter>;
  using GaugeFamily = prometheus::Family<prometheus::Gauge>;
  using HistogramFamily = prometheus::Family<prometheus::Histogram>;

  // Those of this process, or all others.
  explicit Families(bool own_process);
  CounterFamily& counter(MetricId id) { return *counters_[static_cast<size_t>(id)]; }
  GaugeFamily& gauge(MetricId id) { return *gauges_[static_cast<size_t>(id)]; }
  HistogramFamily& histogram(MetricId id) { return *histograms_[static_cast<size_t>(id)]; }

  void Add(MetricId id, const Labels& labels, double amount) { counter(id).Add(labels).Increment(amount); }
  void Set(MetricId id, double value) { gauge(id).Add({}).Set(value); }

  std::string Text() const;

 private:
  prometheus::Registry registry_;
  std::array<CounterFamily*, kMetricIdCount> counters_{};
  std::array<GaugeFamily*, kMetricIdCount> gauges_{};
  std::array<HistogramFamily*, kMetricIdCount> histograms_{};
};

// The series of one process, or of all others.
class ProcessSeries {
 public:
  // Borrows the families. `process` is a name and a pid, "Shop-4711", or kOtherSeries.
  ProcessSeries(Families& families, const std::string& process, const std::string& container);
  ProcessSeries(const ProcessSeries&) = delete;
  ProcessSeries& operator=(const ProcessSeries&) = delete;
  ~ProcessSeries();

  void Describe(const WindowProcess& process);
  void Add(const ProcessAmounts& amounts);

 private:
  void MakeOfDotNet();
  void AddWaits(const WaitTimes& waits);
  std::pair<prometheus::Histogram*, prometheus::Histogram*> HistogramsOf(const PauseKey& key);
  std::pair<prometheus::Counter*, prometheus::Counter*> JitOf(const std::string& tier);

  Families& families_;
  const std::string process_, container_;
  std::array<prometheus::Counter*, kCpuShareCount> cpu_{};
  std::map<PauseKey, std::pair<prometheus::Histogram*, prometheus::Histogram*>> pauses_;
  std::array<prometheus::Counter*, 3> collections_{};
  prometheus::Counter* background_ = nullptr;
  prometheus::Counter* allocated_ = nullptr;
  std::map<std::string, prometheus::Counter*> waits_;  // by kind
  std::map<std::string, std::pair<prometheus::Counter*, prometheus::Counter*>> jit_;
  prometheus::Gauge* info_ = nullptr;
  prometheus::Labels described_;
};

// The CPU time of one container, or of all others.
class ContainerSeries {
 public:
  // Borrows the families.
  ContainerSeries(Families& families, const std::string& container);
  ContainerSeries(const ContainerSeries&) = delete;
  ContainerSeries& operator=(const ContainerSeries&) = delete;
  ~ContainerSeries();

  void Add(const std::array<uint64_t, kCpuShareCount>& cpu_ns);

 private:
  Families& families_;
  std::array<prometheus::Counter*, kCpuShareCount> cpu_{};
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_METRIC_SERIES_H_
