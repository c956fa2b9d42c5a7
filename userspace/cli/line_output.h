// Lines for a reader that may stop reading, as `less` does. The program that writes them has to go on, and to end when
// asked to.
#ifndef CLRSAMPLER_CLI_LINE_OUTPUT_H_
#define CLRSAMPLER_CLI_LINE_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// One thread. Borrows the descriptor, which nobody else writes to.
class LineOutput {
 public:
  // At most `limit` bytes are kept that the reader has not taken: by default some 100,000 lines.
  explicit LineOutput(int fd, size_t limit = 16 << 20) : fd_(fd), limit_(limit) {}

  // Never waits. A line that would go past the limit is left out and counted.
  void Print(absl::string_view line);
  // The rest, in the reader's own time: signals must end the program again.
  absl::Status Finish();

  uint64_t left_out() const { return left_out_; }

 private:
  absl::Status Write(int timeout_ms);

  int fd_;
  size_t limit_;
  std::string waiting_;
  size_t written_ = 0;  // of `waiting_`
  uint64_t left_out_ = 0;
};

// On standard error, if lines were left out.
void SayLeftOut(const LineOutput& output);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_LINE_OUTPUT_H_
