// /proc/PID/task/TID/syscall (fs/proc/base.c, proc_pid_syscall; proc(5)): where a thread that does not run stands.
#ifndef CLRSAMPLER_FORMATS_PROC_SYSCALL_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_SYSCALL_TEXT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace clrsampler {

// "202 0x1 ... 0x7ffe8c2ffe90 0x7fbd9bf0f998": its last two numbers are the stack pointer and the next instruction.
// nullopt: the thread runs, or it is no such text.
std::optional<uint64_t> StackPointerOfBlocked(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_SYSCALL_TEXT_H_
