#include "output/html_page.h"

#include <cstddef>

// The assembler includes the file as it is, for any architecture. A compiler would take seconds for an array of 200,000
// numbers. CMake says where the page is, and that this file depends on it.
__asm__(
    ".pushsection .rodata\n"
    ".global clrsampler_html_page_begin\n"
    ".global clrsampler_html_page_end\n"
    "clrsampler_html_page_begin:\n"
    ".incbin \"" CLRSAMPLER_HTML_PAGE
    "\"\n"
    "clrsampler_html_page_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char clrsampler_html_page_begin[];
extern const char clrsampler_html_page_end[];
}

namespace clrsampler {

absl::string_view HtmlPage() {
  return {clrsampler_html_page_begin, static_cast<size_t>(clrsampler_html_page_end - clrsampler_html_page_begin)};
}

}  // namespace clrsampler
