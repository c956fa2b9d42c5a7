// The awaiters of what runs on a stack, by the objects that the sampler copied at that moment (wire_async_object).
//
// Pure. A sample may bring anything, so nothing is taken for granted. An object counts only as what its type says, and
// where two objects could be meant there is no answer.
#ifndef CLRSAMPLER_PIPELINE_ASYNC_CHAIN_H_
#define CLRSAMPLER_PIPELINE_ASYNC_CHAIN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "clr/memory/async_types.h"
#include "clrsampler/wire_runtime_async.h"
#include "formats/names/method_name.h"
#include "unwind/registers.h"

namespace clrsampler {

enum class AsyncEnd : uint8_t {
  kNotAwaited,  // nothing awaits the outermost one, or not yet
  kThread,      // a thread blocks until it is done
  kSeveral,     // several wait for it
  kUnknown,     // something waits of which nothing is known, or what would tell was not copied
};

// A suspended method: the machine of a box, or what is suspended at an address.
struct AsyncCaller {
  const AsyncType* box = nullptr;
  uint64_t suspended_at = 0;  // without a box
};

struct AsyncChain {
  std::vector<AsyncCaller> callers;  // innermost first
  AsyncEnd end = AsyncEnd::kNotAwaited;
};

// The objects of one sample. Borrows everything.
class AsyncObjects {
 public:
  // nullptr: the type is not known.
  using TypeFinder = absl::FunctionRef<const AsyncType*(uint64_t method_table)>;

  AsyncObjects(std::span<const wire_async_object> objects, const wire_async_layouts& layout, TypeFinder types)
      : objects_(objects), layout_(layout), types_(types) {}

  // The awaiters of what a state machine's MoveNext runs. Its frame lies from `begin` to `end`: it holds a pointer into
  // the box as long as it runs, since it has an exception handler that needs it. `running`: the method. nullopt: not
  // one box of its type was found there, or several.
  std::optional<AsyncChain> OfMachine(const StackMemory& stack, uint64_t begin, uint64_t end,
                                      const MethodName& running) const;

  // The awaiters of the method that DispatchContinuations has resumed. Its frame lies from `begin` to `end`, and holds
  // an AsyncDispatcherInfo: the info of the dispatcher further out, the next continuation, and the task. nullopt: not
  // one such place was found there, or several.
  std::optional<AsyncChain> OfDispatcher(const StackMemory& stack, uint64_t begin, uint64_t end) const;

  // The addresses at which methods are suspended.
  static std::vector<uint64_t> SuspendedAt(std::span<const wire_async_object> objects);

 private:
  bool MayBeContinuation(uint64_t word) const;
  bool IsOuterDispatcher(const StackMemory& stack, uint64_t info, uint64_t end) const;
  // False: not to its end.
  bool AppendContinuations(uint64_t next, AsyncChain& chain) const;
  const wire_async_object* Find(uint64_t address) const;
  AsyncKind KindOf(const wire_async_object& object) const;
  // One step to the next awaiter; 0: there is none. nullopt: the chain can't be followed from here.
  std::optional<uint64_t> Follow(const wire_async_object& object, uint64_t address, AsyncChain& chain) const;
  std::optional<uint64_t> AwaiterOfTask(const wire_async_object& task, uint64_t innermost, AsyncChain& chain) const;
  std::optional<uint64_t> TargetOf(const wire_async_object& action) const;
  std::optional<uint64_t> ActionOf(const wire_async_object& await) const;
  void FollowTask(uint64_t awaiter, AsyncChain& chain) const;

  std::span<const wire_async_object> objects_;
  const wire_async_layouts& layout_;
  TypeFinder types_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_ASYNC_CHAIN_H_
