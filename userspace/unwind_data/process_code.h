// All code of a process, as unwinding asks for it: precompiled and compiled managed code, native images.
#ifndef CLRSAMPLER_UNWIND_DATA_PROCESS_CODE_H_
#define CLRSAMPLER_UNWIND_DATA_PROCESS_CODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "process/per_process.h"
#include "process/process.h"
#include "status/thread_checker.h"
#include "symbols/frame_source.h"
#include "unwind/code_finder.h"
#include "unwind_data/arm64_jit_code.h"
#include "unwind_data/elf_unwind_data.h"
#include "unwind_data/jit_unwind_data.h"
#include "unwind_data/r2r_unwind_data.h"

namespace clrsampler {

// Main loop only. Borrows what it is given.
class ProcessCode {
 public:
  // `arm64`: takes the place of the runtime's data on that machine; else nullptr. `omits_frames`: whether JIT-compiled
  // code of the process is .NET's on x86-64.
  ProcessCode(JitUnwindData& jit, R2rUnwindData& r2r, ElfUnwindData& elf, Arm64JitCode* arm64,
              std::function<bool(ProcessKey)> omits_frames)
      : jit_(jit), r2r_(r2r), elf_(elf), arm64_(arm64), omits_frames_(std::move(omits_frames)) {}

  // Answers about this process as of that time, until the next call of any function here.
  CodeFinder& For(const Process& process, MonotonicTime time);

  // The versions that answers which last depend on.
  struct Version {
    uint64_t mappings = 0;  // generation
    uint32_t exec_count = 0;
    uint64_t jit_cleared = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  Version VersionOf(const Process& process) const {
    return {process.mappings.generation(), process.exec_count, jit_.counters().cleared};
  }
  // Whether all answers since the last call of For are the same as long as the process's version is.
  bool answers_last() const { return finder_.answers_last_; }

  // A sample that has just arrived: what is in memory only is read while it is there.
  void Observe(const Process& process, const ObservedSample& sample);

  // The bytes of all that is kept to unwind stacks, here and in the three.
  size_t heap_bytes() const;

 private:
  // The places that a stack's return addresses lead to again and again: 4.5 MB a process at the most.
  static constexpr size_t kMaxKnown = 16'384;

  struct Known {
    CodeAt code;
    uint64_t mappings = 0;  // generation for which it holds
    uint64_t mapping_start = 0;
    MappingIdentity mapping;
    MappingKind kind = MappingKind::kOther;

    bool HoldsIn(const Mapping& now) const {
      if (kind != now.kind) return false;
      // The heap of compiled code grows, and its mapping with it.
      if (kind == MappingKind::kJitMemory) return code.permanent;
      return mapping_start == now.start && mapping == MappingIdentity::Of(now);
    }
  };
  struct ProcessState {
    uint32_t exec_count = 0;
    uint64_t jit_cleared = 0;                    // JitUnwindCounters::cleared, as of which it holds
    absl::flat_hash_map<uint64_t, Known> known;  // of code in image files, and permanent compiled code, by address
  };
  class Finder : public CodeFinder {
   public:
    explicit Finder(ProcessCode& owner) : owner_(owner) {}
    const CodeAt& At(uint64_t address) override;

   private:
    friend class ProcessCode;
    const CodeAt* Lasting(uint64_t address);  // nullptr: not known, or not for good
    ProcessCode& owner_;
    const Process* process_ = nullptr;
    ProcessState* target_ = nullptr;
    MonotonicTime time_;
    bool answers_last_ = true;
    CodeAt answer_;
  };

  CodeAt Find(const FrameQuery& query);

  JitUnwindData& jit_;
  R2rUnwindData& r2r_;
  ElfUnwindData& elf_;
  Arm64JitCode* arm64_;
  std::function<bool(ProcessKey)> omits_frames_;
  PerProcess<std::unique_ptr<ProcessState>> states_;
  Finder finder_{*this};
  std::vector<uint64_t> fresh_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_DATA_PROCESS_CODE_H_
