// One process as of the event that is being handled.
#ifndef CLRSAMPLER_PROCESS_PROCESS_H_
#define CLRSAMPLER_PROCESS_PROCESS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "os/clock.h"
#include "process/container.h"
#include "process/mappings.h"
#include "process/process_key.h"
#include "process/program_ends.h"
#include "process/target_files.h"

namespace clrsampler {

struct Process {
  Process(ProcessKey process_key, TargetFiles target_files) : key(process_key), files(std::move(target_files)) {}

  ProcessKey key;
  uint32_t namespace_pid = 0;   // innermost pid, the one in file names that the process writes; 0: not known
  std::optional<uint32_t> uid;  // real, when it was read; nullopt: not known
  std::string comm;             // of the thread group leader
  std::string executable;       // path of /proc/PID/exe at start or exec; may be empty
  Container container;          // as of start or exec: container runtimes move a process before its exec
  MonotonicTime first_seen;
  // CLOCK_BOOTTIME, in whole ticks as /proc has it; 0: not known. With the id, which process this is, for everybody who
  // looks at it at any time while the machine runs.
  uint64_t started_boot_ns = 0;
  // Since when there is memory for compiled code; of a process that had some when it was first read, since its start or
  // the last exec that we know of. Max: there is none.
  MonotonicTime compiles_since = MonotonicTime::Max();
  MonotonicTime scanned;  // /proc was read then, or its fork handled: events up to this time are in it
  MonotonicTime exited = MonotonicTime::Max();
  // The `mappings` hold from here on; older samples belong to a program that the process has replaced by exec.
  MonotonicTime code_known_since = MonotonicTime::Min();
  // An exec that has happened but not been handled yet: what is read of the process now belongs to the new program.
  MonotonicTime exec_announced = MonotonicTime::Max();
  // StatText::start_stack of the program that is known; 0: not known. Another one tells of an exec whose event was
  // lost.
  uint64_t start_stack = 0;
  uint32_t exec_count = 0;  // an exec replaces all mappings and everything that was known about code
  MappingTable mappings;
  TargetFiles files;
  // Where it is announced that this program is over: its table's, of a process in one.
  std::shared_ptr<ProgramEnds> ends = std::make_shared<ProgramEnds>();
};

// Whether the address is where the kernel has return probes return to, in a process that ran into one.
inline bool IsInTrampoline(const Process& process, uint64_t address) {
  const Mapping* mapping = process.mappings.Find(address);
  return mapping != nullptr && mapping->path == "[uprobes]";
}
// Whether such a place is known. It is where the kernel found room last, so most often the highest mapping.
inline bool KnowsTrampoline(const Process& process) {
  const MappingTable::Mappings& all = process.mappings.all();
  return std::any_of(all.rbegin(), all.rend(), [](const Mapping& mapping) { return mapping.path == "[uprobes]"; });
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_PROCESS_H_
