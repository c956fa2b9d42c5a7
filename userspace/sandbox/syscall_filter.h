// A seccomp filter for this process: for good, and for what it starts.
#ifndef CLRSAMPLER_SANDBOX_SYSCALL_FILTER_H_
#define CLRSAMPLER_SANDBOX_SYSCALL_FILTER_H_

#include <span>

#include "absl/status/status.h"
#include "sandbox/syscall_list.h"

namespace clrsampler {

// Needs no_new_privs. Unimplemented: the kernel has no filters, or a container forbids them.
absl::Status FilterSyscalls(std::span<const SyscallRule> rules);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SANDBOX_SYSCALL_FILTER_H_
