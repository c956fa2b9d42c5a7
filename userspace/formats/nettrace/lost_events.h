// How many events never came, by their numbers: each thread numbers its events from 1 on, whether they are kept or not.
#ifndef CLRSAMPLER_FORMATS_NETTRACE_LOST_EVENTS_H_
#define CLRSAMPLER_FORMATS_NETTRACE_LOST_EVENTS_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace clrsampler {

// More threads at once are an error: the table must not grow with what a stream says.
inline constexpr size_t kMaxEventThreads = 1 << 17;

class LostEvents {
 public:
  // The number of an event that came; how many of its thread's were lost right before it. A number that is not above
  // the last one is that of a new thread with an old id.
  absl::StatusOr<uint64_t> Came(uint64_t thread, uint32_t sequence);

  // A sequence point begins: it lists every thread that may still write, with the number of its last event.
  void BeginPoint() { listed_.clear(); }
  absl::StatusOr<uint64_t> Listed(uint64_t thread, uint32_t sequence);
  // Forgets the threads that were not listed, which have ended.
  void EndPoint() { last_.swap(listed_); }

 private:
  absl::flat_hash_map<uint64_t, uint32_t> last_;
  absl::flat_hash_map<uint64_t, uint32_t> listed_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NETTRACE_LOST_EVENTS_H_
