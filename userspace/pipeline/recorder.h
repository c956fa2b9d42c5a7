// One recording from start to account, or windows without an end: builds everything, runs the main loop, stops in
// order.
//
// A turn of the loop: read side-band events and samples into the hold queue; then handle, in the order of their times,
// what is older than the previous turn, so that nothing from before it can still arrive. Events change the process
// table; samples are unwound, named as of their own time, and counted.
#ifndef CLRSAMPLER_PIPELINE_RECORDER_H_
#define CLRSAMPLER_PIPELINE_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/perf_map_lease.h"
#include "formats/names/frame_text.h"
#include "os/clock.h"
#include "pipeline/jit_watch.h"
#include "pipeline/pause_watch.h"
#include "pipeline/rate_control.h"
#include "pipeline/run_profile.h"
#include "pipeline/window_clock.h"
#include "process/process.h"
#include "profile/account.h"
#include "profile/sample_log.h"
#include "profile/stack_table.h"
#include "profile/window.h"
#include "symbol_server/symbol_server.h"
#include "symbols/frame.h"
#include "unwind/stack_recording.h"

namespace clrsampler {

// The continuous mode: windows of the whole host, all views at once.
struct WindowOptions {
  std::function<void(Window)> on_window;  // on the main loop, which must not wait
  WindowLengths lengths;
  std::function<bool(const Process&)> selects;  // whose samples count; empty: all
  RateLimits limits;                            // frequency_hz: that of RecordOptions
};

struct RecordOptions {
  std::vector<uint32_t> pids;        // empty and no command: the whole host
  std::vector<std::string> command;  // started by us; its children are followed
  std::optional<uint64_t> duration_ns;
  uint32_t frequency_hz = 99;   // samples a second and CPU
  uint64_t ring_bytes = 0;      // 0: chosen by the number of CPUs
  uint32_t max_frames = 512;    // of a user stack; at most 1024
  uint32_t gap_words = 1024;    // stack words shipped between two frames; at most 4096
  uint32_t stack_words = 4096;  // of one stack; from there on frames are shipped without the words between them
  bool replay = true;           // false: frame-pointer chains only
  RecordView view = RecordView::kCpu;
  // Frames that say what a runtime is at, where its own code has no names: "[gc gen1 blocking]". With RecordView::kCpu.
  bool roles = true;
  bool mark_suspension = false;  // the outermost frame says in which part of a pause a stack was taken
  // Told of each pause of a .NET process, in the order in which they end; may be empty.
  std::function<void(const ObservedPause&)> on_pause;
  // Told of each compilation, in the order in which they end; may be empty.
  std::function<void(const NamedCompilation&)> on_compilation;
  std::optional<WindowOptions> windows;  // `view`, `keep_samples` and so on have no meaning then
  bool only_blame = false;    // with on_pause: samples count, but have names only where they may delay a pause
  bool keep_samples = false;  // each sample with its time, thread and state, for formats that have them
  size_t keep_stacks = 0;     // so many samples are kept with all that unwinding them needs
  NameStyle names = NameStyle::kShort;
  SymbolServerOptions symbols;                      // without servers nobody is asked
  PerfMapLeaseOptions perf_maps;                    // whether and how perf maps are switched on in targets
  std::function<void(const std::string&)> verbose;  // detail for --verbose, a line each; may be empty
};

struct RecordProgress {
  double seconds = 0;
  uint64_t samples = 0;
  uint64_t handled = 0;  // of these: were looked at
  uint64_t named = 0;    // of these: every frame of the stack has a name
  uint64_t lost = 0;
};

// Not movable; used on one thread.
class Recorder {
 public:
  // Loads the BPF programs and finds the targets; nothing is sampled yet. Errors carry a hint.
  static absl::StatusOr<std::unique_ptr<Recorder>> Create(const RecordOptions& options);
  virtual ~Recorder() = default;

  // Samples until the duration is over, a signal comes, or the last target exits; then names what is left.
  // `progress` is called about once a second.
  virtual absl::Status Run(const std::function<void(const RecordProgress&)>& progress) = 0;

  // Windows only: the agent took too much memory for long, whatever the rate, and Run has returned for that reason; a
  // new recorder begins with little.
  virtual bool wants_fresh_start() const = 0;
  // The signal that ended Run; 0: none did.
  virtual int stop_signal() const = 0;

  // With RecordOptions::on_pause: why pauses of this process can't be seen.
  virtual absl::Status WatchesPausesOf(uint32_t pid) = 0;
  // The same of on_compilation.
  virtual absl::Status WatchesCompilationsOf(uint32_t pid) = 0;

  virtual const FrameTable& frames() const = 0;
  virtual const StackTable& stacks() const = 0;
  virtual const Account& account() const = 0;
  virtual const SampleLog& samples() const = 0;  // empty without RecordOptions::keep_samples
  virtual MonotonicTime began() const = 0;       // sampling
  virtual const StackRecording& kept_stacks() const = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_RECORDER_H_
