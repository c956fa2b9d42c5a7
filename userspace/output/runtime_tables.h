// What a recording has seen of a runtime's pauses and compilations, added up: what a report says of them. Pure.
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
#include "formats/profile/profile_model.h"
#include "output/report.h"
#include "profile/jit_tracker.h"
#include "profile/suspension_tracker.h"

namespace clrsampler {

// Events that are alike.
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

  // What a profile keeps of them. It does not know how long stopping took, or what was compiled for which method.
  static RuntimeTables OfEvents(const ProfileModel& model);

  // From one process of this program to another. InvalidArgument: it is none of ToJson.
  std::string ToJson() const;
  static absl::StatusOr<RuntimeTables> FromJson(absl::string_view text);

  // Pauses with who delayed them, and compilations by tier, by whom they were for, and by method. `seconds`: that were
  // watched.
  std::vector<ReportTable> Pauses(double seconds) const;
  std::vector<ReportTable> Compilations(double seconds) const;

 private:
  using Sums = std::map<std::string, RuntimeSum>;
  static RuntimeSum& SumOf(Sums& sums, const std::string& name);

  bool of_events_ = false;
  Sums pauses_, culprits_, tiers_, callers_, methods_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_RUNTIME_TABLES_H_
