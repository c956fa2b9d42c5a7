// Conditions under which a flight recording is kept: "pause>100ms", "suspend-delay>20ms", "cpu>80% for 10s",
// "alloc>500MB/s", "wait:monitor+lock>50% for 10s". Pure.
#ifndef CLRSAMPLER_SERVE_TRIGGER_H_
#define CLRSAMPLER_SERVE_TRIGGER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "profile/wait_kind.h"
#include "profile/window.h"

namespace clrsampler {

enum class TriggerKind : uint8_t {
  kPause,         // of a process: from the request until its threads ran again
  kSuspendDelay,  // of a pause: until all threads stood still
  kCpu,           // of a process: CPU time per time; 100 % is one CPU
  kAllocations,   // of a process: bytes that it allocates per time
  kWaits,         // of a process: time that its threads wait for some kinds of things per time; 100 % is one thread
};

struct Trigger {
  TriggerKind kind = TriggerKind::kPause;
  uint64_t more_than_ns = 0;    // kPause, kSuspendDelay
  double more_than_rate = 0;    // kCpu: CPUs; kAllocations: bytes a second; kWaits: threads
  std::vector<WaitKind> waits;  // kWaits
  uint64_t for_ns = 0;          // of rates: for so long without a window below
  std::string text;             // as it was given, without spaces at its ends
};

// InvalidArgument with a hint.
absl::StatusOr<Trigger> ParseTrigger(absl::string_view text);

struct TriggerHit {
  // A pause from its request to its end, which may be minutes later. A rate has the end of its window as both.
  uint64_t begin_unix_ns = 0, end_unix_ns = 0;
  uint32_t pid = 0;
  uint64_t started_boot_ns = 0;  // with the pid: which process
  std::string comm;
  std::string container;
  std::string value;   // what was seen: "a pause of 132 ms (gen2 blocking)"
  bool is_new = true;  // false: a rate that was told in an earlier window, and has been above since
};

// One trigger over windows, in their order.
class TriggerWatch {
 public:
  explicit TriggerWatch(Trigger trigger) : trigger_(std::move(trigger)) {}

  const Trigger& trigger() const { return trigger_; }
  // At most one hit a window: the worst. A rate that stays above is told in each window until it is accepted.
  std::optional<TriggerHit> Observe(const Window& window);
  // A recording of this hit is made, so its process is not told again until its rate was below. The others are.
  void Accept(const TriggerHit& hit);

 private:
  using ProcessId = std::pair<uint32_t, uint64_t>;  // pid, first seen
  struct Above {
    uint64_t length_ns = 0;  // of the windows so far
    bool told = false, accepted = false;
    uint64_t window = 0;  // the last one in which it was
  };
  std::optional<TriggerHit> ObservePauses(const Window& window) const;
  std::optional<TriggerHit> ObserveRate(const Window& window);
  double RateOf(const WindowProcess& process, double seconds) const;
  std::string RateText(double rate) const;

  const Trigger trigger_;
  absl::flat_hash_map<ProcessId, Above> above_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SERVE_TRIGGER_H_
