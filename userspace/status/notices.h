// Things that went wrong without ending the run: counted by kind, and the first few kept in words for the summary.
//
// A notice is said once per (kind, subject); repetitions only count. Bounded by kind, so that no kind silences another:
// a hostile target can't fill memory or the terminal by producing notices. A kind that reaches its bound says so.
#ifndef CLRSAMPLER_STATUS_NOTICES_H_
#define CLRSAMPLER_STATUS_NOTICES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct Notice {
  std::string kind;     // a fixed word, the key in --stats: "jitdump_dead"
  std::string message;  // one sentence
  std::string hint;     // what to do; may be empty
};

// Used on the main loop only. A run without an end takes what is kept now and then.
class Notices {
 public:
  // `subject` tells repetitions apart: a path, a pid. Says whether this is the first of its kind and subject.
  bool Add(absl::string_view kind, absl::string_view subject, absl::string_view message, absl::string_view hint = "");

  // Gives what was kept since the last call, and makes room; what was said is said again only after Repeat.
  std::vector<Notice> TakeKept();
  void Repeat();

  const std::vector<Notice>& kept() const { return kept_; }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

 private:
  // Subjects of one kind that are said between two calls of Repeat. Kinds are words of this program: some sixty.
  static constexpr size_t kMaxSubjects = 100;
  std::vector<Notice> kept_;
  std::map<std::string, std::set<std::string>, std::less<>> said_;  // subjects by kind
  std::map<std::string, uint64_t> counts_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STATUS_NOTICES_H_
