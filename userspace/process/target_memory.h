// Memory of a running process, read from outside without stopping it.
//
// Bound to the address space that the process had when it was opened: after an exec or an exit every read fails, and
// a stranger that was given the same pid is never read (kernel fs/proc/base.c: mem_open pins the mm, mem_rw needs a
// user of it).
#ifndef CLRSAMPLER_PROCESS_TARGET_MEMORY_H_
#define CLRSAMPLER_PROCESS_TARGET_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"

namespace clrsampler {

struct MemoryCounters {
  uint64_t reads = 0;
  uint64_t bytes = 0;
  uint64_t failures = 0;  // reads of which not every byte could be had
};

// One thread.
class MemoryReader {
 public:
  virtual ~MemoryReader() = default;

  // All of it or false; what is in `into` after false is of no meaning.
  virtual bool Read(uint64_t address, std::span<std::byte> into) = 0;

  template <typename T>
  std::optional<T> Value(uint64_t address) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    if (!Read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
  }
};

class TargetMemory : public MemoryReader {
 public:
  // `proc_root` is "/proc" outside tests. PermissionDenied, NotFound (the process is gone), with hints.
  static absl::StatusOr<std::unique_ptr<TargetMemory>> Open(absl::string_view proc_root, uint32_t pid);

  bool Read(uint64_t address, std::span<std::byte> into) override;
  const MemoryCounters& counters() const { return counters_; }

 private:
  explicit TargetMemory(UniqueFd memory) : memory_(std::move(memory)) {}

  UniqueFd memory_;  // /proc/PID/mem
  MemoryCounters counters_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_TARGET_MEMORY_H_
