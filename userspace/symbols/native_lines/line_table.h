// The lines of one file with debug information, as the reader sees it.
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_TABLE_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "os/unique_fd.h"
#include "symbols/native_lines/line_wire.h"

namespace clrsampler {

// One thread.
class LineTable {
 public:
  virtual ~LineTable() = default;
  // The line of the instruction at `address`, as linked. Without a file: the table does not say.
  virtual NativeLine At(uint64_t address) = 0;
};

using OpenLineTable = std::function<absl::StatusOr<std::unique_ptr<LineTable>>(UniqueFd file)>;

// By elfutils' libdw, which is loaded here. A hostile file may make it crash or run for ever, so a table belongs into a
// process of its own (line_process.h). Unavailable: libdw is not installed, or the program is static and can open no
// library.
absl::StatusOr<OpenLineTable> LoadDwarfLines();

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_TABLE_H_
