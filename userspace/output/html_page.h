// The page that shows profiles: userspace/output/page/page.html, linked into the program as it is.
#ifndef CLRSAMPLER_OUTPUT_HTML_PAGE_H_
#define CLRSAMPLER_OUTPUT_HTML_PAGE_H_

#include "absl/strings/string_view.h"

namespace clrsampler {

// Valid for the life of the program. Holds once, in this order, "@PROFILE@", where the packed profile goes, "@LANES@",
// where the times of its lanes go, and "@TIMES@", where those of its stacks go.
absl::string_view HtmlPage();

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_HTML_PAGE_H_
