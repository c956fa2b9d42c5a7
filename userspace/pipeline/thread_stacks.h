// The stacks of all threads of a running process as they stand now, unwound and named as samples are.
#ifndef CLRSAMPLER_PIPELINE_THREAD_STACKS_H_
#define CLRSAMPLER_PIPELINE_THREAD_STACKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/lines/assembly_pdbs.h"
#include "formats/names/frame_text.h"
#include "symbols/frame.h"
#include "unwind/frame_chain.h"

namespace clrsampler {

class FileBroker;
class LineHelper;

struct ThreadFrame {
  UserFrame user;
  Frame frame;
};

// The lock that a thread waits for.
struct ThreadLock {
  bool monitor = true;      // of an object; else a System.Threading.Lock
  bool known = false;       // which one it is; else nothing but `monitor` is
  std::string method;       // that enters it; empty: it could not be told
  std::string type;         // of the object; likewise
  bool held = false;        // by anybody
  uint32_t holder_tid = 0;  // 0: nobody, or a thread that is not in the list
  uint32_t entered = 0;     // how often the holder has entered it
  bool limited = false;     // the thread gives up after some time
};

struct ThreadStack {
  uint32_t tid = 0;
  std::string comm;
  std::vector<ThreadFrame> frames;  // leaf first
  StackEnd end = StackEnd::kComplete;
  std::string trouble;  // why there are no frames
  std::optional<ThreadLock> lock;
};

struct ThreadStacks {
  std::vector<ThreadStack> threads;  // by id
  // Threads that wait for each other's locks in a circle, each for one that the next one holds, and without a limit.
  std::vector<std::vector<uint32_t>> deadlocks;
  // Why threads may wait for locks of which nothing is told here; empty: none does.
  std::string locks_trouble;
  std::vector<std::string> notices;
};

// Each thread stands still for the time that its stack is copied (capture/thread_dump.h) and its code that may be freed
// is read. `files`: as TargetFiles'. `line_helper`: nullptr: native code has no lines. Errors: NotFound,
// PermissionDenied.
absl::StatusOr<ThreadStacks> TakeThreadStacks(uint32_t pid, NameStyle names, const LineOptions& lines = {},
                                              FileBroker* files = nullptr,
                                              std::shared_ptr<LineHelper> line_helper = nullptr);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_THREAD_STACKS_H_
