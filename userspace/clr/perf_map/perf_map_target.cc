#include "clr/perf_map/perf_map_target.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/proc/environ_text.h"
#include "formats/proc/maps_text.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int kMaxDescriptors = 16 * 1024;
constexpr int kMaxThreads = 16 * 1024;
constexpr absl::string_view kFinalizer = ".NET Finalizer";  // since .NET 6
// A file's time comes from the clock of the last jiffy, and wall clocks are set back now and then.
constexpr uint64_t kFileTimeSlackNs = 1'000'000'000;

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;
Directory OpenDirectory(const std::string& path) { return {opendir(path.c_str()), closedir}; }

uint64_t AgeNs(const TargetIdentity& target) {
  const uint64_t hertz = static_cast<uint64_t>(std::max<long>(sysconf(_SC_CLK_TCK), 1));
  const uint64_t started_ns = target.start_ticks / hertz * kSecondNs + target.start_ticks % hertz * (kSecondNs / hertz);
  const uint64_t now_ns = NowNs(CLOCK_BOOTTIME);
  return now_ns > started_ns ? now_ns - started_ns : 0;
}

uint64_t ModifiedNs(const struct stat& status) {
  return static_cast<uint64_t>(status.st_mtim.tv_sec) * kSecondNs + static_cast<uint64_t>(status.st_mtim.tv_nsec);
}

absl::StatusOr<uint64_t> InodeOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return ErrnoError(errno, path);
  return status.st_ino;
}

std::string JitdumpName(uint32_t namespace_pid) { return absl::StrCat("jit-", namespace_pid, ".dump"); }

std::string PathIn(absl::string_view directory, absl::string_view name) {
  return absl::StrCat(directory == "/" ? "" : directory, "/", name);
}

bool IsOurs(const LeaseRecord& record, absl::string_view name, uint64_t device, uint64_t inode, uint64_t modified_ns,
            uint32_t uid) {
  if (uid != record.owner_uid && uid != 0) return false;
  for (const LeasedFile& file : record.files) {
    if (file.name == name) return file.device == device && file.inode == inode;
  }
  // The agent was killed between the request and the look at its file. Before the lease there was no file that this
  // process wrote.
  return modified_ns + kFileTimeSlackNs >= record.created_realtime_ns;
}

}  // namespace

bool RuntimeHasStarted(absl::string_view proc_root, const TargetIdentity& target) {
  if (AgeNs(target) < kMinAgeNs) return false;
  const std::string tasks = absl::StrCat(proc_root, "/", target.tgid, "/task");
  const Directory directory = OpenDirectory(tasks);
  if (directory == nullptr) return false;
  for (int seen = 0; seen < kMaxThreads; ++seen) {
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) return false;
    if (entry->d_name[0] == '.') continue;
    const absl::StatusOr<std::string> name = ReadWholeFile(absl::StrCat(tasks, "/", entry->d_name, "/comm"), 64);
    if (name.ok() && absl::StripSuffix(*name, "\n") == kFinalizer) return true;
  }
  return false;
}

absl::StatusOr<std::string> PerfMapDirectory(const TargetFiles& files) {
  const absl::StatusOr<std::string> environment = files.ReadProc("environ", kMaxEnvironmentBytes);
  if (!environment.ok()) return absl::UnavailableError("its environment can't be read");
  std::string directory(RuntimeSetting(*environment, "PerfMapJitDumpPath").value_or("/tmp"));
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  const bool plain = std::none_of(directory.begin(), directory.end(), [](unsigned char c) { return c < 0x20; });
  if (directory.empty() || directory[0] != '/' || !plain) {
    return absl::FailedPreconditionError("its DOTNET_PerfMapJitDumpPath is no absolute path");
  }
  return directory;
}

bool EnvironmentEnablesMap(const TargetFiles& files) {
  const absl::StatusOr<std::string> environment = files.ReadProc("environ", kMaxEnvironmentBytes);
  if (!environment.ok()) return false;
  const auto setting = RuntimeSetting(*environment, "PerfMapEnabled");
  return setting.has_value() && !std::all_of(setting->begin(), setting->end(), [](char c) { return c == '0'; });
}

MapOpen HasMapOpen(absl::string_view proc_root, const TargetIdentity& target) {
  const Directory directory = OpenDirectory(absl::StrCat(proc_root, "/", target.tgid, "/fd"));
  if (directory == nullptr) return MapOpen::kUnknown;
  const std::string map = absl::StrCat("/", PerfMapFileNames(target.namespace_pid)[0]);
  const std::string dump = absl::StrCat("/", JitdumpName(target.namespace_pid));
  for (int seen = 0; seen < kMaxDescriptors; ++seen) {
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) return MapOpen::kNo;
    std::array<char, 4096> link;
    const ssize_t length = readlinkat(dirfd(directory.get()), entry->d_name, link.data(), link.size());
    if (length <= 0) continue;
    const absl::string_view path = WithoutDeletedMark(absl::string_view(link.data(), static_cast<size_t>(length)));
    if (absl::EndsWith(path, map) || absl::EndsWith(path, dump)) return MapOpen::kYes;
  }
  return MapOpen::kUnknown;
}

