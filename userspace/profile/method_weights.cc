#include "profile/method_weights.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

bool IsCode(ModelFrameKind kind) {
  return kind != ModelFrameKind::kRole && kind != ModelFrameKind::kMark && kind != ModelFrameKind::kType;
}

bool IsManaged(ModelFrameKind kind) {
  return kind == ModelFrameKind::kJit || kind == ModelFrameKind::kR2r || kind == ModelFrameKind::kAot;
}

// By the names that Microsoft's and the distributions' builds give them.
bool IsRuntimeLibrary(absl::string_view module) {
  return module == "libcoreclr.so" || module == "libclrjit.so" || module == "libclrgc.so" || module == "libclrgcexp.so";
}

constexpr absl::string_view kRuntimeTable = "runtime-table";  // NameSourceText

// What is added up of a role: compilations are a role each in a stack.
absl::string_view RoleText(absl::string_view name) { return absl::StartsWith(name, "[jit ") ? "[jit]" : name; }

}  // namespace

bool IsNamelessNative(const ModelFrame& frame, absl::string_view name) {
  if (frame.kind != ModelFrameKind::kNative) return false;
  if (absl::StartsWith(name, "[native: ")) return true;
  const size_t mark = name.rfind("!0x");
  if (mark == absl::string_view::npos || name.size() == mark + 3) return false;
  return absl::c_all_of(name.substr(mark + 3),
                        [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
}

void MethodWeights::Add(const ProfileModel& model, std::span<const uint8_t> wanted) {
  // Frames that differ in source or tier only are one method.
  std::vector<uint32_t> method_of(model.frames.size());
  std::vector<uint8_t> is_nameless, is_runtime;  // by method; the latter: a function of the runtime that has a name
  std::vector<Key> keys;
  absl::flat_hash_map<Key, uint32_t> ids;
  for (size_t i = 0; i < model.frames.size(); ++i) {
    const ModelFrame& frame = model.frames[i];
    absl::string_view name = model.text(frame.name);
    const bool nameless = IsNamelessNative(frame, name);
    if (nameless_ == NamelessLeaves::kByRole && frame.kind == ModelFrameKind::kRole) name = RoleText(name);
    // A method that was compiled ahead and is compiled anew stays one.
    const ModelFrameKind kind = frame.kind == ModelFrameKind::kR2r ? ModelFrameKind::kJit : frame.kind;
    Key key{std::string(name), std::string(model.text(frame.module)), kind};
    const auto [entry, added] = ids.try_emplace(key, static_cast<uint32_t>(keys.size()));
    if (added) {
      keys.push_back(std::move(key));
      is_nameless.push_back(nameless ? 1 : 0);
      const bool runtime = model.text(frame.source) == kRuntimeTable || IsRuntimeLibrary(model.text(frame.module));
      is_runtime.push_back(frame.kind == ModelFrameKind::kNative && !nameless && runtime ? 1 : 0);
    }
    method_of[i] = entry->second;
  }
  std::vector<uint64_t> weights(model.nodes.size());
  for (size_t row = 0; row < model.samples.size(); ++row) {
    if (!wanted.empty() && wanted[row] == 0) continue;
    weights[model.samples.stack[row]] += model.samples.weight_of(row);
    total_ += model.samples.weight_of(row);
  }
  std::vector<Weights> sums(keys.size());
  std::vector<uint64_t> seen(keys.size(), 0);      // the last stack that had the method
  absl::flat_hash_map<uint32_t, uint64_t> inside;  // by function of the runtime: the weight of its nameless leaves
  uint64_t stack = 0;
  for (NodeIndex node = 0; node < model.nodes.size(); ++node) {
    if (weights[node] == 0) continue;
    ++stack;
    std::optional<uint32_t> leaf;
    std::optional<uint32_t> role,
        caller;            // what a nameless leaf is below: a role, and the nearest function with a name
    bool settled = false;  // above is nothing that says more of the leaf
    for (NodeIndex at = node; at != kRootNode; at = model.nodes[at].parent) {
      const uint32_t method = method_of[model.nodes[at].frame];
      const ModelFrameKind kind = keys[method].kind;
      if (!leaf && IsCode(kind)) {
        leaf = method;
        settled = is_nameless[method] == 0;
      } else if (leaf && !settled) {
        if (kind == ModelFrameKind::kRole) role = method;
        if (!caller && is_runtime[method] != 0) caller = method;
        settled = role.has_value() || IsManaged(kind);
      }
      if (std::exchange(seen[method], stack) != stack) sums[method].total += weights[node];
    }
    if (!leaf) continue;
    if (role || caller || (is_nameless[*leaf] != 0 && IsRuntimeLibrary(keys[*leaf].module))) {
      nameless_runtime_ += weights[node];
    }
    if (nameless_ == NamelessLeaves::kByAddress || (!role && !caller)) {
      sums[*leaf].self += weights[node];
    } else if (role) {
      sums[*role].self += weights[node];
    } else {
      inside[*caller] += weights[node];
    }
  }
  for (const auto& [caller, weight] : inside) {
    Weights& sum = methods_[Key{absl::StrCat("[in ", keys[caller].name, "]"), "", ModelFrameKind::kRole}];
    sum.self += weight;
    sum.total += sums[caller].total;
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
