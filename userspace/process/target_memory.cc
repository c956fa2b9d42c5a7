#include "process/target_memory.h"

#include <fcntl.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "os/file_io.h"
#include "os/tape_answer.h"
#include "process/file_broker.h"
#include "status/status.h"

namespace clrsampler {

namespace {

UniqueFd OpenMemory(absl::string_view proc_root, uint32_t tgid) {
  return UniqueFd(open(absl::StrCat(proc_root, "/", tgid, "/mem").c_str(), O_RDONLY | O_CLOEXEC));
}

bool ReadAllAt(int memory, uint64_t address, std::span<std::byte> into) {
  // Beyond user space on every machine that we know; as a file position it would be negative.
  constexpr uint64_t kEnd = uint64_t{1} << 56;
  if (address >= kEnd || into.size() >= kEnd) return false;
  const absl::StatusOr<size_t> got = ReadAt(memory, address, into);
  return got.ok() && *got == into.size();
}

}  // namespace

bool ReadTargetMemory(uint32_t tgid, uint64_t address, std::span<std::byte> into) {
  const UniqueFd memory = OpenMemory("/proc", tgid);
  return memory.valid() && ReadAllAt(memory.get(), address, into);
}

ReadMemory ReadMemoryThrough(Tape* tape, FileBroker* broker) {
  return [tape, broker](uint32_t tgid, uint64_t address, std::span<std::byte> into) {
    return TapedRead(
        tape, into,
        [&] {
          if (broker == nullptr || !broker->MemoryMayWait("/proc", tgid)) return ReadTargetMemory(tgid, address, into);
          const UniqueFd memory = OpenMemory("/proc", tgid);
          return memory.valid() && broker->ReadMemory(tgid, memory.get(), address, into);
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
  memory = OpenMemory(proc_root, pid);
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
  if (broker_ != nullptr && broker_->MemoryMayWait(proc_root_, pid_)) {
    return broker_->ReadMemory(pid_, memory_.get(), address, into);
  }
  return ReadAllAt(memory_.get(), address, into);
}

}  // namespace clrsampler
