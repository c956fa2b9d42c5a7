#include "sandbox/capabilities.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "status/status.h"

namespace clrsampler {
namespace {

using Sets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;
constexpr int kMaxCapabilities = 64;

__user_cap_header_struct Header() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

}  // namespace

bool HasCapability(int capability) {
  __user_cap_header_struct header = Header();
  Sets sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return false;
  return (sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

void ForbidGaining(std::span<const int> kept) {
  for (int capability = 0; capability < kMaxCapabilities; ++capability) {
    if (std::find(kept.begin(), kept.end(), capability) == kept.end()) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                               SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

absl::Status KeepCapabilities(std::span<const int> kept) {
  __user_cap_header_struct header = Header();
  Sets sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return ErrnoError(errno, "capget");
  Sets wanted{};
  for (const int capability : kept) wanted[CAP_TO_INDEX(capability)].permitted |= CAP_TO_MASK(capability);
  for (size_t i = 0; i < sets.size(); ++i) {
    sets[i].permitted &= wanted[i].permitted;
    sets[i].effective = sets[i].permitted;
    sets[i].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, sets.data()) != 0) return ErrnoError(errno, "capset");
  return absl::OkStatus();
}

}  // namespace clrsampler
