// Lines by the two ways through debug information. Included only where libdw's headers are there.
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_DWARF_TABLES_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_DWARF_TABLES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "symbols/native_lines/libdw.h"
#include "symbols/native_lines/line_table.h"

namespace clrsampler {

// By the units (.debug_info), which also say how their code was compiled.
absl::StatusOr<std::unique_ptr<LineTable>> OpenByUnits(OpenedDwarf file);

// By the line tables alone. `line_section`: index of the header of .debug_line. Unimplemented: they need their units.
absl::StatusOr<std::unique_ptr<LineTable>> OpenByTables(OpenedDwarf file, size_t line_section);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_DWARF_TABLES_H_
