// ThreadSuspend::SuspendEE and RestartEE, by structure.
//
// Each announces itself twice, when it begins and when it is done, with an event whose static tracepoint has its name
// in the file. lttng-ust's tracepoint is
//   before 2.13, sections __tracepoints, __tracepoints_strings: {"DotNETRuntime:" event, i32 state, ...}
//   since 2.13, lttng_ust_tracepoints, lttng_ust_tracepoints_strings: {u32 bytes, "DotNETRuntime", event, i32 state,
//   ...}
// The way:
//   name -> the relocated slot that holds it
//        -> the functions that read the state, the word behind it: one that tells whether the event is on, one that
//           fires. The newer form's code takes the address of the tracepoint's first byte for that
//        -> the functions that call those
// Both events of a pair must lead to exactly one function, and to the same. So it is in 8.0.0 to 11.0.0 on x64 and in
// 10.0.9 on arm64. Built for musl, 8.0.34 has the older form, 10.0.15 and 11.0.0 have the newer one.
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

struct Tracepoint {
  VirtualAddress name_slot;  // holds the event's name
  VirtualAddress state;
  VirtualAddress begin;
  bool known_by_begin = false;  // code may refer to the state by `begin`
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
  std::array<absl::StatusOr<Tracepoint>, kTracepoints> tracepoints_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_SUSPEND_SEARCH_H_
