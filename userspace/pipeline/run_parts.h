// The parts of which a run is made, whichever kind it is. They are built once, in the order of the dependencies, and
// used by the loop (recorder.cc) and by its session.
#ifndef CLRSAMPLER_PIPELINE_RUN_PARTS_H_
#define CLRSAMPLER_PIPELINE_RUN_PARTS_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/capture.h"
#include "capture/kernel_name_lookup.h"
#include "clr/perf_map/perf_map_lease.h"
#include "clr/runtime_discovery.h"
#include "os/taped_clock.h"
#include "pipeline/account_counts.h"
#include "pipeline/async_callers.h"
#include "pipeline/clock_account.h"
#include "pipeline/intake.h"
#include "pipeline/kernel_symbolizer.h"
#include "pipeline/record_options.h"
#include "pipeline/sample_unwinder.h"
#include "pipeline/sampling_rate.h"
#include "pipeline/source_order.h"
#include "pipeline/stack_symbolizer.h"
#include "pipeline/stop_events.h"
#include "pipeline/targets.h"
#include "pipeline/thread_contexts.h"
#include "pipeline/wait_watch.h"
#include "process/file_broker.h"
#include "process/image_files.h"
#include "process/process_table.h"
#include "profile/account.h"
#include "profile/code_log.h"
#include "runtime_events/runtime_watch.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbol_server/symbol_server.h"
#include "symbols/frame.h"
#include "symbols/symbolizer.h"

namespace clrsampler {

// Main loop only.
struct RunParts {
  RunParts(const RecordOptions& record_options, std::unique_ptr<SymbolServer> server,
           std::shared_ptr<FileBroker> file_broker);
  ~RunParts();

  // The account gets what was counted since the last call.
  void CountAccount();
  // To be called before the rate changes, and at the ends: the time before the call ran at the present rate.
  void UpdateClock();

  const RecordOptions options;
  Tape* const tape;                                   // nullptr: there is none
  const std::unique_ptr<SymbolServer> symbol_server;  // nullptr: no server is named
  const std::shared_ptr<FileBroker> broker;           // nullptr: a tape plays, and no file is opened
  TapedClock clock;
  Notices notices;
  Targets targets;
  FrameTable frames;
  ImageFiles images;
  ProcessTable table;
  KernelSymbolizer kernel;
  RuntimeDiscovery runtimes;
  PerfMapLeases perf_maps;
  Sources sources;
  Symbolizer symbolizer;
  SampleUnwinder unwinder;
  StackSymbolizer stack_symbolizer;
  std::optional<AsyncCallers> async;  // nullopt: not asked for
  ThreadContexts threads;
  SamplingRate rate;
  std::optional<CodeLog> code_log;  // nullopt: nobody wants it
  Account account;                  // of the run, or of the window at hand
  AccountCounts counts;
  ClockAccount clock_account;

  // Once the programs are loaded:
  std::unique_ptr<Capture> capture;
  std::optional<RuntimeWatch> hooks;                    // nullopt: there are none
  std::optional<WaitWatch> waits;                       // nullopt: nobody asked
  std::optional<ThreadCreationWatch> thread_creations;  // likewise
  std::optional<StopEvents> stop;
  std::optional<Intake> intake;
  MonotonicTime started;  // sampling
  MonotonicTime horizon;  // all events up to here have been taken

  // Sources that must prepare themselves do it before the first sample, and the sampler knows of short-lived code from
  // it on.
  void Prepare(uint32_t pid);

 private:
  ThreadContexts::Parts PartsOfThreads();
  void KeepCode();
  absl::StatusOr<std::vector<std::string>> LookUpInKernel(std::span<const uint64_t> addresses);
  void PublishAsyncLayout(const Process& process, const std::optional<wire_async_layouts>& layout);
  void PublishTransientCode(uint32_t tgid, const wire_transient_code& code, std::span<const wire_transient_heap> heaps);

  std::unique_ptr<KernelNameLookup> kernel_lookup_;  // loaded at the first kernel address
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_RUN_PARTS_H_
