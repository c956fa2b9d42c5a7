// Lines of a file whose units are not read: the table of an address is found by its own addresses.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/elf/line_sequences.h"
#include "status/status.h"
#include "symbols/native_lines/dwarf_tables.h"

namespace clrsampler {
namespace {

class LinesByTables : public LineTable {
 public:
  LinesByTables(OpenedDwarf file, std::vector<LineSequence> sequences)
      : file_(std::move(file)), sequences_(std::move(sequences)) {}

  NativeLine At(uint64_t address) override {
    const auto above = std::upper_bound(sequences_.begin(), sequences_.end(), address,
                                        [](uint64_t at, const LineSequence& sequence) { return at < sequence.begin; });
    if (above == sequences_.begin() || address >= (above - 1)->end) return {};
    // libdw keeps the tables that it has decoded.
    Dwarf_Off next = 0;
    Dwarf_CU* unit = nullptr;
    Dwarf_Files* files = nullptr;
    Dwarf_Lines* rows = nullptr;
    size_t file_count = 0, row_count = 0;
    if (libdw().next_lines(file_.dwarf(), (above - 1)->table, &next, &unit, &files, &file_count, &rows, &row_count) !=
        0) {
      return {};
    }
    Dwarf_Line* const row = RowOf(address, rows, row_count);
    int line = 0;
    if (row == nullptr || libdw().lineno(row, &line) != 0 || line <= 0) return {};
    const char* const path = libdw().linesrc(row, nullptr, nullptr);
    if (path == nullptr) return {};
    const char* const* folders = nullptr;
    size_t folder_count = 0;
    const bool has_folder = libdw().getsrcdirs(files, &folders, &folder_count) == 0 && folder_count > 0;
    // The first file is the one in which it was compiled. The unit would say how it was compiled.
    return {JoinedPath(has_folder ? folders[0] : "", path), static_cast<uint32_t>(line), /*exact=*/false};
  }

 private:
  const Libdw& libdw() const { return file_.libdw(); }

  // Rows are in the order of their addresses. The last one at or before the address counts, unless code ends with it.
  Dwarf_Line* RowOf(uint64_t address, Dwarf_Lines* rows, size_t count) const {
    const auto address_of = [&](size_t index) {
      Dwarf_Addr at = 0;
      Dwarf_Line* const row = libdw().onesrcline(rows, index);
      return row != nullptr && libdw().lineaddr(row, &at) == 0 ? at : UINT64_MAX;
    };
    size_t first_above = 0;
    for (size_t end = count; first_above < end;) {
      const size_t middle = first_above + (end - first_above) / 2;
      if (address_of(middle) <= address) {
        first_above = middle + 1;
      } else {
        end = middle;
      }
    }
    if (first_above == 0) return nullptr;
    Dwarf_Line* const row = libdw().onesrcline(rows, first_above - 1);
    bool ends = true;
    return libdw().lineendsequence(row, &ends) == 0 && !ends ? row : nullptr;
  }

  const OpenedDwarf file_;
  const std::vector<LineSequence> sequences_;  // by begin
};

}  // namespace

absl::StatusOr<std::unique_ptr<LineTable>> OpenByTables(OpenedDwarf file, size_t line_section) {
  if (file.dwarf() == nullptr) return absl::DataLossError(file.libdw().LastError());
  Elf_Scn* const section = file.libdw().getscn(file.elf(), line_section);
  const Elf_Data* const data = section == nullptr ? nullptr : file.libdw().rawdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return absl::DataLossError("its line tables can't be read");
  absl::StatusOr<std::vector<LineSequence>> sequences =
      ListLineSequences({static_cast<const std::byte*>(data->d_buf), data->d_size});
  RETURN_IF_ERROR(sequences.status());
  if (sequences->empty()) return absl::DataLossError("its line tables are about no code");
  return std::unique_ptr<LineTable>(std::make_unique<LinesByTables>(std::move(file), *std::move(sequences)));
}

}  // namespace clrsampler
