// The options of a recording, and what follows from them for the parts of which it is made.
#ifndef CLRSAMPLER_PIPELINE_RECORD_OPTIONS_H_
#define CLRSAMPLER_PIPELINE_RECORD_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/sampler.h"
#include "capture/side_band_parser.h"
#include "clr/lines/assembly_pdbs.h"
#include "clr/perf_map/perf_map_lease.h"
#include "formats/names/frame_text.h"
#include "os/tape.h"
#include "pipeline/event_budget.h"
#include "pipeline/rate_control.h"
#include "pipeline/run_profile.h"
#include "pipeline/window_clock.h"
#include "process/process.h"
#include "profile/suspension_tracker.h"
#include "profile/window.h"
#include "runtime_events/jit_watch.h"
#include "runtime_events/pause_watch.h"
#include "runtime_events/thread_creation_watch.h"
#include "symbol_server/symbol_server.h"

namespace clrsampler {

class CriHelper;
class FileBroker;
class LineHelper;

// The continuous mode: windows of the whole host, all views at once.
struct WindowOptions {
  std::function<void(Window)> on_window;  // on the main loop, which must not wait
  WindowLengths lengths;
  std::function<bool(const Process&)> selects;  // whose samples count; empty: all
  RateLimits limits;                            // frequency_hz: that of RecordOptions
  bool allocations = false;                     // what .NET programs allocate as well
  bool waits = false;                           // and where threads wait
  // The caller looks at Recorder::wants_fresh_start, and makes another recorder. Without it the run goes on.
  bool begins_anew = false;
};

// Where and when a run that is played was recorded. Empty and 0: not known.
struct RunOrigin {
  std::string host;
  std::string comm;           // of the first process
  uint64_t boot_unix_ns = 0;  // when the monotonic clock was 0
};

struct RecordOptions {
  std::vector<uint32_t> pids;        // empty and no command: the whole host
  std::vector<std::string> command;  // started by us; its children are followed
  std::optional<uint64_t> duration_ns;
  uint32_t frequency_hz = 99;   // samples a second and CPU, where the result is made of samples: see sampling_hz
  uint64_t ring_bytes = 0;      // 0: chosen by the number of CPUs
  uint32_t max_frames = 512;    // of a user stack; at most 1024
  uint32_t gap_words = 1024;    // stack words shipped between two frames; at most 4096
  uint32_t stack_words = 4096;  // of one stack; from there on frames are shipped without the words between them
  bool unwind_data = true;      // false: frame-pointer chains only
  bool async_stacks = false;    // awaiters stand above a resumed async method (async_callers.h); with `unwind_data`
  RecordView view = RecordView::kCpu;
  std::optional<RunOrigin> origin;  // nullopt: this machine, and now
  // Frames that say what a runtime is at, where its own code has no names: "[gc gen1 blocking]". With RecordView::kCpu,
  // and with waits, where they mark threads that wait for the end of a pause.
  bool roles = true;
  bool try_unknown_runtime = false;  // MemoryMethodsOptions
  uint64_t min_wait_ns = 1'000'000;  // of waits: shorter ones are counted and have no stack
  bool waker_stacks = true;
  bool wakers = false;              // behind each wait, who ended it
  double probe_cost_share = 0.003;  // of one CPU that hooks may cost a process; 0: no limit (probe_cost_bucket.h)
  bool mark_suspension = false;     // the outermost frame says in which part of a pause a stack was taken
  // Told of each pause of a .NET process, in the order in which they end; may be empty.
  std::function<void(const ObservedPause&)> on_pause;
  // Told of each compilation, in the order in which they end; may be empty.
  std::function<void(const NamedCompilation&)> on_compilation;
  // Told of each call that pauses and collections are made of, and of what the kernel says of the recorded processes;
  // in the order of their times, also beside each other and on_compilation. Both may be empty.
  std::function<void(const RuntimeEvent&)> on_runtime_event;
  std::function<void(const SideBandEvent&)> on_task_event;
  // Told of each thread that a recorded process makes, with who made it; in the same order. May be empty.
  std::function<void(const ThreadCreation&)> on_thread_created;
  std::optional<WindowOptions> windows;  // `view`, `keep_samples` and so on have no meaning then
  bool only_blame = false;    // with on_pause: samples count, but have names only where they may delay a pause
  bool keep_samples = false;  // each sample with its time, thread and state, for formats that have them
  size_t keep_stacks = 0;     // so many samples are kept with all that unwinding them needs
  NameStyle names = NameStyle::kShort;
  LineOptions lines;
  bool keep_code = false;  // the machine code of methods, and the samples of each instruction; RecordView::kCpu alone
  SymbolServerOptions symbols;                      // without servers nobody is asked
  PerfMapLeaseOptions perf_maps;                    // whether and how perf maps are switched on in targets
  std::shared_ptr<LineHelper> line_helper;          // reads lines of native code; nullptr: the recorder starts one
  std::string cri_socket;                           // of the container runtime that names pods; empty: nobody is asked
  std::shared_ptr<CriHelper> cri_helper;            // asks it; nullptr: the recorder starts one
  std::shared_ptr<FileBroker> files;                // opens files of targets; nullptr: the recorder starts one
  std::function<void(const std::string&)> verbose;  // detail for --verbose, a line each; may be empty
  // On which the run is saved, or from which it is played instead of looking at this machine; nullptr: neither.
  Tape* tape = nullptr;

  // Samples a second and CPU that are taken: 1 where the result has no use for them, as each costs its target 7 us.
  uint32_t sampling_hz() const;
  uint64_t period_ns() const;  // CPU time that a sample stands for
};

// The events that hooks in .NET runtimes have to tell.
struct RuntimeEvents {
  bool pauses = false;
  bool resumed = false;  // also when a pause's threads run again, one hit of six
  bool compilations = false;
  bool compilation_stacks = false;
  bool allocations = false;
  bool exceptions = false;
  bool roles = false;  // frames are added by the former two

  bool any() const { return pauses || compilations || allocations || exceptions; }
};

// The CPU samples that are kept.
enum class SamplesKept { kAll, kPossiblyBlamed, kNone };

bool IsWholeHost(const RecordOptions& options);
bool HasWaits(const RecordOptions& options);
RuntimeEvents EventsFor(const RecordOptions& options);
SamplesKept SamplesKeptFor(const RecordOptions& options);
// A user who wants pauses or compilations themselves gets all of each, at any cost: 0.
double ProbeCostShareFor(const RecordOptions& options);
// A continuous run takes so many events of hooks; others take all.
EventBudget HookEventsFor(const RecordOptions& options);
SamplerOptions SamplerOptionsFor(const RecordOptions& options);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_RECORD_OPTIONS_H_
