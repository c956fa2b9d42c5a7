// The names of .NET processes: from the process context that they publish, else from their environment.
//
// The process is asked by reading /proc and its memory, and never waits for us. It may claim any name for itself, but
// for where it runs, if its node says that. The words of control groups about a process are not among the labels, so
// that no claim can change them.
#ifndef CLRSAMPLER_PROCESS_LABEL_READER_H_
#define CLRSAMPLER_PROCESS_LABEL_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/labels/process_context.h"
#include "formats/labels/process_labels.h"
#include "os/clock.h"
#include "process/process.h"
#include "process/target_memory.h"
#include "status/notices.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class LabelReader {
 public:
  // The memory of the process as it is now; a read fails once the process has another program.
  using OpenMemory = std::function<absl::StatusOr<std::unique_ptr<MemoryReader>>(uint32_t pid)>;
  LabelReader(OpenMemory open, Notices& notices) : open_(std::move(open)), notices_(notices) {}

  // Whether it is time to look. A process that publishes nothing is looked at again after a second, and after twice as
  // long each time, up to 5 minutes. One that does is asked every 10 s whether it has published something else.
  bool IsDue(const Process& process, MonotonicTime now) const;
  // Reads what the process says, if it is a .NET process; nothing is read of others.
  void Read(const Process& process, bool is_dotnet, MonotonicTime now);
  // The place where the node says that the process runs; empty: it does not say.
  void SetPlace(const Process& process, const ProcessLabels& place);
  // Whether a place is known of the program that the process runs now.
  bool HasPlace(const Process& process) const;
  // The labels that are known; those of a process that has ended are known until Forget.
  ProcessLabels Of(ProcessKey process) const;
  void Forget(ProcessKey process) { known_.erase(process); }

 private:
  struct Known {
    uint32_t exec_count = 0;
    bool environment_read = false;
    uint32_t changes = 0;  // of what it publishes
    MonotonicTime next;
    uint64_t wait_ns = 0;
    uint64_t mapping = 0;       // where the header is; 0: nowhere
    uint64_t published_ns = 0;  // of what `context` says
    ProcessLabels place;        // that the node says
    uint32_t place_exec_count = 0;
    ProcessLabels environment;
    ProcessLabels context;
  };
  // The header's address, and what it says.
  struct Found {
    uint64_t mapping = 0;
    ContextHeader header;
  };

  void Read(const Process& process, Known& known);
  absl::Status ReadContext(const Process& process, MemoryReader& memory, Known& known);
  absl::StatusOr<std::optional<Found>> Locate(const Process& process, MemoryReader& memory, uint64_t mapping);

  const OpenMemory open_;
  Notices& notices_;
  absl::flat_hash_map<ProcessKey, Known> known_;  // through an exec: it changes no place
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_LABEL_READER_H_
