// The page that shows profiles: userspace/output/page/page.html, linked into the program as it is.
#ifndef CLRSAMPLER_OUTPUT_HTML_PAGE_H_
#define CLRSAMPLER_OUTPUT_HTML_PAGE_H_

#include "absl/strings/string_view.h"

namespace clrsampler {

// Valid for the life of the program. Holds "@PROFILE@" once, where the packed profile goes, and behind it "@TIMES@",
// where the times of its samples go.
absl::string_view HtmlPage();

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_HTML_PAGE_H_
