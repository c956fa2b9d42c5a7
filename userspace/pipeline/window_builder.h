// Samples, pauses, compilations, allocations and waits -> one Window after the other.
//
// Memory grows with one window only: 24 bytes a sample, and its distinct stacks.
#ifndef CLRSAMPLER_PIPELINE_WINDOW_BUILDER_H_
#define CLRSAMPLER_PIPELINE_WINDOW_BUILDER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "formats/labels/process_labels.h"
#include "os/clock.h"
#include "pipeline/sample_sink.h"
#include "pipeline/wait_stack.h"
#include "pipeline/window_waits.h"
#include "process/process_key.h"
#include "profile/stack_table.h"
#include "profile/trace_links.h"
#include "profile/window.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/source_files.h"

namespace clrsampler {

// Main loop only.
class WindowBuilder : public SampleSink {
 public:
  // `sources`: of the files that lines of frames are in; nullptr: frames have no lines. Both are borrowed.
  // `min_wait_ns`: shorter waits have no stacks.
  explicit WindowBuilder(FrameTable& frames, const SourceFiles* sources = nullptr, uint64_t min_wait_ns = 0)
      : frames_(frames), sources_(sources), min_wait_ns_(min_wait_ns), wait_stack_(frames, WakerNames::kFew) {
    Clear();
  }

  // The window that is being built begins here.
  void Begin(MonotonicTime begin, uint64_t begin_unix_ns) {
    begin_ = begin;
    begin_unix_ns_ = begin_unix_ns;
  }

  bool Add(const NamedSample& sample) override;
  uint64_t AddPause(const ObservedPause& pause) override;
  void AddCollection(ProcessKey process, const GcDone& done) override;
  void AddCompilation(ProcessKey process, const NamedCompilation& compilation) override;
  void Announce(const Process&) override {}
  // Counts in the window in which its factor comes.
  void AddAllocation(const ObservedAllocation& allocation) override;
  void ScaleAllocations(ProcessKey process, double factor) override;
  // Counts in the window in which the times of its process's threads come.
  void AddWait(const ObservedWait& wait) override;
  void SumUpThreads(ProcessKey process, const WaitWatch::Threads& threads) override;
  void AddException(const ObservedException&) override {}
  void ScaleExceptions(ProcessKey, double) override {}
  void AddCompiledStack(const Process& process, std::span<const FrameId> frames, uint64_t own_ns) override;

  // The facts that only its owner knows of a process. Nothing happens to one that this window does not have.
  bool Has(ProcessKey process) const { return rows_of_.contains(process); }
  // Describes a process that had events of its runtime, but no sample.
  void Describe(const Process& process);
  void SetRuntime(ProcessKey process, std::string version, bool hooked);
  void SetLabels(ProcessKey process, ProcessLabels labels);
  void SetExited(ProcessKey process);

  struct Taken {
    Window window;
    std::vector<std::pair<ProfileView, absl::Status>>
        lost;  // views that are empty in it, and why: more than a model holds
  };
  // Gives what has been added since the last call, and begins anew. Missing in the window: number, end_unix_ns,
  // clock_jump_ns, frequencies and all of the account but what is counted by frame.
  Taken Take(uint64_t duration_ns);

 private:
  struct Row {
    ProcessKey key;
    WindowProcess process;
    bool described = false;  // more than its id is known
  };
  struct ThreadRow {
    uint32_t row;
    uint32_t tid;
    std::string name;
  };
  struct SampleRow {
    uint64_t time_ns;  // since the beginning
    uint64_t weight_ns;
    uint32_t thread;
    StackId stack;
    SampleState state;
    uint32_t link;  // of links_
  };
  struct WeighedStack {
    uint32_t thread;
    StackId stack;
    uint64_t weight;
  };

  void Clear();
  uint32_t RowOf(const Process& process);
  uint32_t RowOf(ProcessKey key);
  uint32_t ThreadOf(uint32_t row, uint32_t tid, absl::string_view name);
  StackId Intern(uint32_t row, std::span<const FrameId> frames);
  absl::StatusOr<ProfileModel> CpuModel(ProfileMeta meta) const;
  absl::StatusOr<ProfileModel> ModelOf(ProfileMeta meta, const std::vector<WeighedStack>& stacks) const;
  void AddThreads(ProfileModelBuilder& builder, std::vector<ThreadIndex>& indexes) const;
  void CountFrames(Account& account);
  void PrunePauses();

  const FrameTable& frames_;
  const SourceFiles* const sources_;
  const uint64_t min_wait_ns_;
  WaitStack wait_stack_;
  WindowWaits waits_;
  MonotonicTime begin_;
  uint64_t begin_unix_ns_ = 0;
  std::vector<Row> rows_;
  absl::flat_hash_map<ProcessKey, uint32_t> rows_of_;
  std::vector<ThreadRow> threads_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> threads_of_;  // by row and tid
  std::unique_ptr<StackTable> stacks_;                                       // labels: rows, as decimal numbers
  std::vector<LabelId> labels_;                                              // by row
  std::vector<SampleRow> samples_;
  TraceLinks links_{Window::kMaxLinks};
  std::vector<WeighedStack> delays_;     // ns
  std::vector<WeighedStack> compiled_;   // ns
  std::vector<WeighedStack> allocated_;  // bytes
  std::vector<WeighedStack> waited_;     // ns
  absl::flat_hash_map<ProcessKey, std::vector<WeighedStack>> unscaled_;
  std::vector<WindowPause> pauses_;
  uint64_t pauses_left_out_ = 0;
  std::vector<WindowMethod> methods_;
  absl::flat_hash_map<std::tuple<uint32_t, std::string, std::string>, uint32_t> methods_of_;  // row, method, tier
  uint64_t methods_left_out_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_WINDOW_BUILDER_H_
