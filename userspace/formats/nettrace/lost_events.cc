#include "formats/nettrace/lost_events.h"

#include "absl/status/status.h"

namespace clrsampler {
namespace {

// Numbers go round after 2^32 - 1, so a difference in the upper half is a step back.
constexpr uint32_t kStepBack = 1u << 31;

absl::Status TooMany() { return absl::ResourceExhaustedError("too many threads in the stream of events"); }

}  // namespace

absl::StatusOr<uint64_t> LostEvents::Came(uint64_t thread, uint32_t sequence) {
  if (last_.size() >= kMaxEventThreads && !last_.contains(thread)) return TooMany();
  uint32_t& last = last_[thread];
  uint32_t missing = sequence - last - 1;
  if (missing >= kStepBack) missing = sequence - 1;
  last = sequence;
  return missing;
}

absl::StatusOr<uint64_t> LostEvents::Listed(uint64_t thread, uint32_t sequence) {
  if (listed_.size() >= kMaxEventThreads) return TooMany();
  const auto known = last_.find(thread);
  const uint32_t last = known == last_.end() ? 0 : known->second;
  const uint32_t missing = sequence - last;
  if (missing >= kStepBack) {  // it has written more meanwhile
    listed_[thread] = last;
    return 0;
  }
  listed_[thread] = sequence;
  return missing;
}

}  // namespace clrsampler
