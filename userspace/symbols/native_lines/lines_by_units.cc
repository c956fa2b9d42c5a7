// Lines of a file by an index of its units. clang leaves out .debug_aranges, and libdw 0.188 has no other index.
#include <dwarf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "symbols/native_lines/compiler_options.h"
#include "symbols/native_lines/dwarf_tables.h"

namespace clrsampler {
namespace {

// The most ranges of all units of a file, 24 bytes each.
constexpr size_t kMaxRanges = 4 << 20;

class LinesByUnits : public LineTable {
 public:
  explicit LinesByUnits(OpenedDwarf file) : file_(std::move(file)) {}

  absl::Status Index() {
    Dwarf_CU* cu = nullptr;
    Dwarf_Die die;
    int more = 0;
    while ((more = libdw().get_units(file_.dwarf(), cu, &cu, nullptr, nullptr, &die, nullptr)) == 0) {
      const auto number = static_cast<uint32_t>(units_.size());
      units_.push_back({.die = die});
      Dwarf_Addr base = 0, begin = 0, end = 0;
      for (ptrdiff_t at = 0; (at = libdw().ranges(&die, at, &base, &begin, &end)) > 0;) {
        // The linker leaves the ranges of removed code at 0.
        if (begin < end && begin != 0) ranges_.push_back({begin, end, number});
        if (ranges_.size() > kMaxRanges) return absl::ResourceExhaustedError("it has too many ranges of addresses");
      }
    }
    if (ranges_.empty()) {
      return absl::DataLossError(more < 0 ? libdw().LastError() : "no unit of it says where its code is");
    }
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    return absl::OkStatus();
  }

  NativeLine At(uint64_t address) override {
    const auto above = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                        [](uint64_t at, const Range& range) { return at < range.begin; });
    if (above == ranges_.begin() || address >= (above - 1)->end) return {};
    Unit& unit = units_[(above - 1)->unit];
    Dwarf_Line* const row = libdw().getsrc_die(&unit.die, address);
    int line = 0;
    if (row == nullptr || libdw().lineno(row, &line) != 0 || line <= 0) return {};
    const char* const path = libdw().linesrc(row, nullptr, nullptr);
    if (path == nullptr) return {};
    Ask(unit);
    return {JoinedPath(unit.folder, path), static_cast<uint32_t>(line), unit.exact};
  }

 private:
  struct Unit {
    Dwarf_Die die;
    bool asked = false;
    bool exact = false;
    std::string folder;  // in which it was compiled
  };
  struct Range {
    uint64_t begin = 0, end = 0;
    uint32_t unit = 0;
  };

  const Libdw& libdw() const { return file_.libdw(); }

  std::string Text(Unit& unit, unsigned name) const {
    Dwarf_Attribute attribute;
    if (libdw().attr(&unit.die, name, &attribute) == nullptr) return "";
    const char* const text = libdw().formstring(&attribute);
    return text == nullptr ? "" : text;
  }

  void Ask(Unit& unit) const {
    if (std::exchange(unit.asked, true)) return;
    unit.exact = SaysNotOptimised(Text(unit, DW_AT_producer));
    unit.folder = Text(unit, DW_AT_comp_dir);
  }

  const OpenedDwarf file_;
  std::vector<Unit> units_;
  std::vector<Range> ranges_;  // by begin
};

}  // namespace

absl::StatusOr<std::unique_ptr<LineTable>> OpenByUnits(OpenedDwarf file) {
  if (file.dwarf() == nullptr) return absl::DataLossError(file.libdw().LastError());
  auto lines = std::make_unique<LinesByUnits>(std::move(file));
  if (const absl::Status indexed = lines->Index(); !indexed.ok()) return indexed;
  return std::unique_ptr<LineTable>(std::move(lines));
}

}  // namespace clrsampler
