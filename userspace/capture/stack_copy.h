// The stack of a thread that does not run, read from its memory, in the form of a sample.
#ifndef CLRSAMPLER_CAPTURE_STACK_COPY_H_
#define CLRSAMPLER_CAPTURE_STACK_COPY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "clrsampler/wire.h"

namespace clrsampler {

// A wire_cpu_sample with what follows it. `head`: registers, and what names the thread. `memory`: /proc/PID/mem; at
// most `max_stack_bytes` are read of it, from the stack pointer on, as far as there is memory.
std::vector<uint64_t> RecordWithStack(wire_cpu_sample head, std::span<const uint64_t> kernel, int memory,
                                      uint64_t max_stack_bytes);

// The same with any reader of memory. False: not all of it is there.
using ReadMemoryFunction = absl::FunctionRef<bool(uint64_t address, std::span<std::byte> into)>;
std::vector<uint64_t> RecordWithStack(wire_cpu_sample head, std::span<const uint64_t> kernel, ReadMemoryFunction read,
                                      uint64_t max_stack_bytes);

// Reads what the process itself may read. /proc/PID/mem also has guard pages, so that a stack would not end at one.
bool ReadOwnMemoryOf(uint32_t tid, uint64_t address, std::span<std::byte> into);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_STACK_COPY_H_
