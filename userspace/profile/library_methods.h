// Methods of the runtime's libraries, told from the program's own by their names.
#ifndef CLRSAMPLER_PROFILE_LIBRARY_METHODS_H_
#define CLRSAMPLER_PROFILE_LIBRARY_METHODS_H_

#include "absl/strings/string_view.h"

namespace clrsampler {

// Whether a managed method is one of the runtime's libraries. Frames without a name of their own count, too.
bool IsOfLibraries(absl::string_view method);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_LIBRARY_METHODS_H_
