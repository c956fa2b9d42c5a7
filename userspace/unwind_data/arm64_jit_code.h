// Code that was compiled in the process, on arm64. The runtime's own data is not read there, and need not be: managed
// code keeps frame records. Where a leaf has none, the instructions around it say so (formats/unwind/arm64_code.h),
// which are read when the sample arrives. Stubs, which lie in the same memory, are told by their instructions, too.
#ifndef CLRSAMPLER_UNWIND_DATA_ARM64_JIT_CODE_H_
#define CLRSAMPLER_UNWIND_DATA_ARM64_JIT_CODE_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "clr/r2r_memory_images.h"
#include "process/per_process.h"
#include "process/process.h"
#include "status/thread_checker.h"
#include "symbols/frame_source.h"
#include "unwind/code_finder.h"

namespace clrsampler {

struct Arm64JitCodeCounters {
  uint64_t leaves = 0;         // whose instructions were read
  uint64_t without_frame = 0;  // of these: their return address was in x30
  uint64_t unreadable = 0;
};

// Main loop only.
class Arm64JitCode {
 public:
  // `is_dotnet`: whether the process holds a .NET runtime, whose code keeps frame records.
  Arm64JitCode(ReadMemory read_memory, std::function<bool(ProcessKey)> is_dotnet)
      : read_memory_(std::move(read_memory)), is_dotnet_(std::move(is_dotnet)) {}

  // kManaged or kUnknown.
  CodeAt At(const FrameQuery& query);
  // To be called when a sample arrives, after the source of names that finds the runtime has seen it.
  void Observe(const Process& process, const ObservedSample& sample);

  const Arm64JitCodeCounters& counters() const { return counters_; }

 private:
  static constexpr size_t kMaxLeaves = 16'384;  // of one process; 3 MB

  struct ProcessState {
    uint32_t exec_count = 0;
    absl::flat_hash_map<uint64_t, CodeAt> by_address;  // as of the last sample there: code may be freed and replaced
  };
  const CodeAt* Read(const Process& process, const Mapping& mapping, uint64_t address);

  ReadMemory read_memory_;
  std::function<bool(ProcessKey)> is_dotnet_;
  PerProcess<ProcessState> leaves_;
  Arm64JitCodeCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_DATA_ARM64_JIT_CODE_H_
