#include "process/target_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<std::unique_ptr<TargetMemory>> TargetMemory::Open(absl::string_view proc_root, uint32_t pid) {
  const std::string path = absl::StrCat(proc_root, "/", pid, "/mem");
  UniqueFd memory(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (memory.valid()) return std::unique_ptr<TargetMemory>(new TargetMemory(std::move(memory)));
  if (errno == EACCES || errno == EPERM) {
    return WithHint(absl::PermissionDeniedError(absl::StrCat("the memory of process ", pid, " may not be read")),
                    "run as root or with CAP_SYS_PTRACE");
  }
  return absl::NotFoundError(absl::StrCat("the memory of process ", pid, " is not there any more"));
}

bool TargetMemory::Read(uint64_t address, std::span<std::byte> into) {
  ++counters_.reads;
  counters_.bytes += into.size();
  // Beyond user space on every machine that we know; as a file position it would be negative.
  constexpr uint64_t kEnd = uint64_t{1} << 56;
  if (address < kEnd && into.size() < kEnd) {
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t count =
          pread(memory_.get(), into.data() + done, into.size() - done, static_cast<off_t>(address + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    if (done == into.size()) return true;
  }
  ++counters_.failures;
  return false;
}

}  // namespace clrsampler
