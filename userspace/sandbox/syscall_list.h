// The system calls that a process keeps. Pure: the lists, by what they are for.
//
// A list allows; what is on none fails with EPERM. Names that an architecture or this libseccomp does not have are left
// out.
#ifndef CLRSAMPLER_SANDBOX_SYSCALL_LIST_H_
#define CLRSAMPLER_SANDBOX_SYSCALL_LIST_H_

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace clrsampler {

enum class SyscallGroup : uint8_t {
  kBase,         // memory, clocks, waiting, signals to itself, threads, reading files
  kWriteFiles,   // makes, renames and removes files
  kProfile,      // BPF, perf events, the memory of other processes (to read it)
  kStopThreads,  // the part of ptrace(2) by which `clrsampler stacks` reads registers
  kTalk,         // over sockets that it has
  kLocalSockets,
  kFork,         // makes processes like itself, which end with it
  kFileWorkers,  // answers for files of targets
  kGiveUp,       // capabilities and system calls go, and none comes back
  kNetwork,      // TCP and UDP, and what name look-ups take
};

// An argument that decides: (argument & mask) == value.
struct ArgumentCondition {
  unsigned index;
  uint64_t mask;
  uint64_t value;
};

struct SyscallRule {
  const char* name;
  std::vector<ArgumentCondition> conditions;  // all must hold; a call may have several rules
};

// `pids`: to which signals may go: the process itself, and a command that it has started.
std::vector<SyscallRule> SyscallRules(std::span<const SyscallGroup> groups, std::span<const pid_t> pids);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SANDBOX_SYSCALL_LIST_H_
