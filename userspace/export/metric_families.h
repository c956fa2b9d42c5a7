// Every family of metrics that is served: the only place that lists them. docs/metrics.md says the same for people, and
// a test compares the two.
#ifndef CLRSAMPLER_EXPORT_METRIC_FAMILIES_H_
#define CLRSAMPLER_EXPORT_METRIC_FAMILIES_H_

#include <cstdint>
#include <span>

namespace clrsampler {

enum class MetricId : uint8_t {
  kBuildInfo,
  kProcessInfo,
  kProcesses,
  kProcessCpu,
  kContainerCpu,
  kHostCpu,
  kHostStolen,
  kSuspension,
  kTimeToSuspend,
  kCollections,
  kBackgroundCollections,
  kJitSeconds,
  kJitMethods,
  kAllocatedBytes,
  kWaitSeconds,
  kSamplesExpected,
  kSamplesTaken,
  kSamplesWritten,
  kSamplesSetAside,
  kSamplesLost,
  kRuntimeEventsLost,
  kWaits,
  kHooksDetached,
  kFrames,
  kFramesWithLine,
  kNativeFramesWithLine,
  kPdbs,
  kNativeLineFiles,
  kStacks,
  kNotices,
  kPerfMaps,
  kFrequency,
  kFrequencyChanges,
  kCoveredSeconds,
  kLastWindow,
  kClockJumps,
  kWindows,
  kStoreBytes,
  kFlightRecordings,
  kHttpRequests,
  kHttpConnectionsEnded,
  kPushes,
  kPushDropped,
  kPushBytes,
  kOtlpRequests,
  kOtlpDropped,
  kOtlpBytes,
  kOtlpSamples,
  kOtlpRejected,
  kOtlpWaitingRequests,
  kOtlpWaitingBytes,
  kOtlpWaitingSamples,
  kAgentCpu,
  kAgentMemory,
  kBpfMapBytes,
  kSelfCpu,
  kSelfResident,
  kSelfVirtual,
  kSelfOpenFds,
  kSelfMaxFds,
  kSelfStart,
};
inline constexpr size_t kMetricIdCount = static_cast<size_t>(MetricId::kSelfStart) + 1;

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

struct MetricFamilyRow {
  MetricId id;
  MetricKind kind;
  const char* name;
  const char* labels;  // "process, reason"; "" for none
  const char* help;
};

// In the order of the ids.
std::span<const MetricFamilyRow, kMetricIdCount> MetricFamilies();

// Upper bounds of the buckets of both histograms, in seconds.
inline constexpr double kPauseBuckets[] = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                           0.05,    0.1,    0.25,    0.5,    1,     2.5,    5,     10};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_METRIC_FAMILIES_H_