bool HasNoRuntime(absl::string_view proc_root, const TargetIdentity& target) {
  return HasMapOpen(proc_root, target) == MapOpen::kNo || !RuntimeHasStarted(proc_root, target);
}

absl::Status CheckNobodysMap(absl::string_view proc_root, const TargetIdentity& target, const TargetFiles& files,
                             absl::string_view directory) {
  if (EnvironmentEnablesMap(files)) {
    return absl::AlreadyExistsError("it was started with DOTNET_PerfMapEnabled");
  }
  switch (HasMapOpen(proc_root, target)) {
    case MapOpen::kYes:
      return absl::AlreadyExistsError("another tool has switched a perf map or jitdump on");
    case MapOpen::kUnknown:
      return absl::UnavailableError("its open files can't be seen");
    case MapOpen::kNo:
      break;
  }
  const uint64_t started_realtime_ns = NowNs(CLOCK_REALTIME) - AgeNs(target);
  for (const std::string& name : PerfMapFileNames(target.namespace_pid)) {
    const std::string path = PathIn(directory, name);
    const absl::StatusOr<OpenedFile> file = files.OpenRuntimeFile(path);
    if (absl::IsNotFound(file.status())) continue;
    // The runtime would write through it: a link, another user's file.
    if (!file.ok()) {
      return absl::FailedPreconditionError(absl::StrCat("something stands in the way: ", file.status().message()));
    }
    if (file->status.st_nlink > 1) return absl::FailedPreconditionError(absl::StrCat(path, " has more than one name"));
    if (ModifiedNs(file->status) + kFileTimeSlackNs >= started_realtime_ns) {
      return absl::FailedPreconditionError(absl::StrCat(path, " was written by it before, for somebody else"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LeaseRecord> DescribeLease(absl::string_view proc_root, const TargetIdentity& target,
                                          const TargetFiles& files, absl::string_view directory) {
  const auto root = files.RootIdentity();
  if (!root.has_value() || !files.owner().has_value())
    return absl::NotFoundError("its root directory can't be reached");
  LeaseRecord record;
  record.agent_pid = static_cast<uint32_t>(getpid());
  record.agent_start_ticks = StartTicksOfLiving("/proc", record.agent_pid).value_or(0);
  const absl::StatusOr<std::string> boot = ReadWholeFile("/proc/sys/kernel/random/boot_id", 128);
  if (boot.ok()) record.boot_id = std::string(absl::StripSuffix(*boot, "\n"));
  record.agent_pid_namespace = InodeOf("/proc/self/ns/pid").value_or(0);
  record.target = target;
  const std::string process = absl::StrCat(proc_root, "/", target.tgid);
  record.pid_namespace = InodeOf(process + "/ns/pid").value_or(0);
  record.mount_namespace = InodeOf(process + "/ns/mnt").value_or(0);
  record.root_device = root->first;
  record.root_inode = root->second;
  record.owner_uid = *files.owner();
  record.created_realtime_ns = NowNs(CLOCK_REALTIME);
  record.directory = std::string(directory);
  return record;
}

std::vector<LeasedFile> FindLeasedFiles(const LeaseRecord& record, const TargetFiles& files) {
  std::vector<LeasedFile> found;
  for (const std::string& name : PerfMapFileNames(record.target.namespace_pid)) {
    const absl::StatusOr<OpenedFile> file = files.OpenRuntimeFile(PathIn(record.directory, name));
    if (!file.ok()) continue;
    const struct stat& status = file->status;
    if (IsOurs(record, name, status.st_dev, status.st_ino, ModifiedNs(status), status.st_uid)) {
      found.push_back({name, status.st_dev, status.st_ino});
    }
  }
  return found;
}

absl::Status RemoveLeasedFiles(const LeaseRecord& record, const TargetFiles& files) {
  absl::Status first;
  for (const std::string& name : PerfMapFileNames(record.target.namespace_pid)) {
    const absl::Status removed = files.RemoveRuntimeFile(record.directory, name, [&](const struct stat& status) {
      return IsOurs(record, name, status.st_dev, status.st_ino, ModifiedNs(status), status.st_uid);
    });
    const bool nothing_of_ours = absl::IsNotFound(removed) || absl::IsFailedPrecondition(removed);
    if (!removed.ok() && !nothing_of_ours && first.ok()) first = removed;
  }
  return first;
}

}  // namespace clrsampler
