// The compiled methods that were seen over time, by where they begin. Permanent ones overlap nothing; transient ones,
// whose memory is used again, overlap those of other times in any way.
#ifndef CLRSAMPLER_CLR_MEMORY_METHODS_BY_START_H_
#define CLRSAMPLER_CLR_MEMORY_METHODS_BY_START_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "os/clock.h"

namespace clrsampler {

// `Method` has `end`, exclusive, and `transient`. The newest one of each address is the last; never without one.
template <typename Method>
using MethodsByStart = absl::btree_map<uint64_t, std::vector<Method>>;

constexpr size_t kMaxHistory = 16;  // transient methods remembered at one address
constexpr int kMaxOverlaps = 256;   // starts before an address that are looked at; dynamic methods have some 100 bytes

// Each method that was seen to cover the address, newest first where they begin at the same place, until one is wanted.
template <typename Method, typename Visitor>
void ForEachAround(MethodsByStart<Method>& known, uint64_t address, Visitor&& wanted) {
  auto it = known.upper_bound(address);
  for (int i = 0; i < kMaxOverlaps && it != known.begin(); ++i) {
    --it;
    for (auto method = it->second.rbegin(); method != it->second.rend(); ++method) {
      if (address < method->end && wanted(*method)) return;
    }
    if (!it->second.back().transient) return;
  }
}

// Each method that was seen to cover a part of [start, end), until one is wanted. False: there are more than are looked
// at. `Methods`: MethodsByStart, const or not.
template <typename Methods, typename Visitor>
bool ForEachOverlapping(Methods& known, uint64_t start, uint64_t end, Visitor&& wanted) {
  int before = 0, inside = 0;
  for (auto it = known.lower_bound(end); it != known.begin() && before < kMaxOverlaps;) {
    --it;
    ++(it->first < start ? before : inside);
    if (inside > kMaxOverlaps) return false;
    for (auto& method : it->second) {
      if (method.end > start && wanted(method)) return true;
    }
    if (!it->second.back().transient) break;
  }
  return true;
}

// Whether a method that begins at `start`, one of `known`, may have been there from its own times to `time` without a
// break: nothing else was seen in between that covers any of its code. `Method` has `from` and `until`, too. Where
// `until` is the earlier one, the method was there at some moment between the two.
template <typename Method>
bool ReachesTo(const MethodsByStart<Method>& known, uint64_t start, const Method& method, MonotonicTime time) {
  const MonotonicTime from = std::min(method.until, time), until = std::max(method.from, time);
  bool seen = false;
  const bool all = ForEachOverlapping(known, start, method.end, [&](const Method& other) {
    return seen = &other != &method && std::min(other.from, other.until) <= until &&
                  from <= std::max(other.from, other.until);
  });
  return all && !seen;
}

// Another method was seen at `time`, from `start` to `end`. A method that was seen before and later was gone in
// between: it is only known for when it was seen first. `is_same` tells that two are one. Whether there was such a one:
// answers that were given for it may be wrong.
template <typename Method, typename IsSame>
bool CutAt(MethodsByStart<Method>& known, uint64_t start, uint64_t end, MonotonicTime time, IsSame&& is_same) {
  bool cut = false;
  ForEachOverlapping(known, start, end, [&](Method& method) {
    if (method.transient && method.from < time && time <= method.until && !is_same(method)) {
      method.until = method.from;
      cut = true;
    }
    return false;
  });
  return cut;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_METHODS_BY_START_H_
