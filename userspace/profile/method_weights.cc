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

// The names are those that the builds of Microsoft and of the distributions give them.
bool IsRuntimeLibrary(absl::string_view module) {
  return module == "libcoreclr.so" || module == "libclrjit.so" || module == "libclrgc.so" || module == "libclrgcexp.so";
}

constexpr absl::string_view kRuntimeTable = "runtime-table";  // NameSourceText

// Weights of a role are added up: compilations are a role each in a stack.
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

// The methods of one profile. Frames that differ in source or tier only are one method.
struct MethodWeights::Methods {
  Methods(const ProfileModel& model, NamelessLeaves nameless) : method_of(model.frames.size()) {
    absl::flat_hash_map<Key, uint32_t> ids;
    for (size_t i = 0; i < model.frames.size(); ++i) {
      const ModelFrame& frame = model.frames[i];
      absl::string_view name = model.text(frame.name);
      const bool is_plain = !IsNamelessNative(frame, name);
      if (nameless == NamelessLeaves::kByRole && frame.kind == ModelFrameKind::kRole) name = RoleText(name);
      // A method that was compiled ahead and is compiled anew counts as one.
      const ModelFrameKind kind = frame.kind == ModelFrameKind::kR2r ? ModelFrameKind::kJit : frame.kind;
      Key key{std::string(name), std::string(model.text(frame.module)), kind};
      const auto [entry, added] = ids.try_emplace(key, static_cast<uint32_t>(keys.size()));
      method_of[i] = entry->second;
      if (!added) continue;
      keys.push_back(std::move(key));
      is_nameless.push_back(is_plain ? 0 : 1);
      const bool runtime = model.text(frame.source) == kRuntimeTable || IsRuntimeLibrary(model.text(frame.module));
      is_runtime.push_back(frame.kind == ModelFrameKind::kNative && is_plain && runtime ? 1 : 0);
    }
  }

  std::vector<uint32_t> method_of;  // by frame
  std::vector<Key> keys;
  std::vector<uint8_t> is_nameless;
  std::vector<uint8_t> is_runtime;  // a function of the runtime that has a name
};

// The kind of a stack's leaf, and the place of a nameless one: a role, and the nearest function with a name.
class MethodWeights::LeafSearch {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit LeafSearch(const Methods& methods) : methods_(methods) {}

  // From the leaf upwards.
  void Meet(uint32_t method) {
    const ModelFrameKind kind = methods_.keys[method].kind;
    if (leaf == kNone && IsCode(kind)) {
      leaf = method;
      settled_ = methods_.is_nameless[method] == 0;
    } else if (leaf != kNone && !settled_) {
      if (kind == ModelFrameKind::kRole) role = method;
      if (caller == kNone && methods_.is_runtime[method] != 0) caller = method;
      settled_ = role != kNone || IsManaged(kind);
    }
  }
  bool IsNamelessRuntime() const {
    if (role != kNone || caller != kNone) return true;
    return methods_.is_nameless[leaf] != 0 && IsRuntimeLibrary(methods_.keys[leaf].module);
  }

  uint32_t leaf = kNone, role = kNone, caller = kNone;

 private:
  const Methods& methods_;
  bool settled_ = false;  // above it nothing says more of the leaf
};

void MethodWeights::Add(const ProfileModel& model, std::span<const uint8_t> wanted) {
  std::vector<uint64_t> weights(model.nodes.size());
  for (size_t row = 0; row < model.samples.size(); ++row) {
    if (!wanted.empty() && wanted[row] == 0) continue;
    weights[model.samples.stack[row]] += model.samples.weight_of(row);
    total_ += model.samples.weight_of(row);
  }
  const Methods methods(model, nameless_);
  std::vector<Weights> sums(methods.keys.size());
  std::vector<uint64_t> seen(methods.keys.size(), 0);  // the last stack that had the method
  absl::flat_hash_map<uint32_t, uint64_t> inside;      // by function of the runtime: the weight of its nameless leaves
  uint64_t stack = 0;
  for (NodeIndex node = 0; node < model.nodes.size(); ++node) {
    if (weights[node] == 0) continue;
    ++stack;
    LeafSearch search(methods);
    for (NodeIndex at = node; at != kRootNode; at = model.nodes[at].parent) {
      const uint32_t method = methods.method_of[model.nodes[at].frame];
      search.Meet(method);
      if (std::exchange(seen[method], stack) != stack) sums[method].total += weights[node];
    }
    if (search.leaf == LeafSearch::kNone) continue;
    if (search.IsNamelessRuntime()) nameless_runtime_ += weights[node];
    if (nameless_ == NamelessLeaves::kByAddress ||
        (search.role == LeafSearch::kNone && search.caller == LeafSearch::kNone)) {
      sums[search.leaf].self += weights[node];
    } else if (search.role != LeafSearch::kNone) {
      sums[search.role].self += weights[node];
    } else {
      inside[search.caller] += weights[node];
    }
  }
  AddSums(methods, sums, inside);
}

void MethodWeights::AddSums(const Methods& methods, const std::vector<Weights>& sums,
                            const absl::flat_hash_map<uint32_t, uint64_t>& inside) {
  for (const auto& [caller, weight] : inside) {
    Weights& sum = methods_[Key{absl::StrCat("[in ", methods.keys[caller].name, "]"), "", ModelFrameKind::kRole}];
    sum.self += weight;
    sum.total += sums[caller].total;
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].total == 0) continue;
    Weights& sum = methods_[methods.keys[i]];
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
