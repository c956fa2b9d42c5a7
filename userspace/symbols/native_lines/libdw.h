// The functions of elfutils that lines are read with, found at run time. Included only where its headers are there.
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_LIBDW_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_LIBDW_H_

#include <elfutils/libdw.h>
#include <libelf.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "os/loaded_library.h"
#include "os/unique_fd.h"
#include "symbols/native_lines/debug_file_view.h"
#include "symbols/native_lines/line_table.h"

namespace clrsampler {

struct Libdw {
  LoadedLibrary library{"libdw.so.1"}, elf_library{"libelf.so.1"};
  decltype(elf_version)* version = nullptr;
  decltype(elf_memory)* memory = nullptr;
  decltype(elf_getscn)* getscn = nullptr;
  decltype(elf_rawdata)* rawdata = nullptr;
  decltype(elf_end)* elf_close = nullptr;
  decltype(dwarf_begin)* begin = nullptr;
  decltype(dwarf_begin_elf)* begin_elf = nullptr;
  decltype(dwarf_end)* end = nullptr;
  decltype(dwarf_errmsg)* errmsg = nullptr;
  decltype(dwarf_get_units)* get_units = nullptr;
  decltype(dwarf_ranges)* ranges = nullptr;
  decltype(dwarf_attr)* attr = nullptr;
  decltype(dwarf_formstring)* formstring = nullptr;
  decltype(dwarf_getsrc_die)* getsrc_die = nullptr;
  decltype(dwarf_next_lines)* next_lines = nullptr;
  decltype(dwarf_getsrcdirs)* getsrcdirs = nullptr;
  decltype(dwarf_onesrcline)* onesrcline = nullptr;
  decltype(dwarf_lineaddr)* lineaddr = nullptr;
  decltype(dwarf_lineendsequence)* lineendsequence = nullptr;
  decltype(dwarf_lineno)* lineno = nullptr;
  decltype(dwarf_linesrc)* linesrc = nullptr;

  bool Load() {
    return elf_library.Load("elf_version", version) && elf_library.Load("elf_memory", memory) &&
           elf_library.Load("elf_getscn", getscn) && elf_library.Load("elf_rawdata", rawdata) &&
           elf_library.Load("elf_end", elf_close) && library.Load("dwarf_begin", begin) &&
           library.Load("dwarf_begin_elf", begin_elf) && library.Load("dwarf_end", end) &&
           library.Load("dwarf_errmsg", errmsg) && library.Load("dwarf_get_units", get_units) &&
           library.Load("dwarf_ranges", ranges) && library.Load("dwarf_attr", attr) &&
           library.Load("dwarf_formstring", formstring) && library.Load("dwarf_getsrc_die", getsrc_die) &&
           library.Load("dwarf_next_lines", next_lines) && library.Load("dwarf_getsrcdirs", getsrcdirs) &&
           library.Load("dwarf_onesrcline", onesrcline) && library.Load("dwarf_lineaddr", lineaddr) &&
           library.Load("dwarf_lineendsequence", lineendsequence) && library.Load("dwarf_lineno", lineno) &&
           library.Load("dwarf_linesrc", linesrc) && version(EV_CURRENT) != EV_NONE;
  }
  std::string LastError() const {
    const char* const why = errmsg(-1);
    return why == nullptr ? "unreadable" : why;
  }
};

// A file that libdw has opened. Move-only; one thread.
class OpenedDwarf {
 public:
  // The whole file.
  OpenedDwarf(std::shared_ptr<const Libdw> libdw, UniqueFd file)
      : libdw_(std::move(libdw)), file_(std::move(file)), dwarf_(libdw_->begin(file_.get(), DWARF_C_READ)) {}
  // The debug information that the view shows.
  OpenedDwarf(std::shared_ptr<const Libdw> libdw, DebugFileView view)
      : libdw_(std::move(libdw)),
        view_(std::make_unique<DebugFileView>(std::move(view))),
        elf_(libdw_->memory(view_->bytes().data(), view_->bytes().size())),
        dwarf_(elf_ == nullptr ? nullptr : libdw_->begin_elf(elf_, DWARF_C_READ, nullptr)) {}
  OpenedDwarf(OpenedDwarf&& other) noexcept
      : libdw_(std::move(other.libdw_)),
        file_(std::move(other.file_)),
        view_(std::move(other.view_)),
        elf_(std::exchange(other.elf_, nullptr)),
        dwarf_(std::exchange(other.dwarf_, nullptr)) {}
  OpenedDwarf& operator=(OpenedDwarf&&) = delete;
  ~OpenedDwarf() {
    if (dwarf_ != nullptr) libdw_->end(dwarf_);
    if (elf_ != nullptr) libdw_->elf_close(elf_);
  }

  // nullptr: it could not be opened.
  Dwarf* dwarf() const { return dwarf_; }
  // nullptr: the file is read as a whole.
  Elf* elf() const { return elf_; }
  const Libdw& libdw() const { return *libdw_; }

 private:
  std::shared_ptr<const Libdw> libdw_;
  UniqueFd file_;
  std::unique_ptr<DebugFileView> view_;
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
};

// libdw joins them where the folder is absolute, and for files of the folder itself.
inline std::string JoinedPath(absl::string_view folder, absl::string_view path) {
  if (folder.empty() || absl::StartsWith(path, "/")) return std::string(path);
  std::string begin = absl::StrCat(folder, "/");
  return absl::StartsWith(path, begin) ? std::string(path) : absl::StrCat(begin, path);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_LIBDW_H_
