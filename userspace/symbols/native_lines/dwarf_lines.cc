#include "symbols/native_lines/line_table.h"

#ifdef CLRSAMPLER_HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "os/loaded_library.h"
#include "symbols/native_lines/compiler_options.h"
#endif
#include "status/status.h"

namespace clrsampler {

#ifdef CLRSAMPLER_HAVE_LIBDW
namespace {

// Of all units of a file, 24 bytes each.
constexpr size_t kMaxRanges = 4 << 20;

struct Libdw {
  LoadedLibrary library{"libdw.so.1"};
  decltype(dwarf_begin)* begin = nullptr;
  decltype(dwarf_end)* end = nullptr;
  decltype(dwarf_errmsg)* errmsg = nullptr;
  decltype(dwarf_get_units)* get_units = nullptr;
  decltype(dwarf_ranges)* ranges = nullptr;
  decltype(dwarf_attr)* attr = nullptr;
  decltype(dwarf_formstring)* formstring = nullptr;
  decltype(dwarf_getsrc_die)* getsrc_die = nullptr;
  decltype(dwarf_lineno)* lineno = nullptr;
  decltype(dwarf_linesrc)* linesrc = nullptr;

  bool Load() {
    return library.Load("dwarf_begin", begin) && library.Load("dwarf_end", end) &&
           library.Load("dwarf_errmsg", errmsg) && library.Load("dwarf_get_units", get_units) &&
           library.Load("dwarf_ranges", ranges) && library.Load("dwarf_attr", attr) &&
           library.Load("dwarf_formstring", formstring) && library.Load("dwarf_getsrc_die", getsrc_die) &&
           library.Load("dwarf_lineno", lineno) && library.Load("dwarf_linesrc", linesrc);
  }
};

// Its own index of units by address: .debug_aranges is left out by clang, and libdw 0.188 has no other.
class DwarfLines : public LineTable {
 public:
  static absl::StatusOr<std::unique_ptr<LineTable>> Open(const std::shared_ptr<const Libdw>& libdw, UniqueFd file) {
    std::unique_ptr<DwarfLines> lines(new DwarfLines(libdw, std::move(file)));
    lines->dwarf_ = libdw->begin(lines->file_.get(), DWARF_C_READ);
    if (lines->dwarf_ == nullptr) return absl::DataLossError(lines->LastError());
    if (const absl::Status indexed = lines->Index(); !indexed.ok()) return indexed;
    return std::unique_ptr<LineTable>(std::move(lines));
  }
  ~DwarfLines() override {
    if (dwarf_ != nullptr) libdw_->end(dwarf_);
  }

  NativeLine At(uint64_t address) override {
    const auto above = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                        [](uint64_t at, const Range& range) { return at < range.begin; });
    if (above == ranges_.begin() || address >= (above - 1)->end) return {};
    Unit& unit = units_[(above - 1)->unit];
    Dwarf_Line* const row = libdw_->getsrc_die(&unit.die, address);
    int line = 0;
    if (row == nullptr || libdw_->lineno(row, &line) != 0 || line <= 0) return {};
    const char* const path = libdw_->linesrc(row, nullptr, nullptr);
    if (path == nullptr) return {};
    Ask(unit);
    return {Joined(unit.folder, path), static_cast<uint32_t>(line), unit.exact};
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

  DwarfLines(std::shared_ptr<const Libdw> libdw, UniqueFd file) : libdw_(std::move(libdw)), file_(std::move(file)) {}

  std::string LastError() const {
    const char* const why = libdw_->errmsg(-1);
    return why == nullptr ? "unreadable" : why;
  }

  absl::Status Index() {
    Dwarf_CU* cu = nullptr;
    Dwarf_Die die;
    int more = 0;
    while ((more = libdw_->get_units(dwarf_, cu, &cu, nullptr, nullptr, &die, nullptr)) == 0) {
      const auto number = static_cast<uint32_t>(units_.size());
      units_.push_back({.die = die});
      Dwarf_Addr base = 0, begin = 0, end = 0;
      for (ptrdiff_t at = 0; (at = libdw_->ranges(&die, at, &base, &begin, &end)) > 0;) {
        // The linker leaves ranges of what it threw away at 0.
        if (begin < end && begin != 0) ranges_.push_back({begin, end, number});
        if (ranges_.size() > kMaxRanges) return absl::ResourceExhaustedError("it has too many ranges of addresses");
      }
    }
    if (ranges_.empty()) return absl::DataLossError(more < 0 ? LastError() : "no unit of it says where its code is");
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    return absl::OkStatus();
  }

  // libdw joins them where the folder is absolute, and for files of the folder itself.
  static std::string Joined(const std::string& folder, absl::string_view path) {
    if (folder.empty() || absl::StartsWith(path, "/")) return std::string(path);
    std::string begin = absl::StrCat(folder, "/");
    return absl::StartsWith(path, begin) ? std::string(path) : absl::StrCat(begin, path);
  }

  std::string Text(Unit& unit, unsigned name) const {
    Dwarf_Attribute attribute;
    if (libdw_->attr(&unit.die, name, &attribute) == nullptr) return "";
    const char* const text = libdw_->formstring(&attribute);
    return text == nullptr ? "" : text;
  }

  void Ask(Unit& unit) const {
    if (std::exchange(unit.asked, true)) return;
    unit.exact = SaysNotOptimised(Text(unit, DW_AT_producer));
    unit.folder = Text(unit, DW_AT_comp_dir);
  }

  const std::shared_ptr<const Libdw> libdw_;
  const UniqueFd file_;
  Dwarf* dwarf_ = nullptr;
  std::vector<Unit> units_;
  std::vector<Range> ranges_;  // by begin
};

}  // namespace

absl::StatusOr<OpenLineTable> LoadDwarfLines() {
  auto libdw = std::make_shared<Libdw>();
  if (!libdw->Load()) {
    return WithHint(absl::UnavailableError("lines of native code need elfutils' libdw, which is not installed"),
                    "apt-get install libdw1, or what your distribution calls it (elfutils-libs)");
  }
  return OpenLineTable([libdw = std::shared_ptr<const Libdw>(std::move(libdw))](UniqueFd file) {
    return DwarfLines::Open(libdw, std::move(file));
  });
}

#else

absl::StatusOr<OpenLineTable> LoadDwarfLines() {
  return WithHint(absl::UnavailableError("this build is static and can't open libdw, which reads lines of native code"),
                  "use the build for your distribution");
}

#endif

}  // namespace clrsampler
