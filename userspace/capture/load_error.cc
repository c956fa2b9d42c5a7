#include "capture/load_error.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Since Linux 5.8 the first two do; CAP_SYS_ADMIN includes both.
bool HasCapability(const __user_cap_data_struct (&data)[2], int capability) {
  return (data[capability / 32].effective & (1u << (capability % 32))) != 0;
}

}  // namespace

std::string MissingCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0 || HasCapability(data, CAP_SYS_ADMIN)) return "";
  std::vector<std::string> missing;
  if (!HasCapability(data, CAP_BPF)) missing.push_back("CAP_BPF");
  if (!HasCapability(data, CAP_PERFMON)) missing.push_back("CAP_PERFMON");
  if (missing.empty()) return "";
  return absl::StrCat(absl::StrJoin(missing, " and "), missing.size() > 1 ? " are" : " is", " missing");
}

absl::Status LoadError(int error_number, absl::string_view what, absl::string_view lockdown) {
  absl::Status error = ErrnoError(error_number, what);
  if (error_number == EPERM || error_number == EACCES) {
    const std::string missing = MissingCapabilities();
    if (!missing.empty()) {
      return WithHint(Annotate(error, missing), kSetcapHint);
    }
    if (lockdown == "confidentiality" || lockdown == "integrity") {
      return WithHint(error, absl::StrCat("the kernel is locked down (", lockdown,
                                          "): boot with lockdown=none or lockdown=integrity, or without secure boot"));
    }
    return WithHint(error,
                    "the capabilities are there, so something else forbids it. In a container use --privileged or a "
                    "seccomp profile that allows bpf and perf_event_open, and run in the initial user namespace. "
                    "Before Linux 5.11 a low limit of locked memory does it too (ulimit -l unlimited)");
  }
  if (error_number == ENOSYS) return WithHint(error, "the kernel needs CONFIG_BPF_SYSCALL");
  if (error_number == EINVAL) return WithHint(error, "Linux 5.10 or newer is needed, with CONFIG_BPF_EVENTS");
  if (error_number == ENOMEM)
    return WithHint(error, "make the ring buffer smaller, or raise the memory limit of the cgroup");
  return error;
}

}  // namespace clrsampler
