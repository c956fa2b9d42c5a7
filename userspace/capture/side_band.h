// The actions of all processes, live and in time order: fork, exit, exec and comm changes, executable mappings.
//
// One software dummy event per CPU with a ring of its own; times are CLOCK_MONOTONIC as those of the samples.
#ifndef CLRSAMPLER_CAPTURE_SIDE_BAND_H_
#define CLRSAMPLER_CAPTURE_SIDE_BAND_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "capture/perf_events.h"
#include "capture/side_band_parser.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct SideBandCounters {
  uint64_t events = 0;
  uint64_t lost = 0;     // records that the kernel had no room for
  uint64_t damaged = 0;  // records that could not be parsed
};

// Main loop only.
class SideBand {
 public:
  // `ring_bytes` per CPU, a power of two of pages. 256 KiB: some 130 processes that start, map ten files and end;
  // smaller ones are tried when locked memory is short.
  explicit SideBand(size_t ring_bytes = 256 * 1024);
  SideBand(const SideBand&) = delete;
  SideBand& operator=(const SideBand&) = delete;
  ~SideBand();

  // Starts on every online CPU.
  absl::Status Start();
  // To be called about once per second, as Sampler::AttachNewCpus. `stopped`: Sampler::silent_cpus. An event kLost
  // comes for each CPU that is followed anew.
  absl::Status AttachNewCpus(std::span<const int> online, std::span<const int> stopped = {});
  // No more events; what is there can still be drained.
  void Stop();

  // Becomes readable when a ring is a quarter full; for epoll.
  int poll_fd() const { return poll_.get(); }

  // Hands over, in time order over all CPUs, the events up to `up_to`; later ones wait for the next call. A CPU takes
  // the time of an event shortly before the event can be read, so during a run `up_to` is the time before the call
  // minus kSettleNs; at the end it is Max. Events that come even later than that are still handed over, out of order.
  void Drain(MonotonicTime up_to, absl::FunctionRef<void(const SideBandEvent&)> on_event);
  static constexpr uint64_t kSettleNs = 5'000'000;

  const SideBandCounters& counters() const { return counters_; }
  size_t ring_bytes() const { return ring_bytes_; }

 private:
  struct Ring;

  int OpenRing(int cpu);
  void ReadOne(Ring& ring);

  size_t ring_bytes_;
  CpuEvents events_;
  std::map<int, std::unique_ptr<Ring>> rings_;  // by CPU
  UniqueFd poll_;
  std::vector<SideBandEvent> pending_;  // read, but not handed over yet
  SideBandCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_SIDE_BAND_H_
