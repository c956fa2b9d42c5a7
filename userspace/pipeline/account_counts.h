// Puts what the parts of a run count all along into its account, or into that of each window: as much as came since the
// last one.
#ifndef CLRSAMPLER_PIPELINE_ACCOUNT_COUNTS_H_
#define CLRSAMPLER_PIPELINE_ACCOUNT_COUNTS_H_

#include "capture/capture.h"
#include "clr/lines/assembly_pdbs.h"
#include "clr/memory/memory_methods.h"
#include "clr/perf_map/perf_map_lease.h"
#include "clr/r2r_methods.h"
#include "pipeline/async_callers.h"
#include "pipeline/clock_account.h"
#include "pipeline/counter_deltas.h"
#include "pipeline/expected_samples.h"
#include "pipeline/intake.h"
#include "pipeline/kernel_symbolizer.h"
#include "pipeline/sample_unwinder.h"
#include "pipeline/thread_contexts.h"
#include "pipeline/wait_watch.h"
#include "profile/account.h"
#include "runtime_events/runtime_watch.h"
#include "runtime_events/thread_creation_watch.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/native_lines/native_lines.h"

namespace clrsampler {

struct CountingParts {
  const Capture& capture;
  const RuntimeWatch* hooks;                    // nullptr: there are none
  const WaitWatch* waits;                       // nullptr: nobody asked
  const ThreadCreationWatch* thread_creations;  // likewise
  const Intake& intake;
  const KernelSymbolizer& kernel;
  const ExpectedSamples& expected;
  const ClockAccount& clock;
  const SampleUnwinder& unwinder;
  const MemoryMethods& memory;
  const R2rMethods& precompiled;
  const PerfMapLeases* perf_maps;   // nullptr: none are switched on
  const AssemblyPdbs* pdbs;         // nullptr: nobody wants lines
  const NativeLines* native_lines;  // likewise
  const AsyncCallers* async;        // nullptr: not asked for
  const ThreadContexts& threads;
  Notices& notices;
};

// Main loop only.
class AccountCounts {
 public:
  // Counting begins now: what this process used before is not the run's.
  void Begin();
  void AddTo(Account& account, const CountingParts& parts);

 private:
  void AddClock(Account& account, const CountingParts& parts);
  void AddWaits(Account& account, const CountingParts& parts, const wire_counters& counters);
  void AddThreadCreations(const CountingParts& parts, const wire_counters& counters);
  void AddHooks(Account& account, const CountingParts& parts, const wire_counters& counters);

  CounterDeltas deltas_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_ACCOUNT_COUNTS_H_
