#include "inprocess/il_maps.h"

namespace clrsampler {
namespace {

// A method has a body for each of its tiers.
constexpr uint32_t kMaxBodies = 16;
// An end for the loop: no program has so many methods.
constexpr uint64_t kMaxFunctions = 4'000'000;

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
  if (CallSlot(session.info(), kEnumJITedFunctions2, &functions) != kOk) return;
  for (uint64_t i = 0; i < kMaxFunctions; ++i) {
    FunctionIdentity function{};
    uint32_t got = 0;
    if (CallSlot(functions, kNext, uint32_t{1}, &function, &got) != kOk || got != 1) break;
    SendBodies(session, function.function, function.recompilation);
  }
  CallSlot(functions, kRelease);
}

}  // namespace clrsampler
