// The page of `clrsampler serve`: userspace/export/page/{index.html,built}, linked into the program as it is.
#ifndef CLRSAMPLER_EXPORT_PAGE_ASSETS_H_
#define CLRSAMPLER_EXPORT_PAGE_ASSETS_H_

#include <span>

#include "absl/strings/string_view.h"

namespace clrsampler {

struct PageFile {
  absl::string_view path;  // of the URL: "/", "/assets/app.js"
  absl::string_view content_type;
  absl::string_view bytes;
};

// All that the page is made of; beside these it asks for /api only, by relative addresses. Valid for the life of the
// program; threads don't matter.
std::span<const PageFile> PageFiles();

// nullptr: nothing of the page is there. `path` without a query.
const PageFile* FindPageFile(absl::string_view path);

// The Content-Security-Policy that the page keeps: no script, style or request but the server's own, and no frame
// around it.
absl::string_view PageSecurityPolicy();

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_PAGE_ASSETS_H_
