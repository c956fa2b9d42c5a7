#include "symbols/native_lines/line_table.h"

#ifdef CLRSAMPLER_HAVE_LIBDW
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "symbols/native_lines/debug_file_view.h"
#include "symbols/native_lines/dwarf_tables.h"
#endif
#include "status/status.h"

namespace clrsampler {

#ifdef CLRSAMPLER_HAVE_LIBDW
namespace {

constexpr std::array<absl::string_view, 3> kOfTables = {".debug_line", ".debug_line_str", ".debug_str"};
constexpr std::array<absl::string_view, 9> kOfUnits = {".debug_info",     ".debug_abbrev", ".debug_line",
                                                       ".debug_line_str", ".debug_str",    ".debug_str_offsets",
                                                       ".debug_rnglists", ".debug_ranges", ".debug_addr"};

// libdw inflates each compressed section as a whole, and the units are most of it. Debian's libc takes 47 ms, or 31 ms
// without the sections that only debuggers need. Its line tables alone take 6 ms. So units are read where they cost
// nothing, or where the tables need them.
absl::StatusOr<std::unique_ptr<LineTable>> OpenDwarf(const std::shared_ptr<const Libdw>& libdw, UniqueFd file) {
  absl::StatusOr<DebugFileView> view = DebugFileView::Map(file.get());
  if (!view.ok()) return OpenByUnits(OpenedDwarf(libdw, std::move(file)));
  const DebugSection* const units = view->Find(".debug_info");
  const DebugSection* const tables = view->Find(".debug_line");
  if (units == nullptr || !units->compressed || tables == nullptr) {
    view->ShowOnly(kOfUnits);
    return OpenByUnits(OpenedDwarf(libdw, *std::move(view)));
  }
  const size_t line_section = tables->index;
  view->ShowOnly(kOfTables);
  absl::StatusOr<std::unique_ptr<LineTable>> lines = OpenByTables(OpenedDwarf(libdw, *std::move(view)), line_section);
  if (!absl::IsUnimplemented(lines.status())) return lines;
  absl::StatusOr<DebugFileView> again = DebugFileView::Map(file.get());  // libelf has written to the other one
  RETURN_IF_ERROR(again.status());
  again->ShowOnly(kOfUnits);
  return OpenByUnits(OpenedDwarf(libdw, *std::move(again)));
}

}  // namespace

absl::StatusOr<OpenLineTable> LoadDwarfLines() {
  auto libdw = std::make_shared<Libdw>();
  if (!libdw->Load()) {
    return WithHint(absl::UnavailableError("lines of native code need elfutils' libdw, which is not installed"),
                    "apt-get install libdw1, or what your distribution calls it (elfutils-libs)");
  }
  return OpenLineTable([libdw = std::shared_ptr<const Libdw>(std::move(libdw))](UniqueFd file) {
    return OpenDwarf(libdw, std::move(file));
  });
}

#else

absl::StatusOr<OpenLineTable> LoadDwarfLines() {
  return WithHint(absl::UnavailableError("this build is static and can't open libdw, which reads lines of native code"),
                  "use the build for your distribution");
}

#endif

}  // namespace clrsampler
