// The parts of a path, as text: no file is looked at.
#ifndef CLRSAMPLER_OS_PATH_TEXT_H_
#define CLRSAMPLER_OS_PATH_TEXT_H_

#include "absl/strings/string_view.h"

namespace clrsampler {

// With the slash at its end, so that a file name can follow; empty: the path has no folder.
inline absl::string_view FolderOf(absl::string_view path) { return path.substr(0, path.rfind('/') + 1); }

inline absl::string_view FileNameOf(absl::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_PATH_TEXT_H_
