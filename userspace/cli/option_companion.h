// Options that mean something beside another one only.
#ifndef CLRSAMPLER_CLI_OPTION_COMPANION_H_
#define CLRSAMPLER_CLI_OPTION_COMPANION_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// InvalidArgument: `option` is given and the one that it is for is not, so that it would have no effect.
absl::Status CheckCompanion(absl::string_view option, bool given, absl::string_view companion, bool companion_given);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_OPTION_COMPANION_H_
