// One step out of a managed frame with everything known, on functions of CoreLib (code_bytes.h).
#include <benchmark/benchmark.h>

#include "unit/formats/unwind/code_bytes.h"
#include "unwind/managed_step.h"

namespace clrsampler {
namespace {

class Array : public StackMemory {
 public:
  static constexpr uint64_t kBase = 0x7000;
  std::optional<uint64_t> Word(uint64_t address) const override {
    const uint64_t index = (address - kBase) / 8;
    return address % 8 == 0 && index < 64 ? std::optional<uint64_t>(0x500000 + index) : std::nullopt;
  }
};

void Run(benchmark::State& state, const CodeBytes& bytes, uint64_t offset, bool leaf, ManagedStepHow how,
         uint64_t slot) {
  const std::vector<std::byte> code = Hex(bytes.code);
  ManagedFunction function;
  function.begin = 0x400000;
  function.end = function.begin + code.size();
  function.code = code;
  function.unwind = UnwindInfo::Parse(Hex(bytes.unwind)).value();
  const Array stack;
  const UnwindRegisters registers{.ip = function.begin + offset, .sp = Array::kBase, .fp = Array::kBase + 16};
  for (auto _ : state) {
    const ManagedStepResult result = ManagedStep(function, leaf, registers, stack);
    if (result.kind != ManagedStepResult::Kind::kStepped || result.how != how || result.caller.ip != 0x500000 + slot) {
      state.SkipWithError("a wrong step");
    }
  }
}

void BM_CallerWithFramePointer(benchmark::State& state) { Run(state, kFramed, 0xF, false, ManagedStepHow::kBody, 3); }
void BM_CallerWithoutFramePointer(benchmark::State& state) {
  Run(state, kFrameless, 0x13, false, ManagedStepHow::kBody, 3);
}
void BM_LeafInBody(benchmark::State& state) { Run(state, kFrameless, 0x13, true, ManagedStepHow::kBody, 3); }
void BM_LeafInPrologue(benchmark::State& state) { Run(state, kFrameless, 1, true, ManagedStepHow::kPrologue, 1); }
void BM_LeafInEpilogue(benchmark::State& state) { Run(state, kFramed, 0x10, true, ManagedStepHow::kEpilogue, 3); }

BENCHMARK(BM_CallerWithFramePointer);
BENCHMARK(BM_CallerWithoutFramePointer);
BENCHMARK(BM_LeafInBody);
BENCHMARK(BM_LeafInPrologue);
BENCHMARK(BM_LeafInEpilogue);

}  // namespace
}  // namespace clrsampler
