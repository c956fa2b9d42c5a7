#include "profile/name_filter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<NameFilter> NameFilter::Make(absl::string_view option, const std::optional<std::string>& expression) {
  NameFilter filter;
  if (!expression) return filter;
  RE2::Options options;
  options.set_log_errors(false);
  filter.expression_ = std::make_unique<RE2>(*expression, options);
  if (filter.expression_->ok()) return filter;
  return WithHint(absl::InvalidArgumentError(absl::StrCat(option, " ", *expression, ": ", filter.expression_->error())),
                  absl::StrCat("a regular expression, as in ", option,
                               " 'Orders\\.(Add|Remove)'; quote it, and write \\. for a dot"));
}

bool NameFilter::Matches(absl::string_view name) const {
  return expression_ == nullptr || RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *expression_);
}

}  // namespace clrsampler
