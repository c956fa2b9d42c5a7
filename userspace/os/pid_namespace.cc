#include "os/pid_namespace.h"

#include <sys/stat.h>

namespace clrsampler {
namespace {

constexpr ino_t kInitial = 0xEFFFFFFC;  // PROC_PID_INIT_INO, include/linux/proc_ns.h

}  // namespace

std::optional<uint32_t> OwnPidNamespaceInode() {
  struct stat status {};
  if (stat("/proc/self/ns/pid", &status) != 0) return std::nullopt;
  return status.st_ino == kInitial ? 0 : static_cast<uint32_t>(status.st_ino);
}

}  // namespace clrsampler
