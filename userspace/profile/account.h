// The honest account of a run: what was expected, what came, what was lost and why, and how much of it has a name.
#ifndef CLRSAMPLER_PROFILE_ACCOUNT_H_
#define CLRSAMPLER_PROFILE_ACCOUNT_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "formats/labels/process_labels.h"
#include "status/notices.h"
#include "symbols/frame.h"

namespace clrsampler {

struct FrameCounts {
  uint64_t named = 0;
  uint64_t unnamed = 0;
};

struct ProcessAccount {
  uint32_t pid = 0;
  std::string comm;
  std::string runtime;                      // "10.0.12"; empty: no .NET runtime seen
  std::vector<std::string> symbol_sources;  // words of NameSourceText, most used first
  uint64_t samples = 0;
  std::string container;  // name, or runtime and short id, or systemd service; empty: none of these
  std::string container_id;
  std::string pod_uid;
  ProcessLabels labels;
};

// All counts are of this run. Invariant: samples_taken = samples_written + samples_set_aside + the losses after
// capture.
struct Account {
  uint64_t samples_expected = 0;
  uint64_t clock_due = 0;                // runs of the sampling clocks of all CPUs that the time should have given,
  uint64_t clock_ran = 0;                // and that came; also where nothing ran that is sampled
  double stolen_seconds = 0;             // CPU time of all CPUs that a hypervisor gave to others
  uint64_t samples_taken = 0;            // received from BPF
  uint64_t samples_written = 0;          // in the profile
  uint64_t samples_set_aside = 0;        // nobody asked for their names: RecordOptions::only_blame
  uint64_t sample_bytes = 0;             // of what BPF sent
  std::map<std::string, uint64_t> lost;  // by reason; samples that BPF could not send and records we could not read
  FrameCounts managed;
  FrameCounts native;
  FrameCounts kernel;
  std::array<uint64_t, kNameSourceCount> frames_by_source{};
  std::map<std::string, uint64_t> unnamed_reasons;  // text of the unnamed frame -> frames
  std::map<std::string, uint64_t> marks;            // text of a mark -> how often it stands in a stack
  std::map<std::string, uint64_t> roles;            // text of a role -> how often; "[jit]" for all compilations
  uint64_t stacks_complete = 0;
  uint64_t stacks_truncated = 0;
  uint64_t stacks_broken = 0;
  std::map<std::string, uint64_t> stack_stops;    // by the walk's stop reason
  std::map<std::string, uint64_t> unwind;         // UnwindCounters and what unwind data was there, by name
  std::vector<ProcessAccount> processes;          // most samples first
  std::map<std::string, uint64_t> memory;         // MemoryMethodsCounters::ByName, R2rMemoryCounters::ByName
  std::map<std::string, uint64_t> pauses;         // PauseWatchCounters::ByName; empty where no hooks were planted
  std::map<std::string, uint64_t> jit;            // JitWatchCounters::ByName; likewise
  std::map<std::string, uint64_t> allocations;    // AllocationWatchCounters::ByName; likewise
  std::map<std::string, uint64_t> exceptions;     // ExceptionWatchCounters::ByName; likewise
  std::map<std::string, uint64_t> rethrown;       // exceptions that were thrown again, by type; seen or not
  std::map<std::string, uint64_t> waits;          // WaitWatchCounters::ByName, with the kernel's; likewise
  std::map<std::string, uint64_t> events;         // of a runtime's stream; empty where it is not the source
  std::map<std::string, uint64_t> perf_maps;      // PerfMapLeaseCounters::ByName; empty without --enable-perf-map
  std::map<std::string, uint64_t> symbol_server;  // SymbolServerCounters::ByName; empty without a server
  std::map<std::string, uint64_t> pdbs;           // AssemblyPdbsCounters::ByName; empty without --lines
  std::vector<std::string> without_pdb;           // names of assemblies, the first few
  std::map<std::string, uint64_t> async;          // AsyncCallersCounters::ByName; empty without --async-stacks
  std::map<std::string, uint64_t> traces;         // samples of threads that publish ids; empty where none do
  std::map<std::string, uint64_t> native_lines;   // NativeLineCounters::ByName; empty without --lines
  uint64_t frames_with_line = 0;                  // managed ones
  uint64_t native_frames_with_line = 0;
  std::map<std::string, uint64_t> code;  // CodeLog::CountersByName; empty without --code
  std::vector<Notice> notices;
  std::map<std::string, uint64_t> notice_counts;
  double duration_seconds = 0;
  double self_cpu_seconds = 0;
  uint64_t self_peak_rss_bytes = 0;
  uint64_t bpf_map_bytes = 0;

  void CountFrame(const Frame& frame, uint64_t times);
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_ACCOUNT_H_
