#include "formats/proc/cgroup_text.h"

#include <optional>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "formats/proc/fields.h"

namespace clrsampler {
namespace {

bool HasController(const CgroupLine& line, absl::string_view wanted) {
  for (const absl::string_view controller : absl::StrSplit(line.controllers, ',')) {
    if (controller == wanted) return true;
  }
  return false;
}

// Smaller is better.
int Preference(const CgroupLine& line) {
  if (line.path.size() <= 1) return 4;  // the root says nothing
  if (line.hierarchy == 0) return 0;
  if (HasController(line, "name=systemd")) return 1;
  return HasController(line, "cpu") ? 2 : 3;
}

}  // namespace

std::vector<CgroupLine> ParseCgroup(absl::string_view text) {
  std::vector<CgroupLine> lines;
  while (!text.empty()) {
    absl::string_view rest = TakeLine(text);
    const std::optional<uint32_t> hierarchy = TakeDecimal32(rest);
    if (!hierarchy || !TakeChar(rest, ':')) continue;
    const size_t colon = rest.find(':');  // a path may hold colons, controllers can't
    if (colon == absl::string_view::npos || rest.size() == colon + 1 || rest[colon + 1] != '/') continue;
    CgroupLine line;
    line.hierarchy = *hierarchy;
    line.controllers = std::string(rest.substr(0, colon));
    line.path = absl::StrReplaceAll(rest.substr(colon + 1), {{"\\012", "\n"}, {"\\134", "\\"}});
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string CgroupPath(const std::vector<CgroupLine>& lines) {
  const CgroupLine* best = nullptr;
  for (const CgroupLine& line : lines) {
    if (best == nullptr || Preference(line) < Preference(*best)) best = &line;
  }
  return best == nullptr ? std::string() : best->path;
}

}  // namespace clrsampler
