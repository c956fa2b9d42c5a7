// The links of a profile's samples, each once and up to a limit: a program may have a span for each sample.
#ifndef CLRSAMPLER_PROFILE_TRACE_LINKS_H_
#define CLRSAMPLER_PROFILE_TRACE_LINKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "formats/profile/trace_link.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class TraceLinks {
 public:
  explicit TraceLinks(size_t limit) : limit_(limit) {}

  // 0: it is no link, or there is no room for it.
  uint32_t Number(const TraceLink& link) {
    main_loop_.Check();
    if (!link.valid()) return 0;
    if (const auto known = numbers_.find(link); known != numbers_.end()) return known->second;
    if (links_.size() > limit_) {
      ++left_out_;
      return 0;
    }
    links_.push_back(link);
    return numbers_[link] = static_cast<uint32_t>(links_.size() - 1);
  }
  const TraceLink& at(uint32_t number) const { return links_[number]; }
  // Samples that have lost their link to the limit.
  uint64_t left_out() const { return left_out_; }

 private:
  size_t limit_;
  std::vector<TraceLink> links_ = {{}};  // 0 is none
  absl::flat_hash_map<TraceLink, uint32_t> numbers_;
  uint64_t left_out_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_TRACE_LINKS_H_
