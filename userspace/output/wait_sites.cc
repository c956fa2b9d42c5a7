#include "output/wait_sites.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "profile/library_methods.h"
#include "profile/wait_kind.h"

namespace clrsampler {
namespace {

bool IsCompiled(const ModelFrame& frame) {
  return frame.kind == ModelFrameKind::kJit || frame.kind == ModelFrameKind::kR2r || frame.kind == ModelFrameKind::kAot;
}

// The text of a mark "[text]"; empty: it is none.
absl::string_view MarkText(const ProfileModel& model, const ModelFrame& frame) {
  absl::string_view text = model.text(frame.name);
  if (frame.kind != ModelFrameKind::kMark || !absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) {
    return {};
  }
  return text;
}

std::vector<NodeIndex> Path(const ProfileModel& model, NodeIndex leaf) {
  std::vector<NodeIndex> path;
  for (NodeIndex node = leaf; node != kRootNode; node = model.nodes[node].parent) path.push_back(node);
  std::reverse(path.begin(), path.end());
  return path;
}

// A method among the functions before place `end`, outermost first.
std::string OwnMethod(const ProfileModel& model, const std::vector<NodeIndex>& path, size_t end) {
  const ModelFrame* managed = nullptr;
  for (size_t i = end; i-- > 0;) {
    const ModelFrame& frame = model.frame_of(path[i]);
    if (!IsCompiled(frame)) continue;
    if (!IsOfLibraries(model.text(frame.name))) return std::string(model.text(frame.name));
    if (managed == nullptr) managed = &frame;
  }
  if (managed != nullptr) return std::string(model.text(managed->name));
  return end == 0 ? "" : std::string(model.text(model.frame_of(path[end - 1]).name));
}

}  // namespace

void AddWaitSites(const ProfileModel& model, std::map<ProcessWaitSite, uint64_t>& sums) {
  for (size_t row = 0; row < model.samples.size(); ++row) {
    const std::vector<NodeIndex> path = Path(model, model.samples.stack[row]);
    for (size_t i = 0; i < path.size(); ++i) {
      const absl::string_view kind = MarkText(model, model.frame_of(path[i]));
      if (kind.empty() || (!absl::StartsWith(kind, "waits ") && !WaitKindOf(kind))) continue;
      ProcessWaitSite site;
      site.pid = model.threads[model.samples.thread[row]].pid;
      site.kind = std::string(kind);
      site.method = OwnMethod(model, path, i);
      if (i + 1 < path.size()) site.waker = std::string(MarkText(model, model.frame_of(path[i + 1])));
      uint64_t& sum = sums[std::move(site)];
      sum += std::min(model.samples.weight_of(row), ~uint64_t{0} - sum);
      break;
    }
  }
}

}  // namespace clrsampler
