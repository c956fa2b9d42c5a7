#include "clr/perf_map/lease_repair.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clr/perf_map/perf_map_target.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// A guard outlives its agent at most this long. A target that answers nothing for that time is stopped (a debugger,
// SIGSTOP). The request waits in its socket, and the next run looks after the file.
constexpr uint64_t kGuardPatienceNs = 15'000 * kMillisecondNs;

void Sleep(uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&time, nullptr);
}

uint64_t NamespaceOf(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// The files of a process that has exited, through another one that has the same root directory in the same mount
// namespace.
std::optional<TargetFiles> FilesOfDead(absl::string_view proc_root, const LeaseRecord& record, bool same_boot,
                                       FileBroker* broker) {
  const auto is_same = [&](uint32_t pid, const TargetFiles& files) {
    const auto root = files.RootIdentity();
    if (!root.has_value() || root->first != record.root_device || root->second != record.root_inode) return false;
    // Namespaces are numbered anew at each boot.
    return !same_boot || NamespaceOf(absl::StrCat(proc_root, "/", pid, "/ns/mnt")) == record.mount_namespace;
  };
  const uint32_t self = static_cast<uint32_t>(getpid());
  if (TargetFiles own(proc_root, self, nullptr, broker); is_same(self, own)) return own;
  if (!same_boot) return std::nullopt;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir(std::string(proc_root).c_str()), closedir);
  while (const dirent* entry = processes == nullptr ? nullptr : readdir(processes.get())) {
    uint32_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    if (NamespaceOf(absl::StrCat(proc_root, "/", pid, "/ns/mnt")) != record.mount_namespace) continue;
    if (TargetFiles files(proc_root, pid, nullptr, broker); is_same(pid, files)) return files;
  }
  return std::nullopt;
}

absl::Status DisableAndWait(absl::string_view proc_root, const TargetIdentity& target, const TargetFiles& files,
                            const Clock& clock, MonotonicTime deadline) {
  absl::StatusOr<UniqueFd> connection = ConnectToRuntime(proc_root, target, files);
  while (absl::IsUnavailable(connection.status()) && clock.Now() < deadline) {
    Sleep(20 * kMillisecondNs);
    connection = ConnectToRuntime(proc_root, target, files);
  }
  if (!connection.ok()) return connection.status();
  DiagnosticsExchange exchange(*std::move(connection), EncodeDiagnosticsRequest(DiagnosticsCommand::kDisablePerfMap),
                               deadline);
  while (!exchange.Step(clock.Now())) {
    pollfd wait{exchange.fd(), static_cast<short>(exchange.sending() ? POLLOUT : POLLIN), 0};
    poll(&wait, 1, 100);
  }
  if (!exchange.status().ok()) return exchange.status();
  if (exchange.error().has_value()) return absl::InternalError(DiagnosticsErrorText(*exchange.error()));
  return absl::OkStatus();
}

absl::Status Undo(absl::string_view proc_root, const LeaseRecord& record, const Clock& clock, MonotonicTime deadline,
                  FileBroker* broker) {
  const TargetIdentity& target = record.target;
  const absl::StatusOr<std::string> boot = ReadWholeFile("/proc/sys/kernel/random/boot_id", 128);
  const bool same_boot = boot.ok() && absl::StripSuffix(*boot, "\n") == record.boot_id;
  if (same_boot && NamespaceOf("/proc/self/ns/pid") != record.agent_pid_namespace) {
    return absl::FailedPreconditionError("it was made in another pid namespace");
  }
  // The files come first, then a second look at the process's identity. So the files that were opened belong to that
  // process.
  const TargetFiles files(proc_root, target.tgid, nullptr, broker);
  const bool alive = same_boot && StartTicksOfLiving(proc_root, target.tgid) == target.start_ticks;
  if (!alive) {
    const std::optional<TargetFiles> reachable = FilesOfDead(proc_root, record, same_boot, broker);
    return reachable.has_value() ? RemoveLeasedFiles(record, *reachable) : absl::OkStatus();
  }
  // It has called exec since, and the new program's user wants a map.
  if (EnvironmentEnablesMap(files)) return absl::OkStatus();
  absl::Status disabled = DisableAndWait(proc_root, target, files, clock, deadline);
  // There is no server: the process called exec, or has exited meanwhile. If it has none and still has the map open,
  // that can't be repaired until it exits.
  if (!disabled.ok() && !(absl::IsNotFound(disabled) && HasNoRuntime(proc_root, target))) {
    if (StartTicksOfLiving(proc_root, target.tgid) == target.start_ticks) return disabled;
  }
  if (disabled.ok() && HasMapOpen(proc_root, target) == MapOpen::kYes)
    return absl::OkStatus();  // somebody else's by now
  return RemoveLeasedFiles(record, files);
}

}  // namespace

