// One recording: its stacks and counts, and where it was asked for each sample with its time.
#ifndef CLRSAMPLER_PIPELINE_RUN_PROFILE_H_
#define CLRSAMPLER_PIPELINE_RUN_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "pipeline/process_ledger.h"
#include "pipeline/sample_sink.h"
#include "pipeline/wait_stack.h"
#include "pipeline/wait_sums.h"
#include "profile/event_log.h"
#include "profile/sample_log.h"
#include "profile/stack_table.h"
#include "status/thread_checker.h"

namespace clrsampler {

enum class RecordView : uint8_t {
  kCpu,
  kPause,         // what ran while all threads of a .NET process stood still
  kSuspendDelay,  // what ran while they were asked to, in microseconds of delay instead of samples
  kJit,           // what methods were compiled for, in microseconds of compiling instead of samples
  kAllocations,   // where memory was allocated, in bytes
  kExceptions,    // where exceptions were thrown
  kOffCpu,        // where threads waited, in microseconds
  kWall,          // where they waited and what they ran, in microseconds
};

inline bool HasWaits(RecordView view) { return view == RecordView::kOffCpu || view == RecordView::kWall; }

// Main loop only.
class RunProfile : public SampleSink {
 public:
  struct Options {
    RecordView view = RecordView::kCpu;
    bool with_pid = false;      // root frames read comm-PID, as in a whole-host run
    bool keep_samples = false;  // SampleLog and EventLog are filled
    bool wakers = false;        // behind each wait who ended it
    uint64_t min_wait_ns = 0;   // for the text of what is shorter
    size_t max_kept = 1 << 22;  // of those whose weight is not the last one yet; beyond it they have no times
  };
  RunProfile(const Options& options, FrameTable& frames)
      : view_(options.view),
        keep_samples_(options.keep_samples),
        options_(options),
        wait_stack_(frames, options.wakers ? WakerNames::kExact : WakerNames::kNone),
        ledger_(stacks_, options.with_pid) {}

  bool Add(const NamedSample& sample) override;
  uint64_t AddPause(const ObservedPause& pause) override;
  void AddCollection(ProcessKey process, const GcDone& done) override;
  void AddCompilation(ProcessKey process, const NamedCompilation& compilation) override;
  void AddCompiledStack(const Process& process, std::span<const FrameId> frames, uint64_t own_ns) override;
  void Announce(const Process& process) override { ledger_.LabelOf(process); }
  void AddAllocation(const ObservedAllocation& allocation) override;
  void ScaleAllocations(ProcessKey process, double factor) override { Scale(process, factor); }
  void AddException(const ObservedException& exception) override;
  void ScaleExceptions(ProcessKey process, double factor) override { Scale(process, factor); }
  void AddWait(const ObservedWait& wait) override;
  void SumUpThreads(ProcessKey process, const WaitWatch::Threads& threads) override;

  // For the end of the run.
  void ReplaceFrames(const absl::flat_hash_map<FrameId, FrameId>& names) {
    samples_.ReplaceStacks(stacks_.ReplaceFrames(names));
  }

  const StackTable& stacks() const { return stacks_; }
  const SampleLog& samples() const { return samples_; }
  const EventLog& events() const { return events_; }  // where samples are kept
  ProcessLedger& ledger() { return ledger_; }

 private:
  // Adds an event: its weight is not the last one. `frames` end in a type.
  void AddWeighted(ProcessKey process, std::span<const FrameId> frames, uint64_t weight, MonotonicTime time,
                   uint32_t tid);
  void Scale(ProcessKey process, double factor);
  // Whether one more is kept with its time until its weight is known.
  bool Keeps() { return keep_samples_ && kept_ < options_.max_kept && ++kept_ != 0; }
  void GiveWaits(ProcessKey process, const WaitSums& sums, const WaitWatch::Threads& threads);
  SampleLog::Thread ThreadOfKey(ProcessKey process, uint32_t tid, absl::string_view name);

  const RecordView view_;
  const bool keep_samples_;
  const Options options_;
  WaitStack wait_stack_;
  StackTable stacks_;
  SampleLog samples_;
  EventLog events_;
  ProcessLedger ledger_;
  // Weights that wait for their factor: bytes, or exceptions.
  struct WeightedSample {
    StackId stack = 0;
    uint64_t weight = 0;
    MonotonicTime time;
    uint32_t tid = 0;
  };
  struct Weighted {
    std::vector<WeightedSample> samples;   // those that are kept
    std::map<StackId, uint64_t> by_stack;  // others; in order, so that a replay rounds alike
  };
  absl::flat_hash_map<ProcessKey, Weighted> weighted_;
  absl::flat_hash_map<ProcessKey, WaitSums> waits_;
  size_t kept_ = 0;  // in both; at most 80 bytes each
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_RUN_PROFILE_H_
