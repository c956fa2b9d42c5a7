// How many samples there should be: the CPU time that the selected processes really used, in periods.
//
// Sampling and scheduler accounting are independent, so a sample that vanishes without a trace (a timer that did not
// fire, another BPF program in the way) shows as a difference.
#ifndef CLRSAMPLER_PIPELINE_EXPECTED_SAMPLES_H_
#define CLRSAMPLER_PIPELINE_EXPECTED_SAMPLES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class ExpectedSamples {
 public:
  // CPU time that a process has used so far, in ns (process/cpu_time.h); nullopt: it is gone.
  using ProcessClock = std::function<std::optional<uint64_t>(uint32_t pid)>;

  ExpectedSamples(uint32_t frequency_hz, ProcessClock process_cpu_ns);

  // The time that the host's CPUs were busy, of any beginning. A reading that shrinks, as when a CPU goes, counts as
  // none.
  void SetHostBusyNs(uint64_t busy_ns);
  // Counts the whole host, from the last reading on.
  void StartHost();
  // Counts a process from now on. `from_birth`: all its time counts, it began after sampling.
  void StartProcess(uint32_t pid, bool from_birth);
  // The process has ended: its last reading stands.
  void EndProcess(uint32_t pid);
  // Reads the clocks of processes again; one that can't be read any more keeps its last reading, so call it more often
  // than processes die.
  void Update();
  // The time that a child that we waited for used in all, its own children included. It is more exact than readings,
  // which miss the end.
  void SetChildCpuNs(uint64_t cpu_ns) { child_cpu_ns_ = cpu_ns; }

  // The rate changes: what was used so far counts at the old one. Right after Update. Not for single processes that end
  // (SetChildCpuNs).
  void SetFrequency(uint32_t frequency_hz);

  uint64_t samples() const;

 private:
  struct Reading {
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
  };
  ProcessClock process_cpu_ns_;
  uint32_t frequency_hz_;
  bool host_ = false;
  Reading host_reading_;
  absl::flat_hash_map<uint32_t, Reading> processes_;
  uint64_t ended_ns_ = 0;  // of processes that have ended
  uint64_t child_cpu_ns_ = 0;
  uint64_t before_ = 0;  // samples at earlier rates
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_EXPECTED_SAMPLES_H_
