// Memory of a running process, read from outside without stopping it.
//
// Bound to the address space that the process had when it was opened. After an exec or an exit every read fails, and a
// stranger that was given the same pid is never read (kernel fs/proc/base.c: mem_open pins the mm, mem_rw needs a user
// of it).
#ifndef CLRSAMPLER_PROCESS_TARGET_MEMORY_H_
#define CLRSAMPLER_PROCESS_TARGET_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/tape.h"
#include "os/unique_fd.h"

namespace clrsampler {

class FileBroker;

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
  virtual MemoryCounters counters() const { return {}; }

  template <typename T>
  std::optional<T> Value(uint64_t address) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    if (!Read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
  }
};

// Copies memory of a process (of our own pid namespace) as it is now, whatever program it runs; false when not all of
// it could be read. /proc/PID/mem is opened for each read (5 us), since a descriptor that is kept shows what ran before
// an exec. process_vm_readv would wait without an end for a page that the process keeps back (userfaultfd).
bool ReadTargetMemory(uint32_t tgid, uint64_t address, std::span<std::byte> into);
using ReadMemory = std::function<bool(uint32_t tgid, uint64_t address, std::span<std::byte> into)>;
// The same through a tape and a broker, nullptr or not.
ReadMemory ReadMemoryThrough(Tape* tape, FileBroker* broker);

class TargetMemory : public MemoryReader {
 public:
  // `proc_root` is "/proc" outside tests; `tape`, where there is one, outlives it. PermissionDenied, NotFound (the
  // process is gone), with hints.
  static absl::StatusOr<std::unique_ptr<TargetMemory>> Open(absl::string_view proc_root, uint32_t pid,
                                                            Tape* tape = nullptr, FileBroker* broker = nullptr);

  bool Read(uint64_t address, std::span<std::byte> into) override;
  MemoryCounters counters() const override { return counters_; }

 private:
  TargetMemory(absl::string_view proc_root, uint32_t pid, Tape* tape, FileBroker* broker)
      : proc_root_(proc_root), pid_(pid), tape_(tape), broker_(broker) {}
  static absl::Status OpenNow(absl::string_view proc_root, uint32_t pid, UniqueFd& memory);
  bool ReadNow(uint64_t address, std::span<std::byte> into);

  std::string proc_root_;
  uint32_t pid_;
  Tape* tape_;
  FileBroker* broker_;  // reads for us what may wait
  UniqueFd memory_;     // /proc/PID/mem
  MemoryCounters counters_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_TARGET_MEMORY_H_
