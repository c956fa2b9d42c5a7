#include "capture/return_probes.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// __NR_uretprobe, arch/x86/entry/syscalls/syscall_64.tbl of 6.11; newer than the headers here.
constexpr long kUretprobe = 335;

using Version = std::pair<int, int>;

// nullopt: it is no version's text.
std::optional<Version> VersionOf(absl::string_view release) {
  const std::vector<absl::string_view> parts = absl::StrSplit(release, absl::ByAnyChar(".-+"));
  Version version;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &version.first) || !absl::SimpleAtoi(parts[1], &version.second)) {
    return std::nullopt;
  }
  return version;
}

#if defined(__x86_64__)
// In a child: nothing but system calls, since our threads may hold any lock.
[[noreturn]] void CallIt(bool filtered) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // no core dump, and no handler of them that tells of a crash
  signal(SIGILL, SIG_DFL);
  if (filtered) {
    sock_filter refuse[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kUretprobe, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{std::size(refuse), refuse};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      _exit(2);
    }
  }
  syscall(kUretprobe);
  _exit(0);
}

absl::StatusOr<TrampolineCall> Try(bool filtered) {
  const pid_t child = fork();
  if (child < 0) return ErrnoError(errno, "trying return probes");
  if (child == 0) CallIt(filtered);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoError(errno, "trying return probes");
  }
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGILL ? TrampolineCall::kKilled : TrampolineCall::kRefused;  // SIGSYS: by a filter
  }
  if (WEXITSTATUS(status) == 0) return TrampolineCall::kRefused;
  return absl::InternalError("this kernel takes no seccomp filter, by which return probes are tried");
}

absl::Status TryBoth() {
  utsname name{};
  uname(&name);
  // All have the change from there on, and trying takes two processes.
  if (VersionOf(name.release) >= Version{6, 14}) return absl::OkStatus();
  ASSIGN_OR_RETURN(const TrampolineCall bare, Try(false));
  const absl::StatusOr<TrampolineCall> filtered = Try(true);
  // A kernel that has the call and no filters is harmless.
  if (!filtered.ok() && bare == TrampolineCall::kKilled) return absl::OkStatus();
  if (ReturnProbesAreHarmless(bare, filtered.value_or(TrampolineCall::kRefused), name.release)) {
    return absl::OkStatus();
  }
  return WithHint(absl::FailedPreconditionError(
                      absl::StrCat("in Linux ", name.release,
                                   " a return probe crashes processes that have a seccomp filter, as those "
                                   "in containers do")),
                  "update the kernel: 6.12.14, 6.13.3, 6.14 and those before 6.11 have no such fault");
}
#endif

}  // namespace

bool ReturnProbesAreHarmless(TrampolineCall bare, TrampolineCall filtered, absl::string_view release) {
  if (filtered == TrampolineCall::kKilled) return true;
  if (bare == TrampolineCall::kKilled) return false;
  const std::optional<Version> version = VersionOf(release);
  return version && *version < Version{6, 11};
}

absl::Status CheckReturnProbes() {
#if defined(__x86_64__)
  static const auto* const checked = new absl::Status(TryBoth());
  return *checked;
#else
  return absl::OkStatus();
#endif
}

}  // namespace clrsampler
