#include "inspect/process_facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clr/hooks/allocation_search.h"
#include "clr/hooks/exception_search.h"
#include "clr/hooks/hook_locator.h"
#include "clr/jit_files.h"
#include "clr/perf_map/lease_store.h"
#include "formats/elf/elf_image.h"
#include "formats/proc/environ_text.h"
#include "formats/proc/stat_text.h"
#include "formats/proc/status_text.h"
#include "os/file_io.h"
#include "process/label_reader.h"
#include "process/target_memory.h"
#include "status/status.h"
#include "symbols/debug_file.h"
#include "unwind_data/elf_unwind_data.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxProcFileBytes = 64 * 1024;
constexpr int kMaxThreads = 4096;  // the runtime makes its own first
constexpr absl::string_view kThreadPrefix = ".NET ";
constexpr absl::string_view kServerGcThread = ".NET Server GC";

EnvironmentFacts ReadEnvironment(const TargetFiles& files) {
  EnvironmentFacts facts;
  const auto text = files.ReadProc("environ", kMaxEnvironmentBytes);
  if (!text.ok()) return facts;
  facts.readable = true;
  facts.perf_map_enabled = RuntimeNumber(*text, "PerfMapEnabled");
  facts.enable_diagnostics = RuntimeNumber(*text, "EnableDiagnostics");
  facts.enable_diagnostics_ipc = RuntimeNumber(*text, "EnableDiagnostics_IPC");
  facts.ready_to_run = RuntimeNumber(*text, "ReadyToRun");
  if (const auto folder = EnvironmentValue(*text, "TMPDIR"); folder.has_value() && absl::StartsWith(*folder, "/")) {
    facts.temporary_directory = std::string(*folder);
    while (facts.temporary_directory.size() > 1 && facts.temporary_directory.back() == '/') {
      facts.temporary_directory.pop_back();
    }
  }
  if (EnvironmentValue(*text, "CORECLR_ENABLE_PROFILING").value_or("0") == "1") {
    for (const absl::string_view name : {"CORECLR_PROFILER_PATH_64", "CORECLR_PROFILER_PATH", "CORECLR_PROFILER"}) {
      const auto value = EnvironmentValue(*text, name);
      if (facts.profiler.empty() && value.has_value()) facts.profiler = std::string(value->substr(0, 256));
    }
  }
  return facts;
}

bool MayWrite(const struct stat& status, uint32_t uid) {
  if (uid == 0 || (status.st_mode & S_IWOTH) != 0) return true;
  // It is not known whether the user is in the group. This is not held against the socket.
  return status.st_uid == uid ? (status.st_mode & S_IWUSR) != 0 : (status.st_mode & S_IWGRP) != 0;
}

DirectoryFacts ReadDirectory(const TargetFiles& files, const std::string& path, uint32_t uid) {
  DirectoryFacts facts;
  facts.path = path;
  const absl::StatusOr<OpenedFile> directory = files.OpenDirectory(path);
  facts.status = directory.status();
  if (!directory.ok()) return facts;
  facts.writable = MayWrite(directory->status, uid);
  if (directory->may_wait) {
    facts.status = absl::UnavailableError("it lies on a file system that may not answer");
    return facts;
  }
  struct statvfs file_system {};
  if (fstatvfs(directory->fd.get(), &file_system) != 0) {
    facts.status = ErrnoError(errno, path);
    return facts;
  }
  facts.read_only = (file_system.f_flag & ST_RDONLY) != 0;
  facts.free_bytes = uint64_t{file_system.f_bavail} * file_system.f_frsize;
  return facts;
}

NameFileFacts ReadNameFile(const Process& process, std::string path) {
  NameFileFacts facts;
  facts.path = std::move(path);
  const absl::StatusOr<OpenedFile> file = process.files.OpenRuntimeFile(facts.path);
  if (!file.ok()) return facts;
  facts.exists = true;
  facts.bytes = static_cast<uint64_t>(file->status.st_size);
  facts.live = process.files.HasOpenFile(file->status.st_dev, file->status.st_ino);
  return facts;
}

