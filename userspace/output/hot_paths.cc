#include "output/hot_paths.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "output/wanted_weights.h"

namespace clrsampler {
namespace {

constexpr double kFollowed = 0.5;  // of the caller's weight
constexpr double kDivides = 0.1;   // of the whole

// The call tree by names; parents come before their children.
struct NameTree {
  std::vector<uint32_t> parent{0};
  std::vector<StringIndex> name{0};
  std::vector<uint64_t> total{0};
  std::vector<std::vector<uint32_t>> children;
};

NameTree TreeOf(const ProfileModel& model, std::span<const uint8_t> wanted) {
  const std::vector<uint64_t> total = TotalWeights(model, WantedWeights(model, wanted));
  NameTree tree;
  tree.total[0] = total[0];
  absl::flat_hash_map<std::pair<uint32_t, StringIndex>, uint32_t> ids;
  std::vector<uint32_t> id_of(model.nodes.size());
  for (NodeIndex node = 1; node < model.nodes.size(); ++node) {
    const uint32_t parent = id_of[model.nodes[node].parent];
    id_of[node] = parent;
    if (total[node] == 0 || model.frame_of(node).kind == ModelFrameKind::kMark) continue;
    const StringIndex name = model.frame_of(node).name;
    const auto [found, added] = ids.try_emplace({parent, name}, static_cast<uint32_t>(tree.parent.size()));
    if (added) {
      tree.parent.push_back(parent);
      tree.name.push_back(name);
      tree.total.push_back(0);
    }
    id_of[node] = found->second;
    tree.total[found->second] += total[node];
  }
  tree.children.resize(tree.parent.size());
  for (uint32_t id = 1; id < tree.parent.size(); ++id) tree.children[tree.parent[id]].push_back(id);
  return tree;
}

HotPath PathTo(const ProfileModel& model, const NameTree& tree, uint32_t id) {
  HotPath path;
  path.weight = tree.total[id];
  for (uint32_t at = id; at != 0; at = tree.parent[at]) path.frames.emplace_back(model.text(tree.name[at]));
  std::reverse(path.frames.begin(), path.frames.end());
  return path;
}

}  // namespace

std::vector<HotPath> HotPaths(const ProfileModel& model, std::span<const uint8_t> wanted) {
  const NameTree tree = TreeOf(model, wanted);
  const auto whole = static_cast<double>(tree.total[0]);
  std::vector<HotPath> paths;
  std::vector<uint32_t> open{0};
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    std::vector<uint32_t> parts;
    std::optional<uint32_t> heaviest;
    for (const uint32_t child : tree.children[at]) {
      if (static_cast<double>(tree.total[child]) >= kDivides * whole) parts.push_back(child);
      if (!heaviest || tree.total[child] > tree.total[*heaviest]) heaviest = child;
    }
    const bool follows =
        heaviest && static_cast<double>(tree.total[*heaviest]) >= kFollowed * static_cast<double>(tree.total[at]);
    if (parts.size() > 1 || (at == kRootNode && !parts.empty())) {
      open.insert(open.end(), parts.begin(), parts.end());
    } else if (follows) {
      open.push_back(*heaviest);
    } else if (at != kRootNode) {
      paths.push_back(PathTo(model, tree, at));
    }
  }
  std::stable_sort(paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.weight > b.weight; });
  return paths;
}

}  // namespace clrsampler
