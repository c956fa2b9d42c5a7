#include "output/callchain.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "output/json_stream.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint32_t kNoFrame = UINT32_MAX;
constexpr uint64_t kMostCount = std::numeric_limits<int32_t>::max();  // crossgen2 reads Int32

// The name of a frame's MethodSymbol. Empty: crossgen2 has no way to write it.
std::string CrossgenName(absl::string_view module, absl::string_view symbol) {
  const size_t join = symbol.rfind("::");
  if (join == absl::string_view::npos || join == 0 || absl::StrContains(symbol, "!")) return "";
  const absl::string_view type = symbol.substr(0, join), method = symbol.substr(join + 2);
  const bool is_constructor = method == ".ctor" || method == ".cctor";
  if (method.empty()) return "";
  if (module.empty() || absl::StrContains(module, "!") || (absl::StrContains(method, ".") && !is_constructor)) {
    return absl::StrCat(type, "!", method);
  }
  return absl::StrCat(module, ".dll!", type, ".", method);
}

struct Method {
  std::string name;
  absl::string_view module;
};

class CallGraph {
 public:
  CallGraph(const ProfileModel& model, absl::string_view module) : model_(model) {
    module = absl::StripSuffix(module.substr(module.rfind('/') + 1), ".dll");
    std::vector<uint32_t> method_of;
    for (const ModelFrame& frame : model.frames) method_of.push_back(MethodOf(frame, module));
    const std::vector<uint64_t> self = SelfWeights(model), total = TotalWeights(model, self);
    // For each node the nearest node of a method: itself or a caller.
    std::vector<NodeIndex> nearest(model.nodes.size(), kRootNode);
    for (NodeIndex node = 1; node < model.nodes.size(); ++node) {
      const NodeIndex caller = nearest[model.nodes[node].parent];
      const uint32_t method = method_of[model.nodes[node].frame];
      nearest[node] = method == kNoFrame ? caller : node;
      if (nearest[node] == kRootNode) continue;
      const uint32_t own = method_of[model.nodes[nearest[node]].frame];
      AddCall(own, own, self[node]);
      if (method == kNoFrame || caller == kRootNode) continue;
      const uint32_t direct = method_of[model.nodes[caller].frame];
      if (direct != method) AddCall(direct, method, total[node]);
      if (methods_[direct].module == methods_[method].module) continue;
      for (NodeIndex up = caller; up != kRootNode; up = nearest[model.nodes[up].parent]) {
        const uint32_t next = method_of[model.nodes[up].frame];
        if (methods_[next].module != methods_[method].module) continue;
        if (next != method) AddCall(next, method, total[node]);
        break;
      }
    }
    for (uint32_t method = 0; method < methods_.size(); ++method) {
      uint64_t& own = calls_[{method, method}];
      own = std::max<uint64_t>(own, 1);
    }
  }

  const std::vector<Method>& methods() const { return methods_; }
  size_t nameless() const { return nameless_.size(); }

  // By caller. The most frequent callee comes first.
  std::map<absl::string_view, std::vector<std::pair<uint64_t, absl::string_view>>> Calls() const {
    std::map<absl::string_view, std::vector<std::pair<uint64_t, absl::string_view>>> sorted;
    for (const auto& [call, count] : calls_) {
      sorted[methods_[call.first].name].emplace_back(count, methods_[call.second].name);
    }
    for (auto& [caller, callees] : sorted) {
      std::sort(callees.begin(), callees.end(),
                [](const auto& a, const auto& b) { return std::tie(b.first, a.second) < std::tie(a.first, b.second); });
    }
    return sorted;
  }

 private:
  static bool IsManaged(ModelFrameKind kind) { return kind == ModelFrameKind::kJit || kind == ModelFrameKind::kR2r; }

  uint32_t MethodOf(const ModelFrame& frame, absl::string_view module) {
    if (!IsManaged(frame.kind)) return kNoFrame;
    const absl::string_view assembly = absl::StripSuffix(model_.text(frame.module), ".dll");
    if (!module.empty() && assembly != module) return kNoFrame;
    std::string name = CrossgenName(assembly, model_.text(frame.system_name));
    if (name.empty()) {
      nameless_.insert(WithoutLine(frame));
      return kNoFrame;
    }
    const auto [found, added] = ids_.try_emplace(std::move(name), static_cast<uint32_t>(methods_.size()));
    if (added) methods_.push_back({found->first, assembly});
    return found->second;
  }

  void AddCall(uint32_t caller, uint32_t callee, uint64_t count) {
    if (count > 0) calls_[{caller, callee}] += count;
  }

  const ProfileModel& model_;
  std::vector<Method> methods_;
  absl::flat_hash_set<ModelFrame> nameless_;
  absl::flat_hash_map<std::string, uint32_t> ids_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t> calls_;
};

}  // namespace

absl::Status CallchainWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  const CallGraph graph(model, options_.module);
  if (graph.methods().empty()) {
    return WithHint(absl::NotFoundError(absl::StrCat("no managed method ", options_.module.empty() ? "" : "of ",
                                                     options_.module, options_.module.empty() ? "" : " ",
                                                     "in the profile has the runtime's own name")),
                    "give a recording of a .NET program as record -o FILE.json or FILE.pb.gz writes it; --module takes "
                    "the name of an assembly");
  }
  const auto calls = graph.Calls();
  uint64_t most = 1;
  for (const auto& [caller, callees] : calls) most = std::max(most, callees.front().first);
  const uint64_t scale = (most + kMostCount - 1) / kMostCount;

  JsonStream out(sink);
  out.Raw("{");
  absl::string_view before = "\n";
  for (const auto& [caller, called] : calls) {
    const auto& callees = called;  // clang 14 lets no lambda have a structured binding
    out.Raw(before).String(caller).Raw(": [").Array(callees.size(), [&](size_t i) { out.String(callees[i].second); });
    out.Raw(", ").Array(callees.size(), [&](size_t i) { out.Number(std::max<uint64_t>(callees[i].first / scale, 1)); });
    out.Raw("]");
    before = ",\n";
  }
  out.Raw("\n}\n");
  RETURN_IF_ERROR(out.Finish());
  if (options_.note) {
    options_.note(absl::StrCat(graph.methods().size(), " managed methods; ", graph.nameless(),
                               " frames without a name that crossgen2 knows were passed over"));
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
