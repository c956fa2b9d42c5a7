// /proc/PID/status (fs/proc/array.c, proc_pid_status; proc(5)).
#ifndef CLRSAMPLER_FORMATS_PROC_STATUS_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_STATUS_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr size_t kMaxStatusBytes = 64 << 10;  // as much as is read of it

struct StatusText {
  std::string name;  // of this task; "\n" and "\\" are turned back into what they stand for
  uint32_t tgid = 0;
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  uint32_t threads = 0;     // 0: a zombie, or not said
  uint32_t tracer_pid = 0;  // who traces it (a debugger, strace); 0: nobody
  uint32_t real_uid = 0;
  uint32_t effective_uid = 0;
  uint64_t switches = 0;  // how often this task has left a CPU: while that stays the same it does not run
  // Ids in the reader's pid namespace first, the innermost last. Empty on a kernel without pid namespaces.
  std::vector<uint32_t> namespace_tgids;
  std::vector<uint32_t> namespace_pids;

  // The pid that the process itself sees and puts into file names.
  uint32_t innermost_tgid() const { return namespace_tgids.empty() ? tgid : namespace_tgids.back(); }
};

// An error when Tgid, Pid or Uid are missing: without them nothing can be decided about the process.
absl::StatusOr<StatusText> ParseStatus(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_STATUS_TEXT_H_
