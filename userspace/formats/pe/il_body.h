// Reads a method's body in IL, for what tells how the JIT compiler may treat it.
//
// Layout: ECMA-335 partition II.25.4 (headers of bodies) and partition III (instructions). Pure.
#ifndef CLRSAMPLER_FORMATS_PE_IL_BODY_H_
#define CLRSAMPLER_FORMATS_PE_IL_BODY_H_

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"

namespace clrsampler {

struct IlBodyFacts {
  bool branches_back = false;    // some branch leads to itself or to an earlier instruction: a loop
  bool has_tail_prefix = false;  // some call has the prefix `tail.`
};

// The largest body that is read, header included.
constexpr size_t kMaxIlBodyBytes = 1 << 20;

// `bytes` begin at the body's header, and may go on behind the body. DataLoss: damaged, cut off, or too large.
absl::StatusOr<IlBodyFacts> ReadIlBody(std::span<const std::byte> bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_IL_BODY_H_
