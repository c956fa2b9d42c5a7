// A recorder that took too much ends, so that another one may begin with little.
#ifndef CLRSAMPLER_PIPELINE_FRESH_START_H_
#define CLRSAMPLER_PIPELINE_FRESH_START_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace clrsampler {

enum class FreshStart : uint8_t {
  kNone,    // the recorder goes on
  kMemory,  // the agent took too much memory for long, whatever the rate
  kNames,   // NameBudget::full
};

struct FreshStartInputs {
  bool begins_anew = false;  // the caller makes another recorder; else the only one goes on as it can
  uint64_t ran_ns = 0;
  bool memory_is_short = false;
  bool names_are_full = false;
};

constexpr uint64_t kFreshStartNs = 600'000'000'000;  // a recorder is not replaced earlier

constexpr FreshStart FreshStartFor(const FreshStartInputs& inputs) {
  if (!inputs.begins_anew || inputs.ran_ns < kFreshStartNs) return FreshStart::kNone;
  if (inputs.memory_is_short) return FreshStart::kMemory;
  return inputs.names_are_full ? FreshStart::kNames : FreshStart::kNone;
}

// Tells users of it.
struct FreshStartText {
  absl::string_view message;
  absl::string_view hint;
};
constexpr FreshStartText TextOf(FreshStart reason) {
  switch (reason) {
    case FreshStart::kMemory:
      return {"more memory than --memory-limit is in use; sampling begins anew",
              "a higher --memory-limit, or fewer processes: --comm, --container, --cgroup, --uid"};
    case FreshStart::kNames:
      return {"names take all the memory that they may; sampling begins anew",
              "the notes about functions without names give the pids of the programs"};
    case FreshStart::kNone:
      break;
  }
  return {};
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_FRESH_START_H_
