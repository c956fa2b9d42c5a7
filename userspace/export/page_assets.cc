#include "export/page_assets.h"

#include <algorithm>
#include <array>
#include <cstddef>

// The assembler includes the files as they are, for any architecture. CMake says where they are, and that this file
// depends on them.
__asm__(
    ".macro clrsampler_page_asset name, file\n"
    ".global clrsampler_page_\\name\\()_begin\n"
    ".global clrsampler_page_\\name\\()_end\n"
    "clrsampler_page_\\name\\()_begin:\n"
    ".incbin \"" CLRSAMPLER_SERVE_PAGE
    "/\\file\"\n"
    "clrsampler_page_\\name\\()_end:\n"
    ".byte 0\n"
    ".endm\n"
    ".pushsection .rodata\n"
    "clrsampler_page_asset index, index.html\n"
    "clrsampler_page_asset script, built/app.js\n"
    "clrsampler_page_asset style, built/app.css\n"
    "clrsampler_page_asset licences, built/licences.txt\n"
    ".popsection\n"
    ".purgem clrsampler_page_asset\n");

extern "C" {
extern const char clrsampler_page_index_begin[], clrsampler_page_index_end[];
extern const char clrsampler_page_script_begin[], clrsampler_page_script_end[];
extern const char clrsampler_page_style_begin[], clrsampler_page_style_end[];
extern const char clrsampler_page_licences_begin[], clrsampler_page_licences_end[];
}

namespace clrsampler {
namespace {

absl::string_view Between(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

}  // namespace

std::span<const PageFile> PageFiles() {
  static const std::array<PageFile, 4> assets = {{
      {"/", "text/html; charset=utf-8", Between(clrsampler_page_index_begin, clrsampler_page_index_end)},
      {"/assets/app.js", "text/javascript; charset=utf-8",
       Between(clrsampler_page_script_begin, clrsampler_page_script_end)},
      {"/assets/app.css", "text/css; charset=utf-8", Between(clrsampler_page_style_begin, clrsampler_page_style_end)},
      {"/assets/licences.txt", "text/plain; charset=utf-8",
       Between(clrsampler_page_licences_begin, clrsampler_page_licences_end)},
  }};
  return assets;
}

const PageFile* FindPageFile(absl::string_view path) {
  const std::span<const PageFile> assets = PageFiles();
  const auto found = std::find_if(assets.begin(), assets.end(), [&](const PageFile& one) { return one.path == path; });
  return found == assets.end() ? nullptr : &*found;
}

absl::string_view PageSecurityPolicy() {
  return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: 'self'; "
         "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
         "trusted-types 'none'";
}

}  // namespace clrsampler
