#include "store/lane_nodes.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace clrsampler {

LaneNodes::LaneNodes(std::span<const StackNode> nodes, std::span<const ModelFrame> frames,
                     absl::FunctionRef<absl::string_view(StringIndex)> text, absl::string_view method)
    : running_(nodes.size(), LaneCategory::kOther), idle_(nodes.size(), false), counts_(nodes.size(), method.empty()) {
  const std::string wanted = absl::AsciiStrToLower(method);
  std::vector<std::optional<LaneCategory>> categories;
  std::vector<bool> fits;
  for (const ModelFrame& frame : frames) {
    const absl::string_view name = text(frame.name);
    categories.push_back(LaneCategoryOf(frame.kind, name));
    fits.push_back(wanted.empty() || absl::StrContains(absl::AsciiStrToLower(name), wanted));
  }
  for (size_t i = 1; i < nodes.size(); ++i) {
    const StackNode& node = nodes[i];
    const std::optional<LaneCategory>& own = categories[node.frame];
    running_[i] = own.value_or(running_[node.parent]);
    idle_[i] = idle_[node.parent] || own == LaneCategory::kIdle;
    counts_[i] = counts_[node.parent] || fits[node.frame];
  }
}

}  // namespace clrsampler
