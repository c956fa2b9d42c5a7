// The rights that a process gives up for good: a list for each kind of process, taken on in one call.
#ifndef CLRSAMPLER_SANDBOX_SANDBOX_H_
#define CLRSAMPLER_SANDBOX_SANDBOX_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sandbox/file_user.h"
#include "sandbox/syscall_list.h"

namespace clrsampler {

struct SandboxProfile {
  std::vector<int> capabilities;                     // of those that it has, these stay
  std::vector<SyscallGroup> syscalls;                // all others fail
  std::optional<FileUser> user;                      // it becomes this user
  std::optional<FileUser> file_user;                 // or only its files are this user's
  std::optional<std::vector<std::string>> readable;  // Landlock: it reads files below these, and changes none
  pid_t command = 0;                                 // that it may send signals to, besides itself; 0: none
};

// The work of an agent besides sampling.
struct AgentNeeds {
  bool perf_maps = false;                  // switches on perf maps of others, in their folders
  bool late_outputs = false;               // makes results at its end, in any folder
  bool stops_threads = false;              // reads the registers of threads
  bool gives_rights_up = false;            // enters WriterProfile at its end
  bool network = false;                    // the server, pushes
  bool old_probes = false;                 // probes by perf events: before Linux 6.6 they take CAP_SYS_ADMIN
  bool restricted_perf_events = false;     // the kernel takes CAP_SYS_ADMIN for the events of a CPU
  std::vector<std::string> write_folders;  // where it makes files while it runs
  pid_t command = 0;                       // that it has started; 0: none
};

struct PreparedAgent {
  SandboxProfile profile;
  std::vector<std::string> notes;  // sentences: what of the sandbox can't be had, and why
};

// Gives the agent's folders to the user that it touches files as, where it is root.
PreparedAgent PrepareAgent(const AgentNeeds& needs);

// The profile of the process that talks to symbol servers. It is nobody, and reads what TLS and name look-ups take.
SandboxProfile FetcherProfile();

// For the process that asks the container runtime: the user that started it, as whom it may connect, without
// capabilities and files.
SandboxProfile ContainerRuntimeProfile();

// For the processes that open files of targets: they see what the agent sees, write into nothing, and have no network.
SandboxProfile FileWorkerProfile();

// The profile of the process that makes readers of hostile files, one at a time. It is nobody, and opens no file.
SandboxProfile ReaderKeeperProfile();

// For such a reader, which its keeper has forked: files are handed over to it, and it answers.
SandboxProfile ReaderProfile();

// For what only writes results any more, in places that it has chosen: it has no rights but its user's.
SandboxProfile WriterProfile();

// For a process with one thread. A part that the kernel or the rights of the caller do not allow is left out, and is a
// sentence of the answer. An error: the process has kept more than it should, and must not go on.
absl::StatusOr<std::vector<std::string>> EnterSandbox(const SandboxProfile& profile);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SANDBOX_SANDBOX_H_
