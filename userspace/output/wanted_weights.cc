#include "output/wanted_weights.h"

namespace clrsampler {

std::vector<uint64_t> WantedWeights(const ProfileModel& model, std::span<const uint8_t> wanted) {
  std::vector<uint64_t> weights(model.nodes.size());
  for (size_t row = 0; row < model.samples.size(); ++row) {
    if (wanted.empty() || wanted[row] != 0) weights[model.samples.stack[row]] += model.samples.weight_of(row);
  }
  return weights;
}

}  // namespace clrsampler
