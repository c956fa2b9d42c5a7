// Tells which files a process sees behind paths.
#ifndef CLRSAMPLER_PROCESS_MOUNTS_IDENTITY_H_
#define CLRSAMPLER_PROCESS_MOUNTS_IDENTITY_H_

#include <string>

#include "process/process.h"

namespace clrsampler {

// The same text for processes with the same mount namespace and the same root directory. The root alone does not tell:
// in a mount namespace of its own a process keeps its root directory and mounts over what is below. Both are of the
// moment when the root directory was opened that its paths are looked up in. Where one of them is not known, a process
// has a text of its own.
std::string MountsIdentity(const Process& process);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_MOUNTS_IDENTITY_H_
