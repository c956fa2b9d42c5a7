// Methods in the texts of frames, whatever the style of the names is.
#ifndef CLRSAMPLER_PROFILE_METHOD_TEXT_H_
#define CLRSAMPLER_PROFILE_METHOD_TEXT_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace clrsampler {

// The place of a method in a text; npos: it is not there. `method` has dots between classes and before the name, and
// may be a part: "System.Threading.Monitor.", "Tasks.Task`1.get_Result". The runtime's own notation is met as well:
// "System.Threading.Tasks.Task`1[System.__Canon]::get_Result()", with "+" before nested classes.
size_t FindMethod(absl::string_view text, absl::string_view method);

inline bool HasMethod(absl::string_view text, absl::string_view method) {
  return FindMethod(text, method) != absl::string_view::npos;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_METHOD_TEXT_H_
