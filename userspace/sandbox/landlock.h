// Landlock: rules for what a process may do with files of any owner (Linux 5.13).
//
// Not for a process that looks into others: inside a Landlock domain /proc/PID/maps, mem and root of processes outside
// are closed (EACCES), whatever the rules and the capabilities say (security/landlock/task.c, domain_ptrace).
#ifndef CLRSAMPLER_SANDBOX_LANDLOCK_H_
#define CLRSAMPLER_SANDBOX_LANDLOCK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace clrsampler {

// From now on this thread, and what it starts, reads files only below `readable`, and neither runs nor changes any. It
// binds no TCP port (Linux 6.7), and no signal and no abstract socket of it reaches another process (6.12). Files that
// it has open stay open. A path that is not there is left out. Needs no_new_privs. Unimplemented: the kernel has no
// Landlock.
absl::Status RestrictToReading(const std::vector<std::string>& readable);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SANDBOX_LANDLOCK_H_
