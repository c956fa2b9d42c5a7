// From samples to the addresses of whole stacks: by unwind data, or by frame pointers where that is asked
// for.
#ifndef CLRSAMPLER_PIPELINE_SAMPLE_UNWINDER_H_
#define CLRSAMPLER_PIPELINE_SAMPLE_UNWINDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/source_order.h"
#include "process/image_files.h"
#include "status/thread_checker.h"
#include "symbols/symbolizer.h"
#include "unwind/frame_chain.h"
#include "unwind/raw_stack.h"
#include "unwind/stack_recording.h"
#include "unwind/stack_unwinder.h"
#include "unwind_data/arm64_jit_code.h"
#include "unwind_data/elf_unwind_data.h"
#include "unwind_data/jit_unwind_data.h"
#include "unwind_data/process_code.h"
#include "unwind_data/r2r_unwind_data.h"

namespace clrsampler {

struct SampleUnwinderOptions {
  bool unwind_data = true;  // false: frame-pointer chains
  uint32_t max_frames = 512;
  ElfMachine machine = kHostMachine;  // of the samples
  size_t keep = 0;                    // so many samples are kept, those first whose stacks are in doubt
};

// A sample's stack as it was when the sample arrived. Where all code that it leads through stays what it is, it is the
// sample's stack for good and not walked twice.
struct EarlyStack {
  UserStack stack;
  UnwindCounters counters;                      // of that walk
  std::optional<ProcessCode::Version> version;  // as long as the process has it; nullopt: it has to be walked again
};

// Main loop only. Borrows what it is given.
class SampleUnwinder {
 public:
  SampleUnwinder(SampleUnwinderOptions options, const Sources& sources, ImageFiles& images, Symbolizer& symbolizer,
                 const Clock& clock);

  // A sample that has just arrived: sources of names and of unwind data look at its code while it is there. `early`,
  // which may have been another sample's, becomes what they know of its stack so far.
  void Observe(const Process& process, const RawStack& stack, EarlyStack& early);

  // The stack as of the time of the sample, which Observe made `early` of. The result is valid until the next call, or
  // until `early` changes.
  const UserStack& Walk(const Process& process, const RawStack& stack, const EarlyStack& early);

  // How much code it has met that is not in files; grows with each method.
  ElfMachine machine() const { return options_.machine; }
  uint64_t code_met() const { return jit_.counters().methods + arm64_.counters().leaves; }

  const StackRecording& kept() const { return kept_; }

  // The fate of all frames, by name, as --stats shows it.
  std::map<std::string, uint64_t> Counters() const;
  const ElfUnwindData& images() const { return elf_; }

 private:
  void Keep(const RawStack& stack);
  void Show(const Process& process, const RawStack& sample, const UserStack& stack,
            std::span<const wire_code_snapshot> snapshots, std::span<const uint64_t> shown);

  const SampleUnwinderOptions options_;
  Symbolizer& symbolizer_;
  JitUnwindData jit_;
  R2rUnwindData r2r_;
  ElfUnwindData elf_;
  Arm64JitCode arm64_;
  ProcessCode code_;
  StackUnwinder unwinder_;
  StackUnwinder preview_;  // of samples that have just arrived
  StackRecording kept_;
  size_t kept_doubtful_ = 0;
  UserStack stack_;
  std::vector<uint64_t> addresses_;
  std::vector<uint64_t> shown_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_SAMPLE_UNWINDER_H_
