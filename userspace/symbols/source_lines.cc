#include "symbols/source_lines.h"

#include "absl/strings/str_cat.h"
#include "status/status.h"

#ifdef CLRSAMPLER_HAVE_LIBDW
#include <elfutils/libdwfl.h>
#include <stdlib.h>

#include "os/loaded_library.h"
#endif

namespace clrsampler {

#ifdef CLRSAMPLER_HAVE_LIBDW
namespace {

struct Libdw {
  LoadedLibrary library{"libdw.so.1"};
  decltype(dwfl_begin)* begin = nullptr;
  decltype(dwfl_end)* end = nullptr;
  decltype(dwfl_errmsg)* errmsg = nullptr;
  decltype(dwfl_report_begin)* report_begin = nullptr;
  decltype(dwfl_report_offline)* report_offline = nullptr;
  decltype(dwfl_report_end)* report_end = nullptr;
  decltype(dwfl_module_getelf)* module_getelf = nullptr;
  decltype(dwfl_module_getsrc)* module_getsrc = nullptr;
  decltype(dwfl_lineinfo)* lineinfo = nullptr;
  Dwfl_Callbacks callbacks{};

  bool Load() {
    return library.Load("dwfl_begin", begin) && library.Load("dwfl_end", end) && library.Load("dwfl_errmsg", errmsg) &&
           library.Load("dwfl_report_begin", report_begin) && library.Load("dwfl_report_offline", report_offline) &&
           library.Load("dwfl_report_end", report_end) && library.Load("dwfl_module_getelf", module_getelf) &&
           library.Load("dwfl_module_getsrc", module_getsrc) && library.Load("dwfl_lineinfo", lineinfo) &&
           library.Load("dwfl_standard_find_debuginfo", callbacks.find_debuginfo) &&
           library.Load("dwfl_offline_section_address", callbacks.section_address);
  }
};

}  // namespace

struct SourceLines::State {
  Libdw libdw;
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;
  GElf_Addr bias = 0;  // position-independent images are laid out elsewhere than they were linked

  ~State() {
    if (dwfl != nullptr) libdw.end(dwfl);
  }
};

absl::StatusOr<SourceLines> SourceLines::Open(const std::string& path) {
  auto state = std::make_unique<State>();
  Libdw& libdw = state->libdw;
  if (!libdw.Load()) {
    return WithHint(absl::UnavailableError("source lines need elfutils' libdw, which is not installed"),
                    "apt-get install libdw1, or what your distribution calls it (elfutils-libs)");
  }
  // libdw would ask servers for debug files if the environment names some. This program asks nobody unless it is told.
  unsetenv("DEBUGINFOD_URLS");
  state->dwfl = libdw.begin(&libdw.callbacks);
  if (state->dwfl != nullptr) {
    libdw.report_begin(state->dwfl);
    state->module = libdw.report_offline(state->dwfl, "", path.c_str(), -1);
    libdw.report_end(state->dwfl, nullptr, nullptr);
  }
  if (state->module == nullptr || libdw.module_getelf(state->module, &state->bias) == nullptr) {
    const char* why = libdw.errmsg(-1);
    return absl::DataLossError(absl::StrCat(path, " has no source lines: ", why == nullptr ? "unreadable" : why));
  }
  return SourceLines(std::move(state));
}

std::optional<SourceLine> SourceLines::At(VirtualAddress address) const {
  main_loop_.Check();
  const Libdw& libdw = state_->libdw;
  Dwfl_Line* line = libdw.module_getsrc(state_->module, address.value + state_->bias);
  int number = 0;
  const char* file = line == nullptr ? nullptr : libdw.lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
  if (file == nullptr || number <= 0) return std::nullopt;
  return SourceLine{file, static_cast<uint32_t>(number)};
}

#else

struct SourceLines::State {};

absl::StatusOr<SourceLines> SourceLines::Open(const std::string&) {
  return WithHint(absl::UnavailableError("this build is static and can't open libdw, which reads source lines"),
                  "use the build for your distribution");
}

std::optional<SourceLine> SourceLines::At(VirtualAddress) const { return std::nullopt; }

#endif

SourceLines::SourceLines(std::unique_ptr<State> state) : state_(std::move(state)) {}
SourceLines::SourceLines(SourceLines&&) noexcept = default;
SourceLines& SourceLines::operator=(SourceLines&&) noexcept = default;
SourceLines::~SourceLines() = default;

}  // namespace clrsampler
