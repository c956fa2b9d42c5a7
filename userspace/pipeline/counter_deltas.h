// Counts that only grow -> by how much since the last time.
#ifndef CLRSAMPLER_PIPELINE_COUNTER_DELTAS_H_
#define CLRSAMPLER_PIPELINE_COUNTER_DELTAS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace clrsampler {

class CounterDeltas {
 public:
  uint64_t Since(absl::string_view name, uint64_t now) {
    uint64_t& last = last_[std::string(name)];
    const uint64_t delta = now - std::min(now, last);
    last = now;
    return delta;
  }
  // Names in `group` are those of `now`.
  std::map<std::string, uint64_t> Since(absl::string_view group, std::map<std::string, uint64_t> now) {
    for (auto& [name, value] : now) value = Since(std::string(group) + "/" + name, value);
    return now;
  }

 private:
  std::map<std::string, uint64_t> last_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_COUNTER_DELTAS_H_