RepairResult RepairDeadLeases(LeaseStore& store, absl::string_view proc_root, const Clock& clock, uint64_t patience_ns,
                              FileBroker* broker) {
  RepairResult result;
  for (Lease& lease : store.TakeDead()) {
    const absl::Status undone = Undo(proc_root, lease.record(), clock, {clock.Now().ns + patience_ns}, broker);
    if (undone.ok()) {
      lease.Remove();
      ++result.repaired;
    } else {
      result.left.push_back(absl::StrCat("a perf map of process ", lease.record().target.tgid,
                                         " that a killed run switched on: ", undone.message()));
    }
  }
  return result;
}

absl::StatusOr<LeaseGuard> LeaseGuard::Start(const std::string& program, const std::string& directory) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  int ready_ends[2];
  if (pipe2(ready_ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd ready(ready_ends[0]);
  UniqueFd ready_write(ready_ends[1]);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, read_end.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ready_write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // A session of its own: Ctrl-C on the terminal is meant for the agent.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  const uint32_t self = static_cast<uint32_t>(getpid());
  const std::string pid = absl::StrCat(self);
  const std::string ticks = absl::StrCat(StartTicksOfLiving("/proc", self).value_or(0));
  const char* arguments[] = {"clrsampler", kLeaseGuardVerb, directory.c_str(), pid.c_str(), ticks.c_str(), nullptr};
  const char* environment[] = {nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &actions, &attributes, const_cast<char**>(arguments),
                                const_cast<char**>(environment));
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return ErrnoError(error, "cannot start the guard of perf maps");
  return LeaseGuard(std::move(write_end), std::move(ready), child);
}

absl::Status LeaseGuard::Ready() {
  if (watching_) return absl::OkStatus();
  pollfd wait{ready_.get(), POLLIN, 0};
  if (poll(&wait, 1, 0) != 1) return absl::UnavailableError("the guard of perf maps is starting");
  char byte = 0;
  watching_ = read(ready_.get(), &byte, 1) == 1;
  if (watching_) return absl::OkStatus();
  return absl::InternalError("the guard of perf maps did not start");
}

LeaseGuard::~LeaseGuard() {
  if (!pipe_.valid()) return;
  pipe_.reset();
  // With nothing to repair the guard is gone at once. Otherwise it goes on alone.
  for (int i = 0; i < 50 && waitpid(pid_, nullptr, WNOHANG) == 0; ++i) Sleep(2 * kMillisecondNs);
}

int RunLeaseGuard(int argc, char** argv) {
  uint32_t agent_pid = 0;
  uint64_t agent_start_ticks = 0;
  if (argc != 5 || !absl::SimpleAtoi(argv[3], &agent_pid) || !absl::SimpleAtoi(argv[4], &agent_start_ticks)) return 2;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) signal(number, SIG_IGN);
#ifdef SYS_close_range
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);  // whatever a library of the agent opened without O_CLOEXEC
#endif
  if (chdir("/") != 0) return 1;
  absl::StatusOr<LeaseStore> store = LeaseStore::Open(argv[2], /*create=*/false);
  if (!store.ok() || write(STDOUT_FILENO, "r", 1) != 1) return 1;
  close(STDOUT_FILENO);
  char byte;
  ssize_t got;
  do {
    got = read(STDIN_FILENO, &byte, 1);
  } while (got > 0 || (got < 0 && errno == EINTR));

  // The pipe may close before the locks do.
  const SystemClock clock;
  const MonotonicTime give_up{clock.Now().ns + kGuardPatienceNs};
  while (store->CountOf(agent_pid, agent_start_ticks) > 0 && clock.Now() < give_up) {
    RepairDeadLeases(*store, "/proc", clock, 5'000 * kMillisecondNs);
    if (store->CountOf(agent_pid, agent_start_ticks) > 0) Sleep(20 * kMillisecondNs);
  }
  return 0;
}

}  // namespace clrsampler
