#include "output/own_methods.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "output/wanted_weights.h"
#include "profile/library_methods.h"

namespace clrsampler {
namespace {

bool IsManaged(const ModelFrame& frame) {
  switch (frame.kind) {
    case ModelFrameKind::kJit:
    case ModelFrameKind::kR2r:
    case ModelFrameKind::kAot:
    case ModelFrameKind::kInlined:
      return true;
    default:
      return false;
  }
}

// Folded text knows the kind of managed frames alone. Text of other programs knows no kinds: any frame there may be
// managed.
bool MayBeOwn(const ProfileModel& model, const ModelFrame& frame, bool knows_kinds) {
  if (!IsManaged(frame) && (knows_kinds || frame.kind != ModelFrameKind::kUnknown)) return false;
  return !IsOfLibraries(model.text(frame.name));
}

absl::string_view MostlyText(absl::string_view name) { return absl::StartsWith(name, "[jit ") ? "[jit]" : name; }

struct Weights {
  uint64_t all = 0;
  std::map<absl::string_view, uint64_t> by_word;
};

}  // namespace

std::vector<OwnWeight> OwnMethods(const ProfileModel& model, std::span<const uint8_t> wanted, OwnMostly mostly) {
  const std::vector<uint64_t> weights = WantedWeights(model, wanted);
  std::vector<uint8_t> own(model.frames.size());
  const bool knows_kinds =
      std::any_of(model.frames.begin(), model.frames.end(), [](const ModelFrame& frame) { return IsManaged(frame); });
  for (size_t i = 0; i < own.size(); ++i) own[i] = MayBeOwn(model, model.frames[i], knows_kinds) ? 1 : 0;
  absl::flat_hash_map<absl::string_view, Weights> methods;
  for (NodeIndex node = 0; node < model.nodes.size(); ++node) {
    if (weights[node] == 0) continue;
    absl::string_view type, callee;
    for (NodeIndex at = node; at != kRootNode; at = model.nodes[at].parent) {
      const FrameIndex index = model.nodes[at].frame;
      const ModelFrame& frame = model.frames[index];
      const absl::string_view name = model.text(frame.name);
      if (own[index] != 0) {
        Weights& sum = methods[name];
        sum.all += weights[node];
        sum.by_word[mostly == OwnMostly::kType ? type : callee] += weights[node];
        break;
      }
      if (frame.kind == ModelFrameKind::kType) type = name;
      if (frame.kind != ModelFrameKind::kMark) callee = MostlyText(name);
    }
  }
  std::vector<OwnWeight> sorted;
  sorted.reserve(methods.size());
  for (const auto& [name, sum] : methods) {
    const auto most = std::max_element(sum.by_word.begin(), sum.by_word.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    sorted.push_back({std::string(name), sum.all, std::string(most->first)});
  }
  std::sort(sorted.begin(), sorted.end(), [](const OwnWeight& a, const OwnWeight& b) {
    return std::tie(b.weight, a.name) < std::tie(a.weight, b.name);
  });
  return sorted;
}

}  // namespace clrsampler
