#include "pipeline/async_chain.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace clrsampler {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
// The part of a box that holds its machine, up to its end: behind the task's fields and the result. A part of a longer
// result is here, too, but no pointer leads to it.
constexpr uint64_t kFirstMachine = 64;
constexpr uint64_t kMostFrameBytes = 64 << 10;
// AsyncDispatcherInfo of .NET 11.0.0: Next, NextContinuation, CurrentTask, and 48 bytes for a profiler. Behind it the
// frame has its frame pointer and return address at least. So registers that the prologue has saved are no such info.
constexpr uint64_t kInfoContinuation = 8, kInfoTask = 16, kInfoBytes = 72, kFrameEnd = 16;

uint64_t AddressOf(const wire_async_object& object) { return object.address & ~uint64_t{WIRE_ASYNC_MARKS}; }

uint64_t WordAt(const wire_async_object& object, uint32_t offset) {
  return offset / kWord < WIRE_ASYNC_WORDS ? object.words[offset / kWord] : 0;
}

// Code that is shared by all reference types says __Canon in their place.
bool IsSameMachine(const MethodName& boxed, const MethodName& running) {
  return boxed.module == running.module && boxed.type == running.type && boxed.method == running.method &&
         std::ranges::equal(boxed.type_args, running.type_args,
                            [](const std::string& exact, const std::string& shared) {
                              return exact == shared || absl::StrContains(shared, "System.__Canon");
                            });
}

// The end of a chain at an object that it can't be followed from.
AsyncEnd EndAt(AsyncKind kind) {
  if (kind == AsyncKind::kSeveral) return AsyncEnd::kSeveral;
  return kind == AsyncKind::kThread ? AsyncEnd::kThread : AsyncEnd::kUnknown;
}

// Whether a word of the frame leads to the machine of the box: a structure inside of it, or an object.
bool PointsToMachine(const StackMemory& stack, uint64_t begin, uint64_t end, const wire_async_object& box,
                     const AsyncType& type) {
  for (uint64_t at = begin; at < end; at += kWord) {
    const std::optional<uint64_t> word = stack.Word(at);
    if (!word || *word == 0) continue;
    const uint64_t distance = *word - AddressOf(box);
    if (type.machine_is_class ? *word == WordAt(box, kFirstMachine)
                              : distance >= kFirstMachine && distance < type.bytes) {
      return true;
    }
  }
  return false;
}

}  // namespace

const wire_async_object* AsyncObjects::Find(uint64_t address) const {
  const auto found = std::ranges::find(objects_, address, AddressOf);
  return found == objects_.end() ? nullptr : &*found;
}

AsyncKind AsyncObjects::KindOf(const wire_async_object& object) const {
  const AsyncType* type = types_(object.words[0]);
  return type == nullptr ? AsyncKind::kOther : type->kind;
}

std::optional<AsyncChain> AsyncObjects::OfMachine(const StackMemory& stack, uint64_t begin, uint64_t end,
                                                  const MethodName& running) const {
  if (end <= begin || end - begin > kMostFrameBytes) return std::nullopt;
  const wire_async_object* box = nullptr;
  for (const wire_async_object& object : objects_) {
    const AsyncType* type = types_(object.words[0]);
    if (type == nullptr || type->kind != AsyncKind::kBox || !IsSameMachine(type->method, running)) continue;
    if (!PointsToMachine(stack, begin, end, object, *type)) continue;
    if (box != nullptr) return std::nullopt;
    box = &object;
  }
  if (box == nullptr) return std::nullopt;
  AsyncChain chain;
  FollowTask(WordAt(*box, layout_.tasks.task_link), chain);
  return chain;
}

// Objects of frames further out are copied, and an info says of which task it is.
bool AsyncObjects::IsOuterDispatcher(const StackMemory& stack, uint64_t info, uint64_t end) const {
  if (info < end) return false;
  const std::optional<uint64_t> task = stack.Word(info + kInfoTask);
  const wire_async_object* object = task && *task != 0 ? Find(*task) : nullptr;
  return object != nullptr && KindOf(*object) == AsyncKind::kRuntimeTask;
}

// False: the word is no pointer, or leads to another object.
bool AsyncObjects::MayBeContinuation(uint64_t word) const {
  const wire_async_object* object = Find(word);
  if (object == nullptr) return word % kWord == 0;
  const AsyncKind kind = KindOf(*object);
  return kind == AsyncKind::kContinuation || kind == AsyncKind::kHelperContinuation;
}

std::optional<AsyncChain> AsyncObjects::OfDispatcher(const StackMemory& stack, uint64_t begin, uint64_t end) const {
  if (end <= begin || end - begin > kMostFrameBytes) return std::nullopt;
  std::optional<uint64_t> next;
  const wire_async_object* task = nullptr;
  for (uint64_t at = begin; at + kInfoBytes + kFrameEnd <= end; at += kWord) {
    const std::optional<uint64_t> word = stack.Word(at + kInfoTask);
    const wire_async_object* object = word && *word != 0 ? Find(*word) : nullptr;
    if (object == nullptr || KindOf(*object) != AsyncKind::kRuntimeTask) continue;
    const std::optional<uint64_t> outer = stack.Word(at), continuation = stack.Word(at + kInfoContinuation);
    if (!outer || !continuation) return std::nullopt;
    if (*outer != 0 && !IsOuterDispatcher(stack, *outer, end)) continue;
    if (!MayBeContinuation(*continuation)) continue;
    if (task != nullptr) return std::nullopt;
    task = object;
    next = continuation;
  }
  if (task == nullptr) return std::nullopt;
  AsyncChain chain;
  if (AppendContinuations(*next, chain)) {
    FollowTask(WordAt(*task, layout_.tasks.task_link), chain);
  } else {
    chain.end = AsyncEnd::kUnknown;
  }
  return chain;
}

