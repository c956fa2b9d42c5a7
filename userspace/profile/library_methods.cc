#include "profile/library_methods.h"

#include "absl/strings/match.h"

namespace clrsampler {

bool IsOfLibraries(absl::string_view method) {
  return absl::StartsWith(method, "System.") || absl::StartsWith(method, "Microsoft.") ||
         absl::StartsWith(method, "Interop.") || absl::StartsWith(method, "Internal.") || absl::StartsWith(method, "[");
}

}  // namespace clrsampler
