#include "output/wait_summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/summary.h"
#include "output/wait_parts.h"

namespace clrsampler {
namespace {

void SortByTime(std::vector<WaitSite>& sites) {
  std::sort(sites.begin(), sites.end(), [](const WaitSite& a, const WaitSite& b) {
    return std::tie(b.microseconds, a.kind, a.method) < std::tie(a.microseconds, b.kind, b.method);
  });
}

std::string Seconds(uint64_t microseconds) {
  return absl::StrFormat("%.3f s", static_cast<double>(microseconds) / 1e6);
}

}  // namespace

WaitSummary SummarizeWaits(const FrameTable& frames, const StackTable& stacks, const std::vector<WaitKind>& only) {
  struct Site {
    uint64_t microseconds = 0;
    std::map<std::string, uint64_t> wakers;
    bool managed = false;
  };
  std::map<std::string, uint64_t> kinds;
  std::map<std::pair<std::string, std::string>, Site> sites;
  WaitSummary summary;
  for (StackId id = 0; id < stacks.size(); ++id) {
    const uint64_t microseconds = stacks.count(id);
    if (microseconds == 0) continue;
    const WaitParts parts = DivideWait(frames, stacks.stack(id).frames);
    (parts.kind == kRunning ? summary.running_us : summary.waited_us) += microseconds;
    kinds[std::string(parts.kind)] += microseconds;
    const std::optional<WaitKind> kind = WaitKindOf(parts.kind);
    if (!kind || *kind == WaitKind::kIdle) continue;
    if (!only.empty() && std::find(only.begin(), only.end(), *kind) == only.end()) continue;
    const std::vector<FrameId> innermost_first(parts.functions.rbegin(), parts.functions.rend());
    Site& site = sites[{std::string(parts.kind), OwnMethod(frames, innermost_first)}];
    site.microseconds += microseconds;
    site.managed |= HasManaged(frames, parts.functions);
    if (parts.waker.empty()) continue;
    const std::string method = OwnMethod(frames, parts.waker_functions);
    site.wakers[method.empty() ? std::string(parts.waker) : absl::StrCat(parts.waker, " in ", method)] += microseconds;
  }
  for (const auto& [kind, microseconds] : kinds) summary.kinds.push_back({kind, "", microseconds, "", false});
  for (const auto& [name, site] : sites) {
    const auto most = std::max_element(site.wakers.begin(), site.wakers.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    summary.sites.push_back(
        {name.first, name.second, site.microseconds, most == site.wakers.end() ? "" : most->first, site.managed});
  }
  SortByTime(summary.kinds);
  SortByTime(summary.sites);
  return summary;
}

std::string WaitSummaryText(const WaitSummary& summary, const Account& account, size_t rows) {
  const double seconds = std::max(account.duration_seconds, 0.001);
  std::string text =
      absl::StrFormat("threads waited for %s in %.1f s, %.1f of them at a time", Seconds(summary.waited_us), seconds,
                      static_cast<double>(summary.waited_us) / 1e6 / seconds);
  if (summary.running_us > 0) absl::StrAppend(&text, ", and ran for ", Seconds(summary.running_us));
  absl::StrAppendFormat(&text, "\n%12s  %7s  %s\n", "time", "share", "for");
  const auto all = static_cast<double>(std::max<uint64_t>(summary.waited_us + summary.running_us, 1));
  for (const WaitSite& kind : summary.kinds) {
    absl::StrAppendFormat(&text, "%12s  %5.1f %%  %s\n", Seconds(kind.microseconds),
                          100.0 * static_cast<double>(kind.microseconds) / all, PrintableText(kind.kind));
  }
  if (summary.sites.empty()) return text;
  absl::StrAppendFormat(&text, "%12s  %-13s  %s\n", "time", "for", "in");
  for (size_t i = 0; i < std::min(rows, summary.sites.size()); ++i) {
    const WaitSite& site = summary.sites[i];
    absl::StrAppendFormat(&text, "%12s  %-13s  %s\n", Seconds(site.microseconds), site.kind,
                          PrintableText(site.method));
    if (!site.waker.empty()) absl::StrAppendFormat(&text, "%29s%s\n", "", PrintableText(site.waker));
  }
  if (summary.sites.size() > rows) absl::StrAppendFormat(&text, "%12s  and %d more\n", "", summary.sites.size() - rows);
  return text;
}

}  // namespace clrsampler
