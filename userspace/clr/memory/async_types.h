// Tells the part of an object in async code by its MethodTable: boxes of state machines, and what tasks keep of the
// methods that await them.
//
// Source: the class library of dotnet/runtime 8.0 to 11.0, System.Threading.Tasks and AsyncTaskMethodBuilder, of 11.0
// AsyncHelpers. Places of fields are the same on 8.0.30, 9.0.19, 10.0.14 and 11.0.0 where no version is named; measured
// by the runtime's own field descriptors.
#ifndef CLRSAMPLER_CLR_MEMORY_ASYNC_TYPES_H_
#define CLRSAMPLER_CLR_MEMORY_ASYNC_TYPES_H_

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "clr/memory/runtime_memory.h"
#include "clrsampler/wire_runtime_async.h"
#include "formats/names/method_name.h"
#include "status/thread_checker.h"

namespace clrsampler {

enum class AsyncKind : uint8_t {
  kOther,    // no awaiter, as far as is known here
  kBox,      // a state machine, boxed: it waits for the task that holds it
  kPromise,  // a task that is done when others are: its awaiters wait for them
  kAction,   // a delegate without arguments
  kAwait,    // an action, and where it shall run
  kSeveral,  // a list of awaiters
  kThread,   // a thread that blocks until the task is done
  // The rest are those of methods that the runtime itself makes async (.NET 11).
  kRuntimeTask,         // the task of a chain of them
  kContinuation,        // one that is suspended
  kHelperContinuation,  // a link of such a chain that is none of them
};

struct AsyncType {
  AsyncKind kind = AsyncKind::kOther;
  // The method of a kBox: its machine's MoveNext, and whether it only points to the machine, as in programs built for
  // debugging.
  MethodName method;
  bool machine_is_class = false;
  uint32_t bytes = 0;  // of a box
};

// By the full name of a type without its arguments, of CoreLib.
AsyncKind AsyncKindOf(absl::string_view type);

// Whether this method resumes methods that the runtime makes async.
bool IsDispatcher(const MethodName& method);

// Whether a machine's MoveNext that this method calls has been resumed: a method of its box, or of an execution
// context. The first run of a machine comes from its builder's Start.
bool IsResumer(const MethodName& method);

// The types of one process. Main loop only.
class AsyncTypes {
 public:
  static bool KnowsVersionOf(RuntimeMemory& runtime);
  // The facts that the sampler must know to find such objects. nullopt: it is not known, since the runtime is of
  // another version, or its CoreLib could not be read.
  static std::optional<wire_async_layouts> LayoutOf(RuntimeMemory& runtime);

  // Reads what is not known yet. A type that can't be read, or be freed, is kOther.
  const AsyncType& At(RuntimeMemory& runtime, uint64_t method_table);
  // The type, if it is known; else nullptr.
  const AsyncType* Find(uint64_t method_table) const;

 private:
  static constexpr size_t kMaxTypes = 1 << 16, kMaxTextBytes = 16 << 20;

  absl::flat_hash_map<uint64_t, AsyncType> types_;
  size_t bytes_ = 0;  // of the texts in them
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_ASYNC_TYPES_H_
