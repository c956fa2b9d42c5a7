#include "profile/pause_detail.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kRanOn = " ran on for ";
constexpr absl::string_view kNext = "; ";
// More than the runtime has.
constexpr uint32_t kMaxReasons = 64;

bool IsReason(absl::string_view word) {
  for (uint32_t reason = 0; reason < kMaxReasons; ++reason) {
    if (word == GcReasonText(reason)) return true;
  }
  return false;
}

}  // namespace

std::string PauseDetail(std::optional<uint32_t> gc_reason, std::span<const Culprit> culprits) {
  std::string detail(GcReasonText(gc_reason));
  for (const Culprit& culprit : culprits) {
    absl::StrAppend(&detail, detail.empty() ? "" : kNext, culprit.method, kRanOn,
                    absl::FormatDuration(absl::Microseconds(culprit.delay_ns / 1000)));
  }
  return detail;
}

std::vector<PauseDelay> PauseDelaysOf(absl::string_view detail) {
  std::vector<PauseDelay> delays;
  if (const size_t end = detail.find(kNext); end != detail.npos && IsReason(detail.substr(0, end))) {
    detail.remove_prefix(end + kNext.size());
  }
  while (true) {
    const size_t says = detail.find(kRanOn);
    if (says == detail.npos || says == 0) return delays;
    const size_t from = says + kRanOn.size();
    const size_t end = std::min(detail.find(kNext, from), detail.size());
    absl::Duration delay;
    if (!absl::ParseDuration(detail.substr(from, end - from), &delay)) return delays;
    if (delay < absl::ZeroDuration() || delay > absl::Hours(24)) return delays;
    delays.push_back({std::string(detail.substr(0, says)), static_cast<uint64_t>(absl::ToInt64Nanoseconds(delay))});
    detail.remove_prefix(end);
    if (!absl::ConsumePrefix(&detail, kNext)) return delays;
  }
}

}  // namespace clrsampler
