#include "runtime_events/hook_cost.h"

namespace clrsampler {
namespace {

// A hit costs 0.3 to 1.4 us for our program beyond the trap, and what the
// thread has to fetch again into its caches. By the work that a program which does little else got done, a hit cost
// it 1.7 us in all on one machine, with traps of 0.57 us, and 3.7 us on another, with traps of 0.70 us
// (docs/performance.md).
constexpr uint64_t kBeyondTrapNs = 3'000;
// The same of allocations, most of which only add to a sum: 1.1 us with the trap, by the CPU time of a program that
// allocates 2 to 5 GB a second (docs/allocations.md).
constexpr uint64_t kBeyondAllocationNs = 500;
// The same of exceptions, with their stacks of six frames: 5.6 us with the trap on 8.0.30, 6.4 us on 9.0.19, whose
// second pass comes by, too, and 3.8 us on 11.0.0; by the CPU time of a program that throws all the time
// (docs/exceptions.md).
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
