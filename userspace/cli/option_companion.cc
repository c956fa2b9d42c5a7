#include "cli/option_companion.h"

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {

absl::Status CheckCompanion(absl::string_view option, bool given, absl::string_view companion, bool companion_given) {
  if (!given || companion_given) return absl::OkStatus();
  return WithHint(absl::InvalidArgumentError(absl::StrCat(option, " is for ", companion, ", which is not given")),
                  absl::StrCat("add ", companion, ", or leave ", option, " out"));
}

}  // namespace clrsampler
