#include "os/own_usage.h"

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "os/file_io.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxTextBytes = 64 * 1024;

// The fields of /proc/self/stat from the third one on. The second one, the name, may have spaces and brackets.
std::vector<std::string> StatFields() {
  const absl::StatusOr<std::string> text = ReadWholeFile("/proc/self/stat", kMaxTextBytes);
  if (!text.ok()) return {};
  const size_t bracket = text->rfind(')');
  if (bracket == std::string::npos) return {};
  return absl::StrSplit(absl::string_view(*text).substr(bracket + 1), ' ', absl::SkipEmpty());
}

rusage Used(int who) {
  rusage used = {};
  getrusage(who, &used);
  return used;
}

uint64_t CpuMicroseconds(const rusage& used) {
  return static_cast<uint64_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000 +
         static_cast<uint64_t>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

uint64_t PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

uint64_t NumberAt(const std::vector<std::string>& fields, size_t field) {
  uint64_t number = 0;
  const size_t index = field - 3;  // as proc(5) counts them
  return index < fields.size() && absl::SimpleAtoi(fields[index], &number) ? number : 0;
}

uint64_t OpenDescriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), &closedir);
  if (folder == nullptr) return 0;
  uint64_t count = 0;
  while (readdir(folder.get()) != nullptr) ++count;
  return count - 3;  // ".", ".." and the folder itself
}

}  // namespace

OwnUsage ReadOwnUsage() {
  OwnUsage usage;
  const std::vector<std::string> fields = StatFields();
  usage.virtual_bytes = NumberAt(fields, 23);
  usage.resident_bytes = NumberAt(fields, 24) * PageBytes();
  // Ticks since the machine started; the wall clock's distance to that clock moves when it is set.
  timespec since_boot = {}, now = {};
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  clock_gettime(CLOCK_REALTIME, &now);
  const double boot =
      static_cast<double>(now.tv_sec - since_boot.tv_sec) + static_cast<double>(now.tv_nsec - since_boot.tv_nsec) / 1e9;
  usage.start_unix_seconds =
      boot + static_cast<double>(NumberAt(fields, 22)) / static_cast<double>(sysconf(_SC_CLK_TCK));
  usage.cpu_seconds = static_cast<double>(OwnCpuMicroseconds()) / 1e6;
  usage.open_fds = OpenDescriptors();
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) usage.max_fds = limit.rlim_cur;
  return usage;
}

OwnMemory ReadOwnMemory() {
  const absl::StatusOr<std::string> text = ReadWholeFile("/proc/self/statm", kMaxTextBytes);
  if (!text.ok()) return {};
  const std::vector<absl::string_view> fields = absl::StrSplit(*text, ' ');
  uint64_t resident = 0, shared = 0;
  if (fields.size() < 3 || !absl::SimpleAtoi(fields[1], &resident) || !absl::SimpleAtoi(fields[2], &shared)) return {};
  return {resident * PageBytes(), (resident - std::min(resident, shared)) * PageBytes()};
}

uint64_t OwnCpuMicroseconds() { return CpuMicroseconds(Used(RUSAGE_SELF)); }

uint64_t OwnThreadCpuNs() { return CpuMicroseconds(Used(RUSAGE_THREAD)) * 1000; }

uint64_t OwnPeakResidentBytes() { return static_cast<uint64_t>(Used(RUSAGE_SELF).ru_maxrss) * 1024; }

}  // namespace clrsampler
