#include "inspect/process_list.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/proc/stat_text.h"
#include "inspect/host_facts.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {

bool ProcessInspector::Read(uint32_t pid, bool thoroughly, ProcessFacts& facts) {
  const std::string directory = absl::StrCat(proc_root_, "/", pid);
  facts.pid = pid;
  // The kernel refuses to open it. The text itself is read by the process table.
  const absl::StatusOr<UniqueFd> maps = OpenForReading(directory + "/maps");
  if (absl::IsNotFound(maps.status())) return false;
  if (!maps.ok()) {
    facts.readable = WithHint(maps.status(), HowToRead(OwnCapabilities()));
    const auto text = ReadWholeFile(directory + "/stat", 4096);
    const auto stat = text.ok() ? ParseStat(*text) : text.status();
    if (stat.ok()) facts.comm = stat->comm;
    facts.threads = ReadThreads(proc_root_, pid);
    if (facts.threads.runtime_threads) facts.container = ReadContainer(TargetFiles(proc_root_, pid, nullptr, broker_));
    return true;
  }
  Process& process = table_.FindOrScan(pid, 0);
  if (process.mappings.all().empty()) return false;  // a kernel thread, or a process that is exiting
  facts.comm = process.comm;
  facts.executable = process.executable;
  facts.namespace_pid = process.namespace_pid;
  facts.runtime = runtimes_.Find(process);
  if (!facts.runtime.has_value()) facts.runtime = runtimes_.FindEmulated(process);
  if (facts.runtime.has_value()) {
    if (!facts.runtime->emulated()) facts.memory = memory_.Try(process);
    ReadRuntimeSurroundings(proc_root_, process, images_, facts);
  }
  if (thoroughly) {
    facts.unwind = ReadUnwindFacts(process, images_);
    if (facts.runtime.has_value() && !facts.runtime->emulated())
      facts.hooks = ReadHookFacts(process, *facts.runtime, images_);
    if (RuntimeMemory* const runtime = memory_.RuntimeOf(process.key); runtime != nullptr) {
      facts.pool = ReadPoolFacts(proc_root_, pid, *runtime);
    }
  }
  process.ends->Announce(process.key);
  return true;
}

absl::StatusOr<ProcessList> ProcessInspector::All() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(proc_root_.c_str()), closedir);
  if (directory == nullptr) return ErrnoError(errno, proc_root_);
  std::vector<uint32_t> pids;
  while (const dirent* entry = readdir(directory.get())) {
    uint32_t pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid) && pid != 0) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  ProcessList list;
  for (const uint32_t pid : pids) {
    ProcessFacts facts;
    if (!Read(pid, /*thoroughly=*/false, facts)) continue;
    if (facts.is_dotnet()) {
      list.dotnet.push_back(std::move(facts));
    } else if (facts.readable.ok()) {
      ++list.others;
    } else {
      ++list.unreadable;
      list.how_to_read = HintOf(facts.readable);
    }
  }
  return list;
}

absl::StatusOr<ProcessFacts> ProcessInspector::One(uint32_t pid) {
  struct stat status {};
  const std::string directory = absl::StrCat(proc_root_, "/", pid);
  ProcessFacts facts;
  if (stat(directory.c_str(), &status) != 0 || !Read(pid, /*thoroughly=*/true, facts)) {
    return WithHint(absl::NotFoundError(absl::StrCat("no process ", pid)),
                    "clrsampler ps lists .NET processes; inside a container the ids are others than on the host");
  }
  return facts;
}

}  // namespace clrsampler