// The distance that the process's time namespace adds to CLOCK_BOOTTIME, in clock ticks.
int64_t BootTimeOffsetTicks(const std::string& directory, int64_t hertz) {
  const auto text = ReadWholeFile(directory + "/timens_offsets", kMaxProcFileBytes);
  if (!text.ok()) return 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t seconds = 0, nanoseconds = 0;
    if (fields.size() == 3 && fields[0] == "boottime" && absl::SimpleAtoi(fields[1], &seconds) &&
        absl::SimpleAtoi(fields[2], &nanoseconds) && std::abs(seconds) < (int64_t{1} << 32)) {
      return seconds * hertz + nanoseconds / (1'000'000'000 / hertz);
    }
  }
  return 0;
}

// The runtime names its socket by the pid and start time that it sees of itself (dotnet/diagnostics: ipc-protocol.md).
// A socket of another start time belongs to a process that is gone.
void ReadSocket(const std::string& directory, const Process& process, ProcessFacts& facts) {
  const auto text = ReadWholeFile(directory + "/stat", kMaxProcFileBytes);
  const auto stat_text = text.ok() ? ParseStat(*text) : text.status();
  if (!stat_text.ok()) return;
  const int64_t hertz = std::max<int64_t>(sysconf(_SC_CLK_TCK), 1);
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  facts.age_seconds = std::max(
      0.0, static_cast<double>(now.tv_sec) - static_cast<double>(stat_text->start_ticks) / static_cast<double>(hertz));
  const int64_t key = static_cast<int64_t>(stat_text->start_ticks) + BootTimeOffsetTicks(directory, hertz);
  facts.socket_path = absl::StrCat(facts.environment.temporary_directory, "/dotnet-diagnostic-", facts.namespace_pid,
                                   "-", key, "-socket");
  facts.socket = process.files.LocateSocket(facts.socket_path).status();
}

bool HasSymbols(const Process& process, const Mapping& mapping, ImageFiles& images) {
  const auto file = images.Get(process, mapping);
  if (!file.ok()) return false;
  const auto image = ElfImage::Parse((*file)->bytes());
  if (!image.ok()) return false;
  if (image->symtab().has_value()) return true;
  return DebugFileFinder(images).Find(process, mapping.path, *file, *image).has_value();
}

}  // namespace

absl::string_view HowToRead(uint64_t capabilities) {
  const bool may_read_all = (capabilities >> CAP_SYS_PTRACE & 1) != 0;
  return may_read_all ? "the kernel or a security module closes it to root as well"
                      : "run as root, or with cap_sys_ptrace";
}

absl::string_view GcFlavourText(GcFlavour flavour) {
  if (flavour == GcFlavour::kServer) return "server";
  return flavour == GcFlavour::kWorkstation ? "workstation" : "unknown";
}

ThreadFacts ReadThreads(const std::string& proc_root, uint32_t pid) {
  ThreadFacts facts;
  const std::string path = absl::StrCat(proc_root, "/", pid, "/task");
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (directory == nullptr) return facts;
  for (int seen = 0; seen < kMaxThreads; ++seen) {
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] == '.') continue;
    const auto comm = ReadWholeFile(absl::StrCat(path, "/", entry->d_name, "/comm"), 64);
    if (!comm.ok()) continue;
    facts.runtime_threads |= absl::StartsWith(*comm, kThreadPrefix);
    facts.server_gc_threads |= absl::StartsWith(*comm, kServerGcThread);
  }
  return facts;
}

UnwindFacts ReadUnwindFacts(const Process& process, ImageFiles& images) {
  ElfUnwindData data(images);
  for (const Mapping& mapping : process.mappings.all()) {
    if (mapping.kind == MappingKind::kFile) data.Find(process, mapping, mapping.start);
  }
  UnwindFacts facts;
  facts.images = data.counters().images_opened;
  for (const auto& image : data.unusable()) facts.unusable.push_back({image.path, image.reason});
  for (auto& image : data.extents()) {
    facts.extents.push_back(
        {std::move(image.path), image.extent.code_bytes, image.extent.covered_bytes, image.by_code});
  }
  return facts;
}

