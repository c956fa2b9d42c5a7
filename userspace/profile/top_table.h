// The work of a host in the last seconds, in rows: processes, and the methods of one or of all. Pure.
#ifndef CLRSAMPLER_PROFILE_TOP_TABLE_H_
#define CLRSAMPLER_PROFILE_TOP_TABLE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "profile/method_weights.h"
#include "profile/window.h"

namespace clrsampler {

struct TopProcess {
  uint32_t pid = 0;
  std::string comm;
  std::string container;                        // may be empty
  std::string runtime;                          // likewise
  bool hooked = false;                          // pauses and compilations are seen
  double cpus = 0;                              // CPU time per time
  std::array<double, kCpuShareCount> shares{};  // of it, by CpuShare; they add up to 1, or to 0 without samples
  double pauses_per_second = 0;
  double paused = 0;  // time in pauses per time
  uint64_t longest_pause_ns = 0;
  double compilations_per_second = 0;
  double compiling = 0;  // CPU time of compiling per time
};

enum class TopSort : uint8_t { kCpu, kPaused, kCompiling, kPid, kName };
inline constexpr int kTopSortCount = 5;
absl::string_view TopSortText(TopSort sort);  // "cpu", "pause", "jit", "pid", "name"
std::optional<TopSort> TopSortOf(absl::string_view text);

struct TopMethods {
  std::vector<MethodWeight> methods;  // weights in ns, most self weight first
  uint64_t total_ns = 0;
};

class TopTable {
 public:
  // Windows of so much time are kept.
  explicit TopTable(uint64_t span_ns) : span_ns_(span_ns) {}

  void Add(std::shared_ptr<const Window> window);

  // Largest first, pid and name smallest first.
  std::vector<TopProcess> Processes(TopSort sort) const;
  TopMethods Methods(std::optional<uint32_t> pid, NamelessLeaves nameless = NamelessLeaves::kByRole) const;

  double seconds() const;  // that the rows are of
  uint64_t samples() const;
  uint64_t lost() const;
  FrameCounts frames() const;  // of code

 private:
  uint64_t span_ns_;
  std::deque<std::shared_ptr<const Window>> windows_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_TOP_TABLE_H_
