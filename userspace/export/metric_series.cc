#include "export/metric_series.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/names/utf8.h"

namespace clrsampler {
namespace {

using prometheus::Labels;

constexpr size_t kMaxValueBytes = 200;
constexpr size_t kMostReasons = 24;  // of one process: reason and generation

// An upper bound is in its bucket: le means less or equal.
size_t BucketOf(uint64_t ns) {
  return static_cast<size_t>(std::lower_bound(std::begin(kPauseBuckets), std::end(kPauseBuckets), Seconds(ns)) -
                             std::begin(kPauseBuckets));
}

}  // namespace

// Names come from the processes. A name that is no UTF-8 would make Prometheus refuse the whole text.
std::string LabelValue(absl::string_view text) {
  std::string value = WellFormedUtf8(text.substr(0, kMaxValueBytes));
  for (char& c : value) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return value;
}

std::string LabelWords::Bounded(absl::string_view word) {
  std::string value = LabelValue(word);
  if (seen_.contains(value)) return value;
  if (seen_.size() >= most_) return kOtherSeries;
  seen_.insert(value);
  return value;
}

PauseSums::PauseSums() : pause_buckets(std::size(kPauseBuckets) + 1), suspend_buckets(std::size(kPauseBuckets) + 1) {}

void PauseSums::Add(double count, uint64_t each_pause_ns, uint64_t each_suspend_ns) {
  pause_buckets[BucketOf(each_pause_ns)] += count;
  suspend_buckets[BucketOf(each_suspend_ns)] += count;
}

Families::Families(bool own_process) {
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

std::string Families::Text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, registry_.Collect());
  return out.str();
}

ProcessSeries::ProcessSeries(Families& families, const std::string& process, const std::string& container)
    : families_(families), process_(process), container_(container) {
  for (int share = 0; share < kCpuShareCount; ++share) {
    cpu_[static_cast<size_t>(share)] = &families.counter(MetricId::kProcessCpu)
                                            .Add({{"process", process_},
                                                  {"container", container_},
                                                  {"share", std::string(CpuShareText(static_cast<CpuShare>(share)))}});
  }
}

ProcessSeries::~ProcessSeries() {
  for (prometheus::Counter* one : cpu_) families_.counter(MetricId::kProcessCpu).Remove(one);
  for (auto& [key, one] : pauses_) {
    families_.histogram(MetricId::kSuspension).Remove(one.first);
    families_.histogram(MetricId::kTimeToSuspend).Remove(one.second);
  }
  for (prometheus::Counter* one : collections_) {
    if (one != nullptr) families_.counter(MetricId::kCollections).Remove(one);
  }
  if (background_ != nullptr) families_.counter(MetricId::kBackgroundCollections).Remove(background_);
  if (allocated_ != nullptr) families_.counter(MetricId::kAllocatedBytes).Remove(allocated_);
  for (auto& [kind, one] : waits_) families_.counter(MetricId::kWaitSeconds).Remove(one);
  for (auto& [tier, one] : jit_) {
    families_.counter(MetricId::kJitSeconds).Remove(one.first);
    families_.counter(MetricId::kJitMethods).Remove(one.second);
  }
  if (info_ != nullptr) families_.gauge(MetricId::kProcessInfo).Remove(info_);
}

void ProcessSeries::Describe(const WindowProcess& process) {
  // A process has one series. Facts that become known later (a runtime, a container's name) replace it. The name is
  // that of its label: it changes with the label, and no more often.
  const Labels labels = {{"process", process_},
                         {"pid", absl::StrCat(process.pid)},
                         {"comm", std::string(absl::StripSuffix(process_, absl::StrCat("-", process.pid)))},
                         {"container", LabelValue(process.container)},
                         {"container_id", LabelValue(process.container_id)},
                         {"runtime", LabelValue(process.runtime)},
                         {"service", LabelValue(process.labels.service())},
                         {"k8s_namespace_name", LabelValue(process.labels.Get(LabelKey::kKubernetesNamespace))},
                         {"k8s_pod_name", LabelValue(process.labels.Get(LabelKey::kKubernetesPod))},
                         {"k8s_container_name", LabelValue(process.labels.Get(LabelKey::kKubernetesContainer))}};
  if (labels == described_) return;
  described_ = labels;
  Families::GaugeFamily& family = families_.gauge(MetricId::kProcessInfo);
  if (info_ != nullptr) family.Remove(info_);
  info_ = &family.Add(labels);
  info_->Set(1);
}

