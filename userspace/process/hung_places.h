// Tells which places of file systems did not answer, and when they may be asked again. Pure.
#ifndef CLRSAMPLER_PROCESS_HUNG_PLACES_H_
#define CLRSAMPLER_PROCESS_HUNG_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "os/clock.h"

namespace clrsampler {

// A place is a path behind its mount namespace and an owner ("1000 4026531841:/mnt/share/lib"), or a word without a
// slash. A hung folder stands for all that lies below it.
class HungPlaces {
 public:
  using IsStuck = absl::FunctionRef<bool(uint64_t worker)>;

  // `worker` waits there and was given up.
  void NoteHang(absl::string_view place, uint64_t worker, MonotonicTime now);
  void NoteAnswer(absl::string_view place);
  // False: it hung a short time ago, or its worker has not come back yet.
  bool MayAsk(absl::string_view place, MonotonicTime now, IsStuck is_stuck) const;
  // How long to wait for an answer that takes `usual_ns` at most where all is well. After each hang it is half as long,
  // so that many places that hang at once cost little more than a few.
  uint64_t PatienceNs(uint64_t usual_ns, MonotonicTime now) const;

  // Whether to wait `ns` longer for a worker that waits for no file system but wants a CPU. A token bucket for all
  // places: a process can give a worker much to compute.
  bool TakeCpuWait(uint64_t ns, MonotonicTime now);

  size_t size() const { return hung_.size(); }

  static constexpr uint64_t kFirstRestNs = 1'000'000'000;
  static constexpr uint64_t kLongestRestNs = 60'000'000'000;
  static constexpr uint64_t kForgiveNs = 10'000'000'000;  // after which a hang makes nobody less patient
  static constexpr int kMaxHalvings = 4;
  static constexpr size_t kMaxPlaces = 1024;
  static constexpr uint64_t kMostCpuWaitNs = 3'000'000'000;
  static constexpr uint64_t kCpuWaitPart = 20;  // one part in so many of the time that passes comes back

 private:
  struct Hang {
    MonotonicTime again;
    uint64_t rest_ns = 0;
    uint64_t worker = 0;
  };
  absl::flat_hash_map<std::string, Hang> hung_;
  MonotonicTime last_ = MonotonicTime::Min();
  int recent_ = 0;
  uint64_t cpu_wait_left_ns_ = kMostCpuWaitNs;  // as of `cpu_wait_counted_`
  MonotonicTime cpu_wait_counted_ = MonotonicTime::Min();
};

// The name under which a question about `path` of a process of `owner` is remembered: its folder. The owner is part of
// it, so that a user whose file in /tmp leads to a file system that hangs takes /tmp from nobody else.
std::string PlaceOf(std::optional<uint32_t> owner, uint64_t mount_namespace, absl::string_view path);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_HUNG_PLACES_H_
