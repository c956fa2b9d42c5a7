// How much of what a program has done was seen by probes, was counted by its runtime, or is estimated. Pure.
#ifndef CLRSAMPLER_OUTPUT_SEEN_SHARE_H_
#define CLRSAMPLER_OUTPUT_SEEN_SHARE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace clrsampler {

// The count of that name in an account; 0: there is none.
inline uint64_t CountOf(const std::map<std::string, uint64_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

// In percent of the whole. A part of less than half a percent is not worth a word: 0.
struct SeenShare {
  double seen = 100;
  double counted = 0;
  double estimated = 0;

  bool all() const { return seen >= 100; }
};

inline SeenShare SeenShareOf(uint64_t whole, uint64_t seen, uint64_t counted) {
  if (whole <= seen) return {};
  const auto percent = [whole](uint64_t part) {
    return part > whole / 200 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
  };
  return {100.0 * static_cast<double>(seen) / static_cast<double>(whole), percent(counted),
          percent(whole - std::min(whole, seen + counted))};
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_SEEN_SHARE_H_