void ProcessSeries::Add(const ProcessAmounts& amounts) {
  for (size_t i = 0; i < cpu_.size(); ++i) cpu_[i]->Increment(Seconds(amounts.cpu_ns[i]));
  if (amounts.dotnet) MakeOfDotNet();
  for (size_t i = 0; i < collections_.size(); ++i) {
    if (collections_[i] != nullptr) collections_[i]->Increment(static_cast<double>(amounts.collections[i]));
  }
  if (background_ != nullptr) background_->Increment(static_cast<double>(amounts.background));
  if (allocated_ != nullptr) allocated_->Increment(static_cast<double>(amounts.allocated_bytes));
  AddWaits(amounts.waits);
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

// A kind that a process has never waited for has no series.
void ProcessSeries::AddWaits(const WaitTimes& waits) {
  VisitWaitStates(waits, [&](absl::string_view kind, uint64_t ns) {
    if (ns == 0 || kind == kRunningState) return;
    prometheus::Counter*& series = waits_[std::string(kind)];
    if (series == nullptr) {
      series = &families_.counter(MetricId::kWaitSeconds).Add({{"process", process_}, {"kind", std::string(kind)}});
    }
    series->Increment(Seconds(ns));
  });
}

// From the first sight on, so that the first collection is a step from 0.
void ProcessSeries::MakeOfDotNet() {
  if (background_ != nullptr) return;
  allocated_ = &families_.counter(MetricId::kAllocatedBytes).Add({{"process", process_}});
  background_ = &families_.counter(MetricId::kBackgroundCollections).Add({{"process", process_}});
  for (size_t i = 0; i < collections_.size(); ++i) {
    collections_[i] =
        &families_.counter(MetricId::kCollections).Add({{"process", process_}, {"generation", absl::StrCat(i)}});
    HistogramsOf({"gc", absl::StrCat(i)});
  }
}

std::pair<prometheus::Histogram*, prometheus::Histogram*> ProcessSeries::HistogramsOf(const PauseKey& key) {
  const auto found = pauses_.find(key);
  if (found != pauses_.end()) return found->second;
  if (pauses_.size() >= kMostReasons && key.first != kOtherSeries) return HistogramsOf({kOtherSeries, "none"});
  const Labels labels = {{"process", process_}, {"reason", key.first}, {"generation", key.second}};
  const prometheus::Histogram::BucketBoundaries bounds(std::begin(kPauseBuckets), std::end(kPauseBuckets));
  return pauses_[key] = {&families_.histogram(MetricId::kSuspension).Add(labels, bounds),
                         &families_.histogram(MetricId::kTimeToSuspend).Add(labels, bounds)};
}

std::pair<prometheus::Counter*, prometheus::Counter*> ProcessSeries::JitOf(const std::string& tier) {
  const auto found = jit_.find(tier);
  if (found != jit_.end()) return found->second;
  const Labels labels = {{"process", process_}, {"tier", tier}};
  return jit_[tier] = {&families_.counter(MetricId::kJitSeconds).Add(labels),
                       &families_.counter(MetricId::kJitMethods).Add(labels)};
}

ContainerSeries::ContainerSeries(Families& families, const std::string& container) : families_(families) {
  for (int share = 0; share < kCpuShareCount; ++share) {
    cpu_[static_cast<size_t>(share)] =
        &families.counter(MetricId::kContainerCpu)
             .Add({{"container", container}, {"share", std::string(CpuShareText(static_cast<CpuShare>(share)))}});
  }
}

ContainerSeries::~ContainerSeries() {
  for (prometheus::Counter* one : cpu_) families_.counter(MetricId::kContainerCpu).Remove(one);
}

void ContainerSeries::Add(const std::array<uint64_t, kCpuShareCount>& cpu_ns) {
  for (size_t i = 0; i < cpu_.size(); ++i) cpu_[i]->Increment(Seconds(cpu_ns[i]));
}

}  // namespace clrsampler
