#include "status/notices.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace clrsampler {

bool Notices::Add(absl::string_view kind, absl::string_view subject, absl::string_view message,
                  absl::string_view hint) {
  main_loop_.Check();
  ++counts_[std::string(kind)];
  std::set<std::string>& subjects = said_[std::string(kind)];
  if (subjects.size() > kMaxSubjects || !subjects.emplace(subject).second) return false;
  if (subjects.size() > kMaxSubjects) {
    kept_.push_back(Notice{std::string(kind),
                           absl::StrCat("more than ", kMaxSubjects, " notices of the kind ", kind,
                                        " came; further ones are counted and not shown"),
                           "notice_counts in --stats, or clrsampler_notices_total of the service, has their number"});
    return false;
  }
  kept_.push_back(Notice{std::string(kind), std::string(message), std::string(hint)});
  return true;
}

std::vector<Notice> Notices::TakeKept() { return std::exchange(kept_, {}); }

void Notices::Repeat() { said_.clear(); }

}  // namespace clrsampler
