// Perf maps (/tmp/perf-PID.map): bytes -> lines. Pure: no files, no clock, no logging.
//
// A line is "START SIZE NAME\n": two hexadecimal numbers, then everything up to the line's end. Format:
// linux:tools/perf/Documentation/jit-interface.txt; as .NET writes it: dotnet/runtime:src/coreclr/vm/perfmap.cpp, one
// write(2) per line in 8 to 10. The file grows while it is read; a half-written last line is offered again later.
//
// Taken as they come: "0x" or none, either case of digits, CRLF, names with spaces and of any length below the limit. A
// NUL ends a name (signatures of dynamic methods can hold one). A line that does not fit is counted and skipped: a perf
// map is often damaged, by a full disk or by two writers, and the other lines are still good.
//
// Glued lines: .NET 8 to 10 write as many bytes of a line as it has UTF-16 units. So a name that is not ASCII loses its
// last bytes, the end of line first, and the next line follows without one (seen with 8.0.30, 9.0.19 and 10.0.14).
// "0xSTART SIZE " behind a byte from 0x80 up therefore begins a line. Some of those bytes are always left before it: a
// character of N bytes loses at most two thirds of N.
#ifndef CLRSAMPLER_FORMATS_JIT_PERF_MAP_PARSER_H_
#define CLRSAMPLER_FORMATS_JIT_PERF_MAP_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

struct PerfMapLine {
  uint64_t start = 0;
  uint64_t size = 0;
  absl::string_view name;    // valid during the call only
  uint64_t name_offset = 0;  // in the file
};

class PerfMapSink {
 public:
  virtual ~PerfMapSink() = default;
  virtual void OnLine(const PerfMapLine& line) = 0;
};

struct PerfMapCounters {
  uint64_t lines = 0;        // good ones
  uint64_t bad_lines = 0;    // not "hex hex name"
  uint64_t long_lines = 0;   // above kMaxLineBytes, skipped
  uint64_t glued_lines = 0;  // without an end of line of their own; counted in one of the above too
};

class PerfMapParser {
 public:
  static constexpr size_t kMaxLineBytes = 1 << 20;
  // This much without a line's end is no perf map; a sparse file of zeroes ends here and not after its 10 GiB.
  static constexpr uint64_t kMaxGapBytes = 16 << 20;

  // Takes whole lines from the front of `bytes` and returns how many bytes that were; the caller offers the rest again.
  // A call with more than kMaxLineBytes always gets on. An error is final.
  absl::StatusOr<size_t> Feed(std::span<const std::byte> bytes, PerfMapSink& sink);

  // Takes all of `bytes`, which stand behind what has been used, for a line whose end of line was lost: for a file that
  // has not grown for a while. False, and nothing is used, when they are no line with a name that is not ASCII.
  bool TakeUnended(std::span<const std::byte> bytes, PerfMapSink& sink);

  // The name that begins at the front of `bytes`, as it was reported. Where neither an end of line nor a glued line is
  // in sight, `ended` is false and all that is there is the name.
  static absl::string_view NameAt(absl::string_view bytes, bool& ended);

  const PerfMapCounters& counters() const { return counters_; }
  uint64_t offset() const { return offset_; }  // in the file, of the first byte that has not been used
  bool inside_long_line() const { return gap_bytes_ > 0; }
  // Whether the byte before offset() is an end of line, as far as there is one.
  bool at_line_start() const { return gap_bytes_ == 0 && !behind_glue_; }

 private:
  void TakeLine(absl::string_view text, const char* line, const char* line_end, bool odd, PerfMapSink& sink);

  absl::Status error_;
  PerfMapCounters counters_;
  uint64_t offset_ = 0;
  uint64_t gap_bytes_ = 0;    // of a line above the limit, already thrown away
  bool behind_glue_ = false;  // offset_ is where a line ended without an end of line
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_JIT_PERF_MAP_PARSER_H_
