// The stack of a thread that does not run, read from its memory, in the form of a sample.
#ifndef CLRSAMPLER_CAPTURE_STACK_COPY_H_
#define CLRSAMPLER_CAPTURE_STACK_COPY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "clrsampler/wire.h"
#include "os/unique_fd.h"

namespace clrsampler {

// A wire_cpu_sample with what follows it. `head`: registers, and what names the thread. `memory`: /proc/PID/mem; at
// most `max_stack_bytes` are read of it, from the stack pointer on, as far as there is memory.
std::vector<uint64_t> RecordWithStack(wire_cpu_sample head, std::span<const uint64_t> kernel, int memory,
                                      uint64_t max_stack_bytes);

// The same with any reader of memory. False: not all of it is there.
using ReadMemoryFunction = absl::FunctionRef<bool(uint64_t address, std::span<std::byte> into)>;
std::vector<uint64_t> RecordWithStack(wire_cpu_sample head, std::span<const uint64_t> kernel, ReadMemoryFunction read,
                                      uint64_t max_stack_bytes);

// The memory that a thread's stack lies in. Only pages that are in memory or in swap are read, since a read of others
// can wait without an end. The process may keep them back (userfaultfd), or have a file of its own there (FUSE). A page
// that was never touched has zeroes, in the middle of a stack. Where nothing follows within kMaxHoleBytes, the stack
// ends: at a guard page, say, which /proc/PID/mem shows as well.
class StackMemory {
 public:
  static constexpr uint64_t kMaxHoleBytes = 256 << 10;

  explicit StackMemory(uint32_t tid);

  // The bytes lie in one page. False: the stack has ended, or the thread.
  bool Read(uint64_t address, std::span<std::byte> into) const;

 private:
  UniqueFd memory_;
  UniqueFd pages_;  // /proc/PID/pagemap; some kernels have none
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_STACK_COPY_H_
