// Metrics of the host's processes and of the profiler itself for Prometheus; docs/metrics.md describes each one.
//
// Windows in, text out. Series of processes are bounded (series_slots.h): the most active have their own, named
// "comm-pid", the rest is summed up under process="other". When a process has ended its series stay for two minutes
// and then go, and its past is not moved to "other": that would look like a jump of "other" in every rate. So rates are
// summed, never sums rated; what must never go backwards as a whole is in the families without `process`.
//
// Threads: Observe from one; everything else from any, at the same time.
#ifndef CLRSAMPLER_EXPORT_METRICS_H_
#define CLRSAMPLER_EXPORT_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "profile/window.h"

namespace clrsampler {

// True: the process is alive, or is a zombie.
bool IsInProc(uint32_t pid);

struct MetricsOptions {
  std::string version;
  size_t max_processes = 50;
  uint64_t grace_ns = uint64_t{120} * 1'000'000'000;  // series stay so long after the end of a process
  std::function<bool(uint32_t pid)> process_exists;   // empty: looks into /proc
  uint64_t started_unix_ns = 0;                       // the last window "ended" then, until there is one
};

// Events besides windows. Words are of small fixed sets.
enum class WindowResult : uint8_t { kWritten, kFailed };
enum class PushResult : uint8_t { kSent, kUnreadable, kRefused, kFailed };
enum class PushLoss : uint8_t { kQueueFull, kRefused, kTooOld, kEnding, kWindow, kTooLarge };
enum class RecordingResult : uint8_t { kKept, kLimited, kFailed };

class Metrics {
 public:
  static std::unique_ptr<Metrics> Make(const MetricsOptions& options);
  virtual ~Metrics() = default;

  // A pause that a window does not list (Window::pauses_left_out: the shortest of very many) is counted with
  // reason="unlisted". The number of such pauses and the sums of their times are exact, since WindowProcess has them;
  // the buckets are those of their mean. Likewise compilations with tier="unlisted".
  virtual void Observe(const Window& window) = 0;

  virtual void CountWindow(WindowResult result) = 0;
  virtual void SetStoreBytes(uint64_t bytes) = 0;
  // `trigger` is its kind: "pause", "suspend-delay", "cpu", "alloc". Those that may come are there from the start, with
  // 0: an absent series would hide its first step.
  virtual void ExpectRecordings(absl::string_view trigger) = 0;
  virtual void CountRecording(absl::string_view trigger, RecordingResult result) = 0;
  virtual void CountRequest(absl::string_view endpoint, unsigned status) = 0;
  virtual void CountConnectionEnd(absl::string_view end) = 0;
  virtual void CountPush(PushResult result, uint64_t bytes) = 0;
  virtual void CountPushLoss(PushLoss loss) = 0;
  // The same of OTLP, where samples of CPU time are counted from the window to their end.
  virtual void CountOtlp(PushResult result, uint64_t bytes, uint64_t samples) = 0;
  virtual void CountOtlpLoss(PushLoss loss, uint64_t samples) = 0;
  virtual void CountOtlpTaken(uint64_t samples) = 0;
  virtual void CountOtlpRejected(uint64_t profiles) = 0;
  virtual void SetOtlpWaiting(uint64_t requests, uint64_t bytes, uint64_t samples) = 0;

  // In the text format, version 0.0.4. `own_process`: with the process_* metrics of this process, which have no place
  // in a file for node_exporter, since that has its own of these names.
  virtual std::string Text(bool own_process) const = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_METRICS_H_
