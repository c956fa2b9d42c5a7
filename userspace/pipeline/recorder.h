// One recording from start to account, or windows without an end: builds everything, runs the main loop, stops in
// order.
//
//   RecordOptions   what is asked for
//   Targets         whose samples are taken
//   Intake          reads events and samples out of the rings and holds them
//   SampleHandler   unwinds, names and counts a sample
//
// An iteration of the loop: the intake reads; then what is older than the previous iteration, so that nothing from
// before it can still arrive, is handled in the order of its times. Events change the process table; samples are named
// as of their own time.
#ifndef CLRSAMPLER_PIPELINE_RECORDER_H_
#define CLRSAMPLER_PIPELINE_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "os/clock.h"
#include "pipeline/fresh_start.h"
#include "pipeline/record_options.h"
#include "profile/account.h"
#include "profile/code_log.h"
#include "profile/sample_log.h"
#include "profile/stack_table.h"
#include "symbols/frame.h"
#include "symbols/source_files.h"
#include "unwind/stack_recording.h"

namespace clrsampler {

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

  // With WindowOptions::begins_anew: Run has returned for this reason, and nothing else ended it.
  virtual FreshStart wants_fresh_start() const = 0;
  // The process of the command that Create has started and holds back; 0: there is none.
  virtual uint32_t command_pid() const = 0;
  // The signal that ended Run; 0: none did.
  virtual int stop_signal() const = 0;

  // With RecordOptions::on_pause: why pauses of this process can't be seen.
  virtual absl::Status WatchesPausesOf(uint32_t pid) = 0;
  // The same of on_compilation.
  virtual absl::Status WatchesCompilationsOf(uint32_t pid) = 0;
  virtual absl::Status WatchesAllocationsOf(uint32_t pid) = 0;
  virtual absl::Status WatchesExceptionsOf(uint32_t pid) = 0;

  virtual const FrameTable& frames() const = 0;
  virtual const SourceFiles& source_files() const = 0;  // empty without lines
  virtual const CodeLog* code() const = 0;              // nullptr without RecordOptions::keep_code
  virtual const StackTable& stacks() const = 0;
  virtual const Account& account() const = 0;
  virtual const SampleLog& samples() const = 0;  // empty without RecordOptions::keep_samples
  virtual const EventLog& events() const = 0;    // the same
  virtual MonotonicTime began() const = 0;       // sampling
  virtual const StackRecording& kept_stacks() const = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_RECORDER_H_
