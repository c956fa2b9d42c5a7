// ThreadSuspend::SuspendEE and RestartEE, by structure.
//
// Each announces itself twice, when it begins and when it is done, with an event whose static tracepoint has its name
// in the file (section __tracepoints_strings; lttng-ust's struct tracepoint: {name, i32 state, ...}). The way:
//   name -> the relocated slot that holds it, which is the tracepoint's first field
//        -> the functions that read the tracepoint's state, +8: one that tells whether the event is on, one that fires
//        -> the functions that call those
// Both events of a pair must lead to exactly one function, and to the same. So it is in 8.0.0 to 10.0.14 on x64 and in
// 10.0.9 on arm64.
#ifndef CLRSAMPLER_CLR_HOOKS_SUSPEND_SEARCH_H_
#define CLRSAMPLER_CLR_HOOKS_SUSPEND_SEARCH_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/hooks/image_code.h"

namespace clrsampler {

struct FoundFunction {
  FunctionIndex function = 0;
  std::string evidence;
};

// The tracepoints of one image.
class SuspendSearch {
 public:
  explicit SuspendSearch(const ImageCode& code);

  // To be given to ImageCode::IndexReferences before the functions are asked for.
  std::vector<VirtualAddress> Watched() const;

  absl::StatusOr<FoundFunction> SuspendEE() const { return Find(0); }
  absl::StatusOr<FoundFunction> RestartEE() const { return Find(2); }

 private:
  static constexpr size_t kTracepoints = 4;
  absl::StatusOr<FoundFunction> Find(size_t first) const;
  absl::StatusOr<FunctionIndex> OnlyCaller(size_t tracepoint) const;

  const ImageCode& code_;
  std::array<absl::StatusOr<VirtualAddress>, kTracepoints> tracepoints_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_SUSPEND_SEARCH_H_
