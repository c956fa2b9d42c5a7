#include "clr/jit_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "os/file_io.h"
#include "os/unique_fd.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxEnvironmentBytes = 1 << 20;
constexpr size_t kMaxStatBytes = 4096;
constexpr int kMaxDescriptors = 16 * 1024;
constexpr uint64_t kSecondNs = 1'000'000'000;

uint64_t NowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecondNs + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t Less(uint64_t from, uint64_t by) { return from > by ? from - by : 0; }

// Field 22, counted behind the command's closing bracket: a command may hold spaces and brackets.
std::optional<uint64_t> StartTicks(absl::string_view proc_root, uint32_t tgid) {
  const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat(proc_root, "/", tgid, "/stat"), kMaxStatBytes);
  if (!text.ok()) return std::nullopt;
  const size_t bracket = text->rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*text).substr(bracket + 1), ' ', absl::SkipEmpty());
  uint64_t ticks = 0;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[19], &ticks)) return std::nullopt;
  return ticks;
}

}  // namespace

std::optional<std::string> JitdumpMarkerDirectory(const Mapping& mapping, uint32_t namespace_pid) {
  if (mapping.kind != MappingKind::kFile || namespace_pid == 0) return std::nullopt;
  absl::string_view path = mapping.path;
  const std::string name = absl::StrCat("/jit-", namespace_pid, ".dump");
  if (path.empty() || path[0] != '/' || !absl::ConsumeSuffix(&path, name)) return std::nullopt;
  return path.empty() ? std::string("/") : std::string(path);
}

std::optional<std::string> PerfMapDirectoryOfEnvironment(absl::string_view proc_root, uint32_t tgid) {
  const absl::StatusOr<std::string> environment =
      ReadWholeFile(absl::StrCat(proc_root, "/", tgid, "/environ"), kMaxEnvironmentBytes);
  if (!environment.ok()) return std::nullopt;
  for (absl::string_view variable : absl::StrSplit(*environment, '\0')) {
    if (!absl::ConsumePrefix(&variable, "DOTNET_PerfMapJitDumpPath=") &&
        !absl::ConsumePrefix(&variable, "COMPlus_PerfMapJitDumpPath=")) {
      continue;
    }
    while (variable.size() > 1 && variable.back() == '/') variable.remove_suffix(1);
    if (variable.empty() || variable[0] != '/') return std::nullopt;
    return std::string(variable);
  }
  return std::nullopt;
}

ProcessStart StartOf(absl::string_view proc_root, const Process& process, MonotonicTime now) {
  const uint64_t realtime_ns = NowNs(CLOCK_REALTIME);
  const std::optional<uint64_t> ticks = StartTicks(proc_root, process.key.tgid);
  if (!ticks.has_value()) {
    return {process.first_seen, Less(realtime_ns, Less(now.ns, process.first_seen.ns))};
  }
  // BOOTTIME runs on while the machine sleeps, MONOTONIC does not: the age is an upper bound for the latter, so the
  // start is never later than the truth.
  const uint64_t hertz = static_cast<uint64_t>(std::max<long>(sysconf(_SC_CLK_TCK), 1));
  const uint64_t started_ns = *ticks / hertz * kSecondNs + *ticks % hertz * (kSecondNs / hertz);
  const uint64_t age_ns = Less(NowNs(CLOCK_BOOTTIME), started_ns);
  return {{Less(NowNs(CLOCK_MONOTONIC), age_ns)}, Less(realtime_ns, age_ns)};
}

int64_t MonotonicOffsetOf(absl::string_view proc_root, uint32_t tgid) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(absl::StrCat(proc_root, "/", tgid, "/timens_offsets"), kMaxStatBytes);
  if (!text.ok()) return 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    if (fields.size() == 3 && fields[0] == "monotonic" && absl::SimpleAtoi(fields[1], &seconds) &&
        absl::SimpleAtoi(fields[2], &nanoseconds) && std::abs(seconds) < (int64_t{1} << 32)) {
      return seconds * static_cast<int64_t>(kSecondNs) + nanoseconds;
    }
  }
  return 0;
}

OpenFileState StateOfFile(absl::string_view proc_root, uint32_t tgid, uint64_t device, uint64_t inode,
                          int& descriptor) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(absl::StrCat(proc_root, "/", tgid, "/fd").c_str()),
                                                      closedir);
  if (directory == nullptr) return OpenFileState::kUnknown;
  const auto is_it = [&](const char* name) {
    struct stat status {};
    return fstatat(dirfd(directory.get()), name, &status, 0) == 0 && status.st_dev == device && status.st_ino == inode;
  };
  if (descriptor >= 0 && is_it(absl::StrCat(descriptor).c_str())) return OpenFileState::kOpen;
  descriptor = -1;
  bool any = false;
  for (int seen = 0; seen < kMaxDescriptors; ++seen) {
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) return any ? OpenFileState::kNotOpen : OpenFileState::kUnknown;
    if (entry->d_name[0] == '.') continue;
    any = true;
    if (!is_it(entry->d_name)) continue;
    if (!absl::SimpleAtoi(entry->d_name, &descriptor)) descriptor = -1;
    return OpenFileState::kOpen;
  }
  return OpenFileState::kUnknown;
}

}  // namespace clrsampler
