#include "status/notices.h"

#include "absl/strings/str_cat.h"

namespace clrsampler {

bool Notices::Add(absl::string_view kind, absl::string_view subject, absl::string_view message,
                  absl::string_view hint) {
  ++counts_[std::string(kind)];
  if (kept_.size() >= kMaxKept) return false;
  if (!said_.insert(absl::StrCat(kind, absl::string_view("\0", 1), subject)).second) return false;
  kept_.push_back(Notice{std::string(kind), std::string(message), std::string(hint)});
  return true;
}

}  // namespace clrsampler
