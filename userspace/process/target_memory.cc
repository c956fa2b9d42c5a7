#include "process/target_memory.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "os/tape_answer.h"
#include "process/file_broker.h"
#include "status/status.h"

namespace clrsampler {

bool ReadTargetMemory(uint32_t tgid, uint64_t address, std::span<std::byte> into) {
  const iovec local{into.data(), into.size()};
  const iovec remote{reinterpret_cast<void*>(address), into.size()};  // NOLINT: of the other process
  return process_vm_readv(static_cast<pid_t>(tgid), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(into.size());
}

ReadMemory ReadMemoryThrough(Tape* tape, FileBroker* broker) {
  return [tape, broker](uint32_t tgid, uint64_t address, std::span<std::byte> into) {
    return TapedRead(
        tape, into,
        [&] {
          if (broker == nullptr || !broker->MemoryMayWait("/proc", tgid)) return ReadTargetMemory(tgid, address, into);
          return broker->ReadMemory(tgid, -1, address, into);
        },
        "now ", tgid, " ", address);
  };
}

absl::StatusOr<std::unique_ptr<TargetMemory>> TargetMemory::Open(absl::string_view proc_root, uint32_t pid, Tape* tape,
                                                                 FileBroker* broker) {
  std::unique_ptr<TargetMemory> memory(new TargetMemory(proc_root, pid, tape, broker));
  const absl::Status opened = Taped(
      tape, [&] { return OpenNow(proc_root, pid, memory->memory_); }, "memory of ", pid);
  if (absl::IsPermissionDenied(opened)) return WithHint(opened, "run as root or with CAP_SYS_PTRACE");
  RETURN_IF_ERROR(opened);
  return memory;
}

absl::Status TargetMemory::OpenNow(absl::string_view proc_root, uint32_t pid, UniqueFd& memory) {
  memory = UniqueFd(open(absl::StrCat(proc_root, "/", pid, "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (memory.valid()) return absl::OkStatus();
  if (errno == EACCES || errno == EPERM) {
    return absl::PermissionDeniedError(absl::StrCat("the memory of process ", pid, " may not be read"));
  }
  return absl::NotFoundError(absl::StrCat("the memory of process ", pid, " is not there any more"));
}

bool TargetMemory::Read(uint64_t address, std::span<std::byte> into) {
  ++counters_.reads;
  counters_.bytes += into.size();
  const bool done = TapedRead(
      tape_, into, [&] { return ReadNow(address, into); }, "memory ", pid_, " ", address);
  if (!done) ++counters_.failures;
  return done;
}

bool TargetMemory::ReadNow(uint64_t address, std::span<std::byte> into) {
  // Beyond user space on every machine that we know; as a file position it would be negative.
  constexpr uint64_t kEnd = uint64_t{1} << 56;
  if (address >= kEnd || into.size() >= kEnd) return false;
  if (broker_ != nullptr && broker_->MemoryMayWait(proc_root_, pid_)) {
    return broker_->ReadMemory(pid_, memory_.get(), address, into);
  }
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t count =
        pread(memory_.get(), into.data() + done, into.size() - done, static_cast<off_t>(address + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace clrsampler
