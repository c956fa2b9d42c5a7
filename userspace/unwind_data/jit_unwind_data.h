// Unwind data of code that was compiled in the process, read out of its memory:
//
//   address -> method start S and its RealCodeHeader (clr/memory/code_ranges.h)
//           -> RUNTIME_FUNCTIONs {begin, end, unwind data} of the body and the funclets, relative to S - [0].begin
//
// dotnet/runtime src/coreclr/vm/codeman.h, jitinterface.cpp (allocUnwindInfo); the same on 8.0.30, 9.0.19, 10.0.12 and
// 10.0.14. Time is treated as names treat it (clr/memory/memory_methods.h): code of ordinary assemblies never moves.
// For what may be freed there is one of these proofs, or no answer:
//  - The sampler copied the unwind data and the instructions at the address at the very moment of the sample
//    (wire_code_snapshot). That is for a method's body; a method whose frame is on the stack is not freed.
//  - Two readings, one before the sample and one after it, agree in all that is taken from them, code included; a
//  method
//    of the same name is not asked for. In place of one of them: the sampler saw the same header there.
#ifndef CLRSAMPLER_UNWIND_DATA_JIT_UNWIND_DATA_H_
#define CLRSAMPLER_UNWIND_DATA_JIT_UNWIND_DATA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "clr/memory/runtime_memory.h"
#include "os/clock.h"
#include "process/per_process.h"
#include "process/process.h"
#include "status/thread_checker.h"
#include "symbols/frame_source.h"
#include "unwind/code_finder.h"

namespace clrsampler {

struct JitUnwindCounters {
  uint64_t methods = 0;           // whose unwind data was read
  uint64_t transient = 0;         // of these: may be freed
  uint64_t osr = 0;               // of these: replace a method while it runs
  uint64_t failed = 0;            // found, but their unwind data can't be read or does not fit together
  uint64_t from_snapshots = 0;    // bodies that the sampler copied
  uint64_t without_snapshot = 0;  // questions about transient code that was not seen before and after
  uint64_t cleared = 0;           // all of a process was dropped: there was too much of it
};

// Main loop only.
class JitUnwindData {
 public:
  // The reader of a process's runtime, nullptr where there is none; such as MemoryMethods::RuntimeOf.
  using RuntimeFinder = std::function<RuntimeMemory*(ProcessKey)>;

  JitUnwindData(RuntimeFinder runtime_of, const Clock& clock);
  ~JitUnwindData();

  // kManaged, kStub or kUnknown. It may be another answer later, for code that is freed.
  CodeAt At(const FrameQuery& query);
  // To be called when a sample arrives, after the source of names that finds the runtime has seen it.
  void Observe(const Process& process, const ObservedSample& sample);

  const JitUnwindCounters& counters() const { return counters_; }
  size_t heap_bytes() const;

 private:
  struct Method;
  struct ProcessState;

  ProcessState& TargetOf(const Process& process);
  void ReadMethod(ProcessState& state, RuntimeMemory& runtime, uint64_t address);
  std::optional<Method> MethodAt(ProcessState& state, RuntimeMemory& runtime, uint64_t address);
  bool Extend(ProcessState& state, std::vector<Method>& there, Method& found, MonotonicTime before,
              MonotonicTime after);
  void AddSnapshot(ProcessState& state, const RuntimeMemory& runtime, const wire_code_snapshot& snapshot,
                   MonotonicTime time);
  std::optional<CodeAt> Answer(ProcessState& state, uint64_t address, MonotonicTime time) const;
  bool Read(RuntimeMemory& runtime, ProcessState& state, Method& method);

  RuntimeFinder runtime_of_;
  const Clock& clock_;
  PerProcess<std::unique_ptr<ProcessState>> states_;
  JitUnwindCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_DATA_JIT_UNWIND_DATA_H_
