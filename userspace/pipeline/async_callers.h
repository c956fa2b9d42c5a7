// Puts the methods that await a resumed async method into its stack, in the place of what resumed it: the thread pool,
// timers, the end of another task.
//
//   ...ThreadPoolWorkQueue.Dispatch; AsyncStateMachineBox.MoveNext; Cart.PayAsync; Tax.Of
//     -> Shop.CheckoutAsync [awaits]; Cart.PayAsync; Tax.Of
//
// A place that can't be told for sure stays as it is, and is counted.
#ifndef CLRSAMPLER_PIPELINE_ASYNC_CALLERS_H_
#define CLRSAMPLER_PIPELINE_ASYNC_CALLERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "clr/memory/async_types.h"
#include "pipeline/async_chain.h"
#include "pipeline/stack_symbolizer.h"
#include "process/per_process.h"
#include "process/process_table.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/frame_source.h"
#include "symbols/name_budget.h"
#include "unwind/frame_chain.h"
#include "unwind/raw_stack.h"
#include "unwind/sample_memory.h"

namespace clrsampler {

class MemoryMethods;

// The outermost frame, where a chain ends that is longer.
inline constexpr absl::string_view kAwaitedBySeveral = "[awaited by several]";
inline constexpr absl::string_view kAwaiterNotKnown = "[awaiter not known]";

struct AsyncCallersCounters {
  uint64_t resumed = 0;      // stacks with an async method that was resumed
  uint64_t found = 0;        // of these: with one caller or more
  uint64_t not_awaited = 0;  // nothing awaits the method, or not yet
  uint64_t unknown = 0;      // its awaiter is not known
  uint64_t stopped = 0;      // taken while the runtime stood still
  uint64_t between = 0;      // the runtime was before or behind the method
  // These have callers: the chain goes on.
  uint64_t ends_in_several = 0;
  uint64_t ends_unknown = 0;
  uint64_t callers = 0;  // in all

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them
};

// Main loop only. Borrows what it is given.
class AsyncCallers {
 public:
  struct Parts {
    MemoryMethods& memory;
    FrameTable& frames;
    NameBudget& budget;
    // Has the sampler copy such objects from now on; nullopt: how its runtime keeps them is not known.
    std::function<void(const Process&, const std::optional<wire_async_layouts>&)> tell;
    // Shows code that a sample leads to, while it is there, and names it later.
    std::function<void(const Process&, const ObservedSample&)> observe;
    std::function<FrameId(const Process&, const UserFrame&, MonotonicTime time)> name;
  };
  explicit AsyncCallers(Parts parts) : parts_(std::move(parts)) {}

  // Has the sampler copy what it must of this process, as soon as its runtime can be read.
  void Learn(const Process& process);
  // A sample that has just arrived: what its objects are is read while the process is there.
  void Observe(const Process& process, const RawStack& raw);

  // The frames of `named` with the callers, outermost first; valid until the next call. `user`: the frames of which
  // `named` was made, with places. `stopped`: the runtime stood still, when a collection moves objects.
  std::span<const FrameId> Apply(const Process& process, const RawStack& raw, const UserStack& user,
                                 const NamedStack& named, bool stopped);

  const AsyncCallersCounters& counters() const { return counters_; }

 private:
  // kResumer: of state machines. kDispatcher: of methods that the runtime makes async.
  enum class Role : uint8_t { kNone, kResumer, kMachine, kDispatcher };
  // The code at which an execution is suspended. kHelper: a part of the runtime, or a thunk.
  enum class Suspended : uint8_t { kNotKnown, kMethod, kHelper };
  struct Code {
    Role role = Role::kNone;
    MethodName name;  // of kMachine
  };
  struct OfProcess {
    uint32_t exec_count = 0;
    std::optional<wire_async_layouts> layout;
    uint32_t tries = 0;  // to find it
    AsyncTypes types;
    absl::flat_hash_map<uint64_t, std::unique_ptr<const Code>> code;  // by lookup address
    absl::flat_hash_map<uint64_t, Suspended> suspended;               // by address
  };
  // The methods that were resumed, and the frame of the runtime that did it; leaf first.
  struct Resumed {
    size_t method = 0, resumer = 0;
    const Code* code = nullptr;  // of a state machine
    bool dispatched = false;     // a method that the runtime makes async
    bool known() const { return code != nullptr || dispatched; }
  };
  static constexpr size_t kMaxKnown = 1 << 16;
  // A sample or an event is a try.
  static constexpr uint32_t kMaxTries = 64;

  OfProcess* Of(const Process& process);
  static Suspended SuspendedAt(RuntimeMemory& runtime, uint64_t address);
  const Code& CodeAt(const Process& process, OfProcess& of, const UserFrame& frame);
  std::optional<Resumed> FindResumed(const Process& process, OfProcess& of, const UserStack& user,
                                     const NamedStack& named, MonotonicTime time);
  bool IsResumptionStub(const Process& process, const UserFrame& frame, MonotonicTime time);
  // Appends the awaiter, unless it is none that people wrote; false: it is not known.
  bool Append(const Process& process, const OfProcess& of, const AsyncCaller& caller, MonotonicTime time);
  std::span<const FrameId> Put(AsyncEnd end, const NamedStack& named, size_t first);
  std::optional<AsyncChain> ChainOf(const OfProcess& of, const RawStack& raw, const UserStack& user,
                                    const Resumed& resumed);
  // Whether the frame's text looks like that of a method that resumes others. Texts come in many styles.
  bool MayResume(FrameId frame);
  FrameId Marked(FrameId frame);
  FrameId Mark(absl::string_view text);

  const Parts parts_;
  PerProcess<std::unique_ptr<OfProcess>> processes_;
  absl::flat_hash_map<FrameId, FrameId> marked_;
  std::vector<int8_t> may_resume_;  // by FrameId: 1 or 0; -1: not known
  SampleMemory stack_;
  std::vector<FrameId> frames_;
  AsyncCallersCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_ASYNC_CALLERS_H_
