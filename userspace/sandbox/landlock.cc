#include "sandbox/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// include/uapi/linux/landlock.h of 6.12; newer than the headers here. The numbers are those of all architectures.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr uint32_t kVersionOnly = 1;
constexpr int kPathBeneath = 1;

struct Ruleset {
  uint64_t files;
  uint64_t network;  // version 4
  uint64_t scoped;   // version 6
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed;
  int32_t parent;
};

constexpr uint64_t kReadFile = 1 << 2;
constexpr uint64_t kReadFolder = 1 << 3;
constexpr uint64_t kFilesOfVersion1 = (1 << 13) - 1;
constexpr uint64_t kRefer = 1 << 13;           // version 2
constexpr uint64_t kTruncate = 1 << 14;        // version 3
constexpr uint64_t kDeviceIoctl = 1 << 15;     // version 5
constexpr uint64_t kBindTcp = 1 << 0;          // version 4
constexpr uint64_t kAbstractSockets = 1 << 0;  // version 6
constexpr uint64_t kSignals = 1 << 1;          // version 6

Ruleset Everything(long version) {
  Ruleset all{kFilesOfVersion1, 0, 0};
  if (version >= 2) all.files |= kRefer;
  if (version >= 3) all.files |= kTruncate;
  if (version >= 4) all.network = kBindTcp;
  if (version >= 5) all.files |= kDeviceIoctl;
  if (version >= 6) all.scoped = kAbstractSockets | kSignals;
  return all;
}

size_t BytesOfVersion(long version) { return version >= 6 ? 24 : version >= 4 ? 16 : 8; }

}  // namespace

absl::Status RestrictToReading(const std::vector<std::string>& readable) {
  const long version = syscall(kCreateRuleset, nullptr, 0, kVersionOnly);
  if (version < 1) return absl::UnimplementedError("this kernel has no Landlock");
  const Ruleset all = Everything(version);
  const UniqueFd rules(static_cast<int>(syscall(kCreateRuleset, &all, BytesOfVersion(version), 0)));
  if (!rules.valid()) return ErrnoError(errno, "landlock_create_ruleset");
  for (const std::string& path : readable) {
    const UniqueFd parent(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    if (!parent.valid() || fstat(parent.get(), &status) != 0) continue;
    const PathBeneath rule{S_ISDIR(status.st_mode) ? kReadFile | kReadFolder : kReadFile, parent.get()};
    if (syscall(kAddRule, rules.get(), kPathBeneath, &rule, 0) != 0) return ErrnoError(errno, path);
  }
  if (syscall(kRestrictSelf, rules.get(), 0) != 0) return ErrnoError(errno, "landlock_restrict_self");
  return absl::OkStatus();
}

}  // namespace clrsampler
