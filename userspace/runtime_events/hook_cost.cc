#include "runtime_events/hook_cost.h"

namespace clrsampler {
namespace {

// A hit costs our program 0.3 to 1.4 us beyond the trap, and the thread has to fetch data into its caches again. The
// whole cost was measured by the work that a program which does little else got done. On one machine it was 1.7 us,
// with traps of 0.57 us. On another it was 3.7 us, with traps of 0.70 us
// (docs/measurements/2026-11-24-pauses-and-probes.md).
constexpr uint64_t kBeyondTrapNs = 3'000;
// The same for allocations, most of which only add to a sum. With the trap it was 1.8 us, by the CPU time of a program
// that allocates 2 GB a second (docs/measurements/2026-11-29-allocations.md).
constexpr uint64_t kBeyondAllocationNs = 800;
// The same for exceptions, with their stacks of six frames: 5.6 us with the trap on 8.0.30, 6.4 us on 9.0.19 and 3.8 us
// on 11.0.0. The second pass of 9.0.19 comes by, too. This is the CPU time of a program that throws all the time
// (docs/measurements/2026-11-27-exceptions.md).
constexpr uint64_t kBeyondExceptionNs = 3'200, kBeyondException8Ns = 5'000, kBeyondException9Ns = 5'800;

}  // namespace

uint64_t BeyondTrapNs(HookPart part) {
  switch (part) {
    case HookPart::kSuspensions:
    case HookPart::kCompilations:
      return kBeyondTrapNs;
    case HookPart::kAllocations:
      return kBeyondAllocationNs;
    case HookPart::kExceptions:
      return kBeyondExceptionNs;
  }
  return kBeyondTrapNs;
}

uint64_t BeyondExceptionNs(int major) {
  return major == 8 ? kBeyondException8Ns : major == 9 ? kBeyondException9Ns : kBeyondExceptionNs;
}

}  // namespace clrsampler
