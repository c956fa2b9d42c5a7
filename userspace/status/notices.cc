#include "status/notices.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace clrsampler {

bool Notices::Add(absl::string_view kind, absl::string_view subject, absl::string_view message,
                  absl::string_view hint) {
  ++counts_[std::string(kind)];
  if (said_.size() >= kMaxKept) return false;
  if (!said_.insert(absl::StrCat(kind, absl::string_view("\0", 1), subject)).second) return false;
  kept_.push_back(Notice{std::string(kind), std::string(message), std::string(hint)});
  return true;
}

std::vector<Notice> Notices::TakeKept() { return std::exchange(kept_, {}); }

void Notices::Repeat() { said_.clear(); }

}  // namespace clrsampler
