// The pauses and compilations of a runtime that a recording has seen, added up, for a report. Pure.
#ifndef CLRSAMPLER_OUTPUT_RUNTIME_TABLES_H_
#define CLRSAMPLER_OUTPUT_RUNTIME_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "output/report.h"
#include "profile/jit_tracker.h"
#include "profile/suspension_tracker.h"

namespace clrsampler {

// Events that are alike. Sums stay at the largest number where they would be larger.
struct RuntimeSum {
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t longest_ns = 0;
  uint64_t other_ns = 0;  // of pauses: the time until the threads stood

  void Add(uint64_t ns);
};

// Memory grows with the names, up to kMaxNames of each kind; what comes then is added up under "[others]".
class RuntimeTables {
 public:
  static constexpr size_t kMaxNames = 20'000;

  void Add(const Pause& pause, std::span<const Culprit> culprits);
  void Add(const NamedCompilation& named);
  // The events of a profile tell neither when the threads stood nor whom a method was compiled for.
  void AddPause(const std::string& purpose, uint64_t pause_ns);
  void AddDelay(const std::string& method, uint64_t delay_ns);
  void AddCompilation(const std::string& method, const std::string& tier, uint64_t own_ns);

  // From one process of this program to another. InvalidArgument: it is none of ToJson.
  std::string ToJson() const;
  static absl::StatusOr<RuntimeTables> FromJson(absl::string_view text);

  // Pauses with what delayed them, and compilations by tier, by method, and by the method that they were for.
  // `seconds`: that were watched.
  std::vector<ReportTable> Pauses(double seconds) const;
  std::vector<ReportTable> Compilations(double seconds) const;

 private:
  using Sums = std::map<std::string, RuntimeSum>;
  static RuntimeSum& SumOf(Sums& sums, const std::string& name);
  ReportTable PauseTable(double seconds) const;

  Sums pauses_, culprits_, tiers_, callers_, methods_;
  bool knows_stops_ = true;    // how long it took until the threads stood, of each pause
  bool knows_callers_ = true;  // of each compilation
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_RUNTIME_TABLES_H_
