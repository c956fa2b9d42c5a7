#include "capture/perf_events.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "capture/cpu_list.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {

int OpenCpuEvent(const perf_event_attr& attributes, int cpu) {
  perf_event_attr copy = attributes;  // the kernel writes its own size into it on E2BIG
  const long fd = syscall(SYS_perf_event_open, &copy, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

bool PerfEventsAreRefused() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.disabled = 1;
  const absl::StatusOr<std::vector<int>> cpus = OnlineCpus();
  const int fd = OpenCpuEvent(attributes, cpus.ok() && !cpus->empty() ? cpus->front() : 0);
  if (fd >= 0) close(fd);
  return fd == -EACCES || fd == -EPERM;
}

bool PerfEventsTakeSysAdmin() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct all[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, all) != 0 || (all[0].effective & (1U << CAP_SYS_ADMIN)) == 0) return false;
  __user_cap_data_struct without[_LINUX_CAPABILITY_U32S_3] = {all[0], all[1]};
  without[0].effective &= ~(1U << CAP_SYS_ADMIN);
  if (syscall(SYS_capset, &header, without) != 0) return false;
  const bool refused = PerfEventsAreRefused();
  // A permitted capability may be made effective again.
  if (syscall(SYS_capset, &header, all) != 0) return refused;
  return refused && !PerfEventsAreRefused();
}

absl::Status PerfOpenError(int error_number, absl::string_view what) {
  absl::Status error = ErrnoError(error_number, absl::StrCat(what, ": perf_event_open"));
  if (error_number == EPERM || error_number == EACCES) {
    const absl::StatusOr<std::string> paranoid = ReadWholeFile("/proc/sys/kernel/perf_event_paranoid", 64);
    const std::string setting =
        paranoid.ok() ? absl::StrCat(" (kernel.perf_event_paranoid is ", absl::StripAsciiWhitespace(*paranoid), ")")
                      : "";
    int level = 0;
    if (paranoid.ok() && absl::SimpleAtoi(absl::StripAsciiWhitespace(*paranoid), &level) && level > 2) {
      return WithHint(error, absl::StrCat("kernel.perf_event_paranoid is ", level,
                                          ", where some kernels take CAP_SYS_ADMIN: use sudo; for a service `sysctl "
                                          "kernel.perf_event_paranoid=2`, or the drop-in of docs/operations.md"));
    }
    return WithHint(error, absl::StrCat("use sudo, or give the program CAP_BPF and CAP_PERFMON", setting,
                                        "; inside a container it needs --privileged or these capabilities, and a "
                                        "seccomp profile that allows perf_event_open"));
  }
  if (error_number == EMFILE || error_number == ENFILE) {
    return WithHint(error, "raise the limit of open files (ulimit -n): two are needed for each CPU");
  }
  if (error_number == ENOENT || error_number == EOPNOTSUPP || error_number == ENOSYS) {
    return WithHint(error, "the kernel needs CONFIG_PERF_EVENTS");
  }
  return error;
}

void RaiseOpenFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

absl::Status CpuEvents::Follow(std::span<const int> online, bool all_or_nothing, std::span<const int> stopped,
                               const Close& before_close) {
  main_loop_.Check();
  const auto close = [&](std::span<const int> cpus) {
    for (const int cpu : cpus) {
      if (before_close) before_close(cpu);
      events_.erase(cpu);
    }
  };
  close(stopped);
  const CpuChanges changes = CompareCpus(cpus(), online);
  close(changes.gone);
  std::optional<int> failure;
  for (int cpu : changes.arrived) {
    const int fd = open_(cpu);
    if (fd >= 0) {
      events_[cpu] = UniqueFd(fd);
    } else if (fd != -ENODEV) {
      if (!failure) failure = -fd;
    }
  }
  if (failure) {
    if (all_or_nothing) CloseAll();
    return PerfOpenError(*failure, what_);
  }
  if (events_.empty()) return absl::UnavailableError(absl::StrCat(what_, ": no CPU is online"));
  return absl::OkStatus();
}

std::vector<int> CpuEvents::cpus() const {
  std::vector<int> numbers;
  for (const auto& [cpu, fd] : events_) numbers.push_back(cpu);
  return numbers;
}

}  // namespace clrsampler