std::vector<uint64_t> AsyncObjects::SuspendedAt(std::span<const wire_async_object> objects) {
  std::vector<uint64_t> addresses;
  for (const wire_async_object& object : objects) {
    if ((object.address & WIRE_ASYNC_CONTINUATION) == 0) continue;
    const uint64_t at = object.words[WIRE_ASYNC_SUSPENDED_AT];
    if (at != 0 && std::ranges::find(addresses, at) == addresses.end()) addresses.push_back(at);
  }
  return addresses;
}

bool AsyncObjects::AppendContinuations(uint64_t next, AsyncChain& chain) const {
  for (size_t steps = 0; next != 0; ++steps) {
    const wire_async_object* object = Find(next);
    if (object == nullptr || steps > objects_.size()) return false;
    const AsyncKind kind = KindOf(*object);
    if (kind == AsyncKind::kContinuation) {
      // Where the sampler took it for something else, it has not read where the method is.
      const uint64_t at = object->words[WIRE_ASYNC_SUSPENDED_AT];
      if ((object->address & WIRE_ASYNC_CONTINUATION) == 0 || at == 0) return false;
      chain.callers.push_back({.suspended_at = at});
    } else if (kind != AsyncKind::kHelperContinuation) {
      return false;
    }
    next = WordAt(*object, layout_.runtime.next_link);
  }
  return true;
}

std::optional<uint64_t> AsyncObjects::AwaiterOfTask(const wire_async_object& task, uint64_t innermost,
                                                    AsyncChain& chain) const {
  if (innermost == 0 || !AppendContinuations(innermost, chain)) return std::nullopt;
  return WordAt(task, layout_.tasks.task_link);
}

// Any other object may have an action for whatever it likes.
std::optional<uint64_t> AsyncObjects::TargetOf(const wire_async_object& action) const {
  const uint64_t address = WordAt(action, layout_.tasks.action_link);
  const wire_async_object* target = Find(address);
  const AsyncKind kind = target == nullptr ? AsyncKind::kOther : KindOf(*target);
  if (kind != AsyncKind::kBox && kind != AsyncKind::kRuntimeTask) return std::nullopt;
  return address;
}

std::optional<uint64_t> AsyncObjects::ActionOf(const wire_async_object& await) const {
  const uint64_t address = WordAt(await, layout_.tasks.await_link);
  const wire_async_object* action = Find(address);
  if (action == nullptr || KindOf(*action) != AsyncKind::kAction) return std::nullopt;
  return address;
}

std::optional<uint64_t> AsyncObjects::Follow(const wire_async_object& object, uint64_t address,
                                             AsyncChain& chain) const {
  switch (KindOf(object)) {
    case AsyncKind::kBox:
      chain.callers.push_back({.box = types_(object.words[0])});
      return WordAt(object, layout_.tasks.task_link);
    case AsyncKind::kPromise:
      return WordAt(object, layout_.tasks.task_link);
    case AsyncKind::kRuntimeTask:
      // Its methods are suspended, so that it has the innermost of them.
      return AwaiterOfTask(object, WordAt(object, layout_.runtime.state_link), chain);
    case AsyncKind::kHelperContinuation: {
      // It begins the chain of its owner's methods, and their task has it, too.
      const wire_async_object* owner = Find(WordAt(object, layout_.runtime.owner_link));
      if (owner == nullptr || KindOf(*owner) != AsyncKind::kRuntimeTask) return std::nullopt;
      if (WordAt(*owner, layout_.runtime.state_link) != address) return std::nullopt;
      return AwaiterOfTask(*owner, address, chain);
    }
    case AsyncKind::kAction:
      return TargetOf(object);
    case AsyncKind::kAwait:
      return ActionOf(object);
    case AsyncKind::kSeveral:
    case AsyncKind::kThread:
    case AsyncKind::kContinuation:
    case AsyncKind::kOther:
      break;
  }
  return std::nullopt;
}

void AsyncObjects::FollowTask(uint64_t awaiter, AsyncChain& chain) const {
  for (size_t steps = 0; awaiter != 0; ++steps) {
    const wire_async_object* object = steps > objects_.size() ? nullptr : Find(awaiter);
    const std::optional<uint64_t> next = object == nullptr ? std::nullopt : Follow(*object, awaiter, chain);
    if (!next) {
      chain.end = object == nullptr ? AsyncEnd::kUnknown : EndAt(KindOf(*object));
      return;
    }
    awaiter = *next;
  }
  chain.end = AsyncEnd::kNotAwaited;
}

}  // namespace clrsampler
