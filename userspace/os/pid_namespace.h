// The pid namespace of this program.
#ifndef CLRSAMPLER_OS_PID_NAMESPACE_H_
#define CLRSAMPLER_OS_PID_NAMESPACE_H_

#include <cstdint>
#include <optional>

namespace clrsampler {

// Its inode; 0: it is the initial one, where numbers of processes are the host's. nullopt: /proc does not tell.
std::optional<uint32_t> OwnPidNamespaceInode();

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_PID_NAMESPACE_H_
