#include "inprocess/il_maps.h"

#include <time.h>

#include <atomic>

namespace clrsampler {
namespace {

// A method has a body for each of its tiers.
constexpr uint32_t kMaxBodies = 16;
// An unload waits for the maps of one method or for the list of all methods, at most so long: the walk may in turn wait
// for a lock that the unloading thread has.
constexpr int kMaxUnloadWaitMs = 1000;

// The list of methods has addresses, which an unload makes invalid. Each side says what it does before it looks at the
// other one, in one order for all threads. So the walk sees the unload and ends, or the unload sees the walk and waits.
constinit std::atomic<uint32_t> g_unloads{0};
constinit std::atomic<bool> g_walks{false};

// The walk calls the runtime with addresses of methods as long as this lives.
class StepOfWalk {
 public:
  StepOfWalk() {
    g_walks.store(true);
    unloads_ = g_unloads.load();
  }
  ~StepOfWalk() { g_walks.store(false); }
  StepOfWalk(const StepOfWalk&) = delete;
  StepOfWalk& operator=(const StepOfWalk&) = delete;

  // How many unloads have begun so far.
  uint32_t unloads() const { return unloads_; }

 private:
  uint32_t unloads_ = 0;
};

struct FunctionIdentity {
  RuntimeId function;
  uintptr_t recompilation;
};

void SendMap(Session& session, RuntimeId function, uintptr_t code) {
  InprocessMapEntry entries[kMaxInprocessMapEntries];
  uint32_t count = 0;
  if (!Succeeded(CallSlot(session.info(), kGetILToNativeMapping3, code, static_cast<uint32_t>(kMaxInprocessMapEntries),
                          &count, entries))) {
    return;
  }
  const uint32_t there = count < kMaxInprocessMapEntries ? count : kMaxInprocessMapEntries;
  constexpr size_t kUnits = sizeof(InprocessMapEntry) / 2;
  InprocessMessage message{.kind = InprocessKind::kILToNativeMap,
                           .values = {function, code, count, 0},
                           .texts = {{}, {entries, static_cast<uint16_t>(there * kUnits)}}};
  session.Send(message);
}

void SendBodies(Session& session, RuntimeId function, uintptr_t recompilation) {
  uintptr_t bodies[kMaxBodies];
  uint32_t count = 0;
  if (!Succeeded(CallSlot(session.info(), kGetNativeCodeStartAddresses, function, recompilation, kMaxBodies, &count,
                          bodies))) {
    return;
  }
  for (uint32_t i = 0; i < count && i < kMaxBodies; ++i) SendMap(session, function, bodies[i]);
}

}  // namespace

void SendILMaps(Session& session, RuntimeId function) {
  if (session.Wants(InprocessKind::kILToNativeMap)) SendBodies(session, function, 0);
}

void SendAllILMaps(Session& session) {
  if (!session.Wants(InprocessKind::kILToNativeMap)) return;
  void* functions = nullptr;
  uint32_t unloads = 0;
  {
    const StepOfWalk step;
    unloads = step.unloads();
    if (CallSlot(session.info(), kEnumJITedFunctions2, &functions) != kOk) return;
  }
  uint32_t all = 0, done = 0;
  CallSlot(functions, kGetCount, &all);
  // Nobody wants them any more when the agent has gone. The library is unloaded soon then.
  for (; done < all && session.Wants(InprocessKind::kILToNativeMap); ++done) {
    FunctionIdentity function{};
    uint32_t got = 0;
    if (CallSlot(functions, kNext, uint32_t{1}, &function, &got) != kOk || got != 1) break;
    const StepOfWalk step;
    if (step.unloads() != unloads) break;
    SendBodies(session, function.function, function.recompilation);
  }
  if (session.Wants(InprocessKind::kILToNativeMap)) session.CountLeftOut(all - done);
  CallSlot(functions, kRelease);
}

void EndWalkOfILMaps() {
  g_unloads.fetch_add(1);
  for (int waited_ms = 0; g_walks.load() && waited_ms < kMaxUnloadWaitMs; ++waited_ms) {
    const timespec millisecond{0, 1'000'000};
    nanosleep(&millisecond, nullptr);
  }
}

}  // namespace clrsampler
