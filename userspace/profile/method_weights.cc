#include "profile/method_weights.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace clrsampler {
namespace {

bool IsCode(ModelFrameKind kind) { return kind != ModelFrameKind::kRole && kind != ModelFrameKind::kMark; }

}  // namespace

void MethodWeights::Add(const ProfileModel& model, std::span<const uint8_t> wanted) {
  // Frames that differ in source or tier only are one method.
  std::vector<uint32_t> method_of(model.frames.size());
  std::vector<Key> keys;
  absl::flat_hash_map<Key, uint32_t> ids;
  for (size_t i = 0; i < model.frames.size(); ++i) {
    const ModelFrame& frame = model.frames[i];
    Key key{std::string(model.text(frame.name)), std::string(model.text(frame.module)), frame.kind};
    const auto [entry, added] = ids.try_emplace(key, static_cast<uint32_t>(keys.size()));
    if (added) keys.push_back(std::move(key));
    method_of[i] = entry->second;
  }
  std::vector<uint64_t> weights(model.nodes.size());
  for (size_t row = 0; row < model.samples.size(); ++row) {
    if (!wanted.empty() && wanted[row] == 0) continue;
    weights[model.samples.stack[row]] += model.samples.weight_of(row);
    total_ += model.samples.weight_of(row);
  }
  std::vector<Weights> sums(keys.size());
  std::vector<uint64_t> seen(keys.size(), 0);  // the last stack that had the method
  uint64_t stack = 0;
  for (NodeIndex node = 0; node < model.nodes.size(); ++node) {
    if (weights[node] == 0) continue;
    ++stack;
    bool leaf = true;
    for (NodeIndex at = node; at != kRootNode; at = model.nodes[at].parent) {
      const uint32_t method = method_of[model.nodes[at].frame];
      if (leaf && IsCode(keys[method].kind)) {
        sums[method].self += weights[node];
        leaf = false;
      }
      if (std::exchange(seen[method], stack) != stack) sums[method].total += weights[node];
    }
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (sums[i].total == 0) continue;
    Weights& sum = methods_[std::move(keys[i])];
    sum.self += sums[i].self;
    sum.total += sums[i].total;
  }
}

std::vector<MethodWeight> MethodWeights::Sorted() const {
  std::vector<MethodWeight> sorted;
  for (const auto& [key, weights] : methods_) {
    if (key.kind == ModelFrameKind::kMark) continue;
    sorted.push_back({key.name, key.module, key.kind, weights.self, weights.total});
  }
  std::sort(sorted.begin(), sorted.end(), [](const MethodWeight& a, const MethodWeight& b) {
    return std::tie(b.self, b.total, a.name, a.module, a.kind) < std::tie(a.self, a.total, b.name, b.module, b.kind);
  });
  return sorted;
}

}  // namespace clrsampler