// Where the collector in a library of its own, or the runtime, reports allocations.
absl::Status CheckAllocations(const Process& process, const Mapping& collector, ImageFiles& images) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const ImageFile> image, images.Get(process, collector));
  ASSIGN_OR_RETURN(const ElfImage elf, ElfImage::Parse(image->bytes()));
  return LocateAllocations(elf).status();
}

HookFacts ReadHookFacts(const Process& process, const DotNetRuntime& runtime, ImageFiles& images) {
  const auto image = images.Get(process, runtime.mapping);
  if (!image.ok()) return {image.status(), image.status(), image.status(), image.status()};
  const absl::StatusOr<ElfImage> elf = ElfImage::Parse((*image)->bytes());
  if (!elf.ok()) return {elf.status(), elf.status(), elf.status(), elf.status()};
  const RuntimeHooks hooks = LocateHooks({.runtime = &*elf});
  HookFacts facts;
  for (const HookKind kind : {HookKind::kSuspendEE, HookKind::kRestartEE}) facts.pauses.Update(hooks[kind].status());
  for (const HookKind kind : {HookKind::kDiagGcStart, HookKind::kDiagGcEnd}) {
    facts.collections.Update(hooks[kind].status());
  }
  facts.allocations = CheckAllocations(process, runtime.standalone_gc.value_or(runtime.mapping), images);
  facts.exceptions = LocateExceptions(*elf).status();
  return facts;
}

ProcessLabels ReadLabels(const std::string& proc_root, const Process& process) {
  Notices unread;  // the table of processes has no room for them; a recording says them
  LabelReader reader(
      [&](uint32_t pid) -> absl::StatusOr<std::unique_ptr<MemoryReader>> {
        return TargetMemory::Open(proc_root, pid, nullptr, process.files.broker());
      },
      unread);
  reader.Read(process, /*is_dotnet=*/true, MonotonicTime::Min());
  return reader.Of(process.key);
}

void ReadRuntimeSurroundings(const std::string& proc_root, const Process& process, ImageFiles& images,
                             ProcessFacts& facts) {
  const std::string directory = absl::StrCat(proc_root, "/", process.key.tgid);
  const auto status_text = ReadWholeFile(directory + "/status", kMaxProcFileBytes);
  if (const auto status = status_text.ok() ? ParseStatus(*status_text) : status_text.status(); status.ok()) {
    facts.uid = status->effective_uid;
    facts.tracer_pid = status->tracer_pid;
    facts.namespace_pid = status->innermost_tgid();
  }
  facts.container = process.container;
  facts.threads = ReadThreads(proc_root, process.key.tgid);
  facts.environment = ReadEnvironment(process.files);
  if (!facts.runtime.has_value()) return;
  facts.labels = ReadLabels(proc_root, process);
  facts.gc = facts.threads.server_gc_threads ? GcFlavour::kServer : GcFlavour::kWorkstation;
  facts.has_symbols = HasSymbols(process, facts.runtime->mapping, images);
  ReadSocket(directory, process, facts);

  const std::string folder = PerfMapDirectoryOfEnvironment(process.files).value_or("/tmp");
  facts.perf_map_directory = ReadDirectory(process.files, folder, facts.uid);
  facts.perf_map = ReadNameFile(process, absl::StrCat(folder, "/perf-", facts.namespace_pid, ".map"));
  if (facts.perf_map.live) {
    const absl::StatusOr<LeaseStore> leases = LeaseStore::Open(kDefaultLeaseDirectory, /*create=*/false);
    facts.perf_map_is_ours = leases.ok() && leases->Has(process.key.tgid);
  }
  facts.jitdump = ReadNameFile(process, absl::StrCat(folder, "/jit-", facts.namespace_pid, ".dump"));
}

}  // namespace clrsampler
