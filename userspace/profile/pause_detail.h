// The detail of a pause's event: why it was, and which methods kept the threads from standing still.
//
//   "induced; Shop.Cart.Sum ran on for 2ms; Shop.Cart.Add ran on for 500us"
#ifndef CLRSAMPLER_PROFILE_PAUSE_DETAIL_H_
#define CLRSAMPLER_PROFILE_PAUSE_DETAIL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "profile/suspension_tracker.h"

namespace clrsampler {

std::string PauseDetail(std::optional<uint32_t> gc_reason, std::span<const Culprit> culprits);

struct PauseDelay {
  std::string method;
  uint64_t delay_ns = 0;
};
// The delays of any text, which may be from a file of strangers. A text that is none of PauseDetail has no delays from
// there on.
std::vector<PauseDelay> PauseDelaysOf(absl::string_view detail);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_PAUSE_DETAIL_H_
