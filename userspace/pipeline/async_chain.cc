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

uint64_t AddressOf(const wire_async_object& object) { return object.address & ~uint64_t{WIRE_ASYNC_ROOT}; }

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
  FollowTask(WordAt(*box, layout_.task_link), chain);
  return chain;
}

void AsyncObjects::FollowTask(uint64_t awaiter, AsyncChain& chain) const {
  chain.end = AsyncEnd::kNotAwaited;
  for (size_t steps = 0; awaiter != 0; ++steps) {
    const wire_async_object* object = Find(awaiter);
    const AsyncKind kind = object == nullptr || steps > objects_.size() ? AsyncKind::kOther : KindOf(*object);
    switch (kind) {
      case AsyncKind::kBox:
        chain.callers.push_back(types_(object->words[0]));
        awaiter = WordAt(*object, layout_.task_link);
        continue;
      case AsyncKind::kPromise:
        awaiter = WordAt(*object, layout_.task_link);
        continue;
      case AsyncKind::kAction: {
        // Any other object may have an action for any purpose.
        awaiter = WordAt(*object, layout_.action_link);
        const wire_async_object* target = Find(awaiter);
        if (target != nullptr && KindOf(*target) == AsyncKind::kBox) continue;
        break;
      }
      case AsyncKind::kAwait: {
        awaiter = WordAt(*object, layout_.await_link);
        const wire_async_object* action = Find(awaiter);
        if (action != nullptr && KindOf(*action) == AsyncKind::kAction) continue;
        break;
      }
      case AsyncKind::kSeveral:
        chain.end = AsyncEnd::kSeveral;
        return;
      case AsyncKind::kThread:
        chain.end = AsyncEnd::kThread;
        return;
      case AsyncKind::kOther:
        break;
    }
    chain.end = AsyncEnd::kUnknown;
    return;
  }
}

}  // namespace clrsampler
