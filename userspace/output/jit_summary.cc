#include "output/jit_summary.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "output/summary.h"

namespace clrsampler {
namespace {

constexpr size_t kShownCompiled = 15;

std::string TierText(const NamedCompilation& named) {
  if (named.compilation.result != 0) return "refused";
  return named.il_stub ? absl::StrCat(named.tier, ", IL stub") : named.tier;
}

}  // namespace

std::string CompilationLine(const NamedCompilation& named, MonotonicTime begin) {
  const Compilation& compilation = named.compilation;
  const uint64_t at = compilation.began.ns - std::min(compilation.began, begin).ns;
  std::string line =
      absl::StrFormat("%10.3f  %-25s %9s %7d bytes  %s", static_cast<double>(at) / 1e9, TierText(named),
                      DurationText(compilation.own_ns()), compilation.bytes, PrintableText(named.method));
  if (named.place.line != 0) absl::StrAppend(&line, "  ", PrintableText(named.place.file), ":", named.place.line);
  if (!named.callers.empty()) absl::StrAppend(&line, "  for ", PrintableText(named.callers.front()));
  absl::StrAppend(&line, "  on ", compilation.tid, " ", PrintableText(compilation.comm));
  return line;
}

void JitSummary::Add(const NamedCompilation& named) {
  const Compilation& compilation = named.compilation;
  first_ = std::min(first_, compilation.began);
  ++count_;
  total_ns_ += compilation.own_ns();
  Tier& tier = tiers_[compilation.result != 0 ? "refused" : named.tier];
  tier.time.Add(compilation.own_ns());
  tier.bytes += compilation.bytes;
  if (named.il_stub) ++tier.il_stubs;
  if (methods_.size() >= kMaxMethods && !methods_.contains(named.method)) {
    ++beyond_;
    return;
  }
  Method& method = methods_[named.method];
  ++method.tiers[named.tier];
  method.total_ns += compilation.own_ns();
  method.bytes += compilation.bytes;
  if (compilation.own_ns() >= method.longest_ns) {
    method.longest_ns = compilation.own_ns();
    if (!named.callers.empty()) method.caller = named.callers.front();
  }
}

std::string JitSummary::Text(double seconds) const {
  if (count_ == 0) return absl::StrFormat("nothing was compiled in %.1f s\n", seconds);
  std::string text = absl::StrFormat(
      "\n%d compilations in %.1f s took %s (%.2f %% of one CPU)\n\n%-28s %7s %10s %10s %10s %10s %12s\n", count_,
      seconds, DurationText(total_ns_), seconds > 0 ? static_cast<double>(total_ns_) / 1e7 / seconds : 0.0, "",
      "number", "total", "p50", "p99", "max", "bytes");
  for (const auto& [name, tier] : tiers_) {
    absl::StrAppend(
        &text, absl::StrFormat("%-28s %7d %10s %10s %10s %10s %12d\n", name, tier.time.count(),
                               DurationText(tier.time.sum_ns()), DurationText(tier.time.Percentile(50)),
                               DurationText(tier.time.Percentile(99)), DurationText(tier.time.max_ns()), tier.bytes));
  }
  std::vector<std::pair<absl::string_view, const Method*>> methods;
  for (const auto& [name, method] : methods_) methods.emplace_back(name, &method);
  std::sort(methods.begin(), methods.end(), [](const auto& a, const auto& b) {
    return a.second->total_ns != b.second->total_ns ? a.second->total_ns > b.second->total_ns : a.first < b.first;
  });
  if (methods.size() > kShownCompiled) methods.resize(kShownCompiled);
  absl::StrAppend(&text, absl::StrFormat("\n%10s %10s %9s  %s\n", "total", "longest", "bytes", "method"));
  for (const auto& [name, method] : methods) {
    const std::string tiers = absl::StrJoin(method->tiers, ", ", [](std::string* out, const auto& tier) {
      absl::StrAppend(out, tier.first, tier.second > 1 ? absl::StrCat(" x", tier.second) : "");
    });
    absl::StrAppend(&text,
                    absl::StrFormat("%10s %10s %9d  %s (%s)", DurationText(method->total_ns),
                                    DurationText(method->longest_ns), method->bytes, PrintableText(name), tiers));
    if (!method->caller.empty()) absl::StrAppend(&text, " for ", PrintableText(method->caller));
    absl::StrAppend(&text, "\n");
  }
  if (methods_.size() > kShownCompiled) {
    absl::StrAppend(&text, "and ", methods_.size() - kShownCompiled, " more methods\n");
  }
  if (beyond_ > 0) absl::StrAppend(&text, beyond_, " compilations of further methods are in the first table only\n");
  return text;
}

}  // namespace clrsampler
