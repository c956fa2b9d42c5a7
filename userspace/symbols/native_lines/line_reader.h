// Answers questions about lines, in a process that may be lost (line_process.h).
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_READER_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_READER_H_

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "symbols/native_lines/line_table.h"
#include "symbols/native_lines/line_wire.h"

namespace clrsampler {

// One thread.
class LineReader {
 public:
  static constexpr size_t kMaxTables = 8;

  explicit LineReader(OpenLineTable open) : open_(std::move(open)) {}

  LineAnswer Answer(const LineQuestion& question, UniqueFd file);

  // Closes all files; they are opened again when they are asked for.
  void Close() { tables_.clear(); }

 private:
  using Table = absl::StatusOr<std::unique_ptr<LineTable>>;
  Table& Of(uint64_t file, UniqueFd fd);

  const OpenLineTable open_;
  std::list<std::pair<uint64_t, Table>> tables_;  // by file, used last first
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_READER_H_
