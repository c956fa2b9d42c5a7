// Names that a regular expression of the command line matches, anywhere in them.
#ifndef CLRSAMPLER_PROFILE_NAME_FILTER_H_
#define CLRSAMPLER_PROFILE_NAME_FILTER_H_

#include <re2/re2.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

class NameFilter {
 public:
  // `option` is named in the error; without an expression all match.
  static absl::StatusOr<NameFilter> Make(absl::string_view option, const std::optional<std::string>& expression);

  bool Matches(absl::string_view name) const;

 private:
  std::unique_ptr<RE2> expression_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_NAME_FILTER_H_
