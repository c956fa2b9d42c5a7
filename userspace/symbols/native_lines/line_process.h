// The processes that read debug information of targets, which is hostile.
//
// A keeper, which is made at the start and reads nothing, has one reader at a time. The reader is nobody, has no
// network and opens no file: it answers for those that come with the questions. One that crashes, runs for too long or
// takes too much memory is replaced, and the file at which that happened is not read again.
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_PROCESS_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sandbox/answering_process.h"
#include "symbols/native_lines/line_table.h"

namespace clrsampler {

struct LineProcessLimits {
  unsigned question_seconds = 10;
  uint64_t data_bytes = uint64_t{512} << 20;  // of a reader, besides what it begins with; mapped files do not count
  int readers = 64;                           // how many in all
};

// The agent's end. Main loop only.
class LineHelper : public AnsweringProcess {
 public:
  // False: it takes no more now, or has ended.
  virtual bool Send(absl::string_view question, int file) = 0;
  // For good, whatever it does.
  virtual void End() = 0;
};

// This program must have one thread, and the right to make a process. `load`: called in the new process, before it has
// given up its rights; LoadDwarfLines outside tests. If libdw or the process can't be had, an answer says so.
std::unique_ptr<LineHelper> StartLineHelper(const LineProcessLimits& limits = {},
                                            std::function<absl::StatusOr<OpenLineTable>()> load = LoadDwarfLines);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_PROCESS_H_
