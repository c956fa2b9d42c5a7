#include "output/share.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace clrsampler {

Share ShareOf(uint64_t part, uint64_t whole, std::optional<double> samples) {
  Share share;
  if (whole == 0) return share;
  share.value = static_cast<double>(part) / static_cast<double>(whole);
  if (!samples || *samples <= 0) return share;
  const double n = *samples + 2;
  const double p = (share.value * *samples + 1) / n;
  share.error = std::sqrt(p * (1 - p) / n);
  return share;
}

std::optional<double> EffectiveSamples(const ProfileModel& model, std::span<const uint8_t> wanted) {
  bool single = !model.samples.time_ns.empty();  // each row is one sample
  double sum = 0, squares = 0;
  for (size_t row = 0; row < model.samples.size(); ++row) {
    if (!wanted.empty() && wanted[row] == 0) continue;
    const auto weight = static_cast<double>(model.samples.weight_of(row));
    single = single && model.samples.time_of(row) != kNoTime;
    sum += weight;
    squares += weight * weight;
  }
  if (sum == 0) return std::nullopt;
  if (single) return sum * sum / squares;
  if (model.meta.unit == WeightUnit::kSamples) return sum;
  return std::nullopt;
}

std::string ShareText(const Share& share) {
  const double percent = 100 * share.value;
  if (!share.error) return absl::StrFormat("%.1f %%", percent);
  const double error = 100 * *share.error;
  if (error >= 0.95) return absl::StrFormat("%.0f %% ± %.0f", percent, error);
  if (error >= 0.095) return absl::StrFormat("%.1f %% ± %.1f", percent, error);
  return absl::StrFormat("%.2f %% ± %.2f", percent, std::max(error, 0.01));
}

}  // namespace clrsampler
