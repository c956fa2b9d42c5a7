#include "sandbox/sandbox.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "sandbox/capabilities.h"
#include "sandbox/landlock.h"
#include "sandbox/syscall_filter.h"
#include "status/status.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#define CAP_CHECKPOINT_RESTORE 40
#endif

namespace clrsampler {
namespace {

constexpr FileUser kNobody{65534, 65534};  // in all distributions

bool MayChangeUser() { return geteuid() == 0 && HasCapability(CAP_SETUID) && HasCapability(CAP_SETGID); }

absl::Status BecomeUser(FileUser user) {
  if (setgroups(0, nullptr) != 0 || setresgid(user.gid, user.gid, user.gid) != 0 ||
      setresuid(user.uid, user.uid, user.uid) != 0) {
    return ErrnoError(errno, absl::StrCat("becoming user ", user.uid));
  }
  return absl::OkStatus();
}

// The kernel asks for the effective user at files, at /proc/sys too. It asks for the two others when somebody sends a
// signal. The list of system calls closes the way back.
absl::Status TouchFilesAs(FileUser user) {
  if (setgroups(0, nullptr) != 0 || setresgid(0, user.gid, 0) != 0 || setresuid(0, user.uid, 0) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("the agent keeps the right to write root's files: ",
                                                      ErrnoError(errno, absl::StrCat("user ", user.uid)).message()));
  }
  return absl::OkStatus();
}

}  // namespace

PreparedAgent PrepareAgent(const AgentNeeds& needs) {
  PreparedAgent prepared;
  SandboxProfile& profile = prepared.profile;
  profile.command = needs.command;
  // The capabilities of the unit. tools/packaging/clrsampler.service gives the purpose of each.
  profile.capabilities = {CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE};
  profile.syscalls = {SyscallGroup::kBase, SyscallGroup::kWriteFiles, SyscallGroup::kProfile,
                      SyscallGroup::kLocalSockets};
  if (needs.stops_threads) profile.syscalls.push_back(SyscallGroup::kStopThreads);
  if (needs.gives_rights_up) profile.syscalls.push_back(SyscallGroup::kGiveUp);
  if (needs.network) profile.syscalls.push_back(SyscallGroup::kNetwork);
  if (needs.old_probes || needs.restricted_perf_events) profile.capabilities.push_back(CAP_SYS_ADMIN);
  if (needs.perf_maps) {
    // The sockets and the perf maps of a runtime are its user's, in a sticky folder.
    profile.capabilities.push_back(CAP_DAC_OVERRIDE);
    profile.capabilities.push_back(CAP_FOWNER);
    return prepared;
  }
  if (needs.late_outputs) {
    // Anybody may own the folder. The file goes to the person behind sudo.
    for (const int capability : {CAP_DAC_OVERRIDE, CAP_CHOWN}) profile.capabilities.push_back(capability);
    return prepared;
  }
  if (!MayChangeUser()) return prepared;
  const FileUser user = AgentFileUser();
  for (const std::string& folder : needs.write_folders) {
    const absl::Status given = HandOver(folder, user);
    if (given.ok()) continue;
    prepared.notes.push_back(absl::StrCat("the agent keeps the right to write root's files: ", given.message()));
    return prepared;
  }
  profile.file_user = user;
  return prepared;
}

SandboxProfile WriterProfile() {
  SandboxProfile profile;
  profile.syscalls = {SyscallGroup::kBase, SyscallGroup::kWriteFiles};
  return profile;
}

SandboxProfile FetcherProfile() {
  SandboxProfile profile;
  profile.syscalls = {SyscallGroup::kBase, SyscallGroup::kLocalSockets, SyscallGroup::kNetwork};
  if (MayChangeUser()) profile.user = kNobody;
  // Libraries, certificates, and how names are looked up: /etc/resolv.conf is a link to /run on many hosts.
  profile.readable = {"/etc",
                      "/usr",
                      "/lib",
                      "/lib64",
                      "/nix/store",
                      "/run/systemd/resolve",
                      "/run/resolvconf",
                      "/run/NetworkManager",
                      "/run/nscd",
                      "/var/lib/ca-certificates",
                      "/var/lib/sss",
                      "/dev/urandom",
                      "/dev/random",
                      "/dev/null",
                      "/proc/self",
                      "/proc/sys/kernel/random",
                      "/proc/sys/vm",
                      "/proc/stat",
                      "/proc/meminfo",
                      "/proc/cpuinfo",
                      "/sys/devices/system/cpu"};
  for (const char* variable : {"SSL_CERT_FILE", "SSL_CERT_DIR"}) {
    if (const char* path = getenv(variable); path != nullptr) profile.readable->emplace_back(path);
  }
  return profile;
}

SandboxProfile ContainerRuntimeProfile() {
  SandboxProfile profile;
  profile.syscalls = {SyscallGroup::kBase, SyscallGroup::kLocalSockets};
  profile.readable.emplace();
  return profile;
}

SandboxProfile FileWorkerProfile() {
  SandboxProfile profile;
  profile.capabilities = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE};
  profile.syscalls = {SyscallGroup::kBase, SyscallGroup::kLocalSockets, SyscallGroup::kFork,
                      SyscallGroup::kFileWorkers};
  if (MayChangeUser()) profile.file_user = AgentFileUser();
  return profile;
}

SandboxProfile ReaderKeeperProfile() {
  SandboxProfile profile;
  profile.syscalls = {SyscallGroup::kBase, SyscallGroup::kTalk, SyscallGroup::kFork, SyscallGroup::kGiveUp};
  if (MayChangeUser()) profile.user = kNobody;
  profile.readable.emplace();
  return profile;
}

SandboxProfile ReaderProfile() {
  SandboxProfile profile;
  profile.syscalls = {SyscallGroup::kBase, SyscallGroup::kTalk};
  return profile;
}

absl::StatusOr<std::vector<std::string>> EnterSandbox(const SandboxProfile& profile) {
  std::vector<std::string> missing;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoError(errno, "no_new_privs");
  const auto optional = [&](const absl::Status& status) {
    if (absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status)) {
      missing.push_back(std::string(status.message()));
      return absl::OkStatus();
    }
    return status;
  };
  ForbidGaining(profile.capabilities);
  // This comes before the change of the user: the new user may not reach the files that the rules name.
  if (profile.readable) RETURN_IF_ERROR(optional(RestrictToReading(*profile.readable)));
  if (profile.user) {
    const absl::Status became = BecomeUser(*profile.user);
    // In a container without that user the agent keeps its own.
    if (!became.ok()) missing.push_back(std::string(became.message()));
  }
  if (profile.file_user) RETURN_IF_ERROR(optional(TouchFilesAs(*profile.file_user)));
  RETURN_IF_ERROR(KeepCapabilities(profile.capabilities));
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  std::vector<pid_t> pids{getpid()};
  if (profile.command != 0) pids.push_back(profile.command);
  const std::vector<SyscallRule> rules = SyscallRules(profile.syscalls, pids);
  const absl::Status filtered = FilterSyscalls(rules);
  RETURN_IF_ERROR(optional(filtered));
  // Then nothing else closes the way back.
  if (!filtered.ok() && profile.file_user && setresuid(geteuid(), geteuid(), geteuid()) != 0) {
    return ErrnoError(errno, absl::StrCat("becoming user ", geteuid()));
  }
  return missing;
}

}  // namespace clrsampler
