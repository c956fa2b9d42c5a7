#include "output/summary.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace clrsampler {
namespace {

constexpr size_t kShownMethods = 5;
constexpr size_t kShownBytes = 110;     // of a name: one line of a wide terminal
constexpr double kMuchNameless = 0.05;  // of a profile: worth a line

// The end tells more than the beginning: that is where the method is.
std::string Shortened(std::string text) {
  if (text.size() <= kShownBytes) return text;
  size_t begin = text.size() - kShownBytes;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;  // whole characters
  return absl::StrCat("...", text.substr(begin));
}

std::string Share(const FrameCounts& counts) {
  const uint64_t all = counts.named + counts.unnamed;
  if (all == 0) return "none seen";
  return absl::StrFormat("%.1f %% of %d named", 100.0 * static_cast<double>(counts.named) / static_cast<double>(all),
                         all);
}

// "runtimes: 120 pauses, 30 methods compiled in 0.016 s"; empty where nothing of that was watched, or was.
std::string RuntimeText(const Account& account) {
  const auto of = [](const std::map<std::string, uint64_t>& counts, const char* name) {
    const auto found = counts.find(name);
    return found == counts.end() ? uint64_t{0} : found->second;
  };
  const uint64_t pauses = of(account.pauses, "pauses"), compiled = of(account.jit, "compilations");
  if (pauses == 0 && compiled == 0) return "";
  return absl::StrFormat("runtimes: %d pauses; %d methods compiled in %.3f s", pauses, compiled,
                         static_cast<double>(of(account.jit, "total_us")) / 1e6);
}

// "perf maps: switched on in 3 processes, off again in 3"; empty without --enable-perf-map.
std::string PerfMapText(const Account& account) {
  if (account.perf_maps.empty()) return "";
  const auto of = [&](const char* name) {
    const auto found = account.perf_maps.find(name);
    return found == account.perf_maps.end() ? uint64_t{0} : found->second;
  };
  std::string text = absl::StrFormat("perf maps: switched on in %d %s, off again in %d", of("enabled"),
                                     of("enabled") == 1 ? "process" : "processes", of("ended"));
  if (of("over_cap") > 0) absl::StrAppendFormat(&text, ", %d of them for their size or time", of("over_cap"));
  return text;
}

// "63.1 % of the managed frames"
std::string ShareText(uint64_t part, const FrameCounts& counts, absl::string_view of) {
  const uint64_t all = std::max<uint64_t>(counts.named + counts.unnamed, 1);
  return absl::StrFormat("%.1f %% of the %s frames", 100.0 * static_cast<double>(part) / static_cast<double>(all), of);
}

// "lines: 63.1 % of the managed frames, 20.0 % of the native frames have one; no PDB: System.Linq and 30 more
// (docs/lines.md)"; empty without --lines.
std::string LinesText(const Account& account) {
  if (account.pdbs.empty()) return "";
  std::vector<std::string> shares;
  if (account.managed.named + account.managed.unnamed > 0 || account.native_lines.empty()) {
    shares.push_back(ShareText(account.frames_with_line, account.managed, "managed"));
  }
  if (!account.native_lines.empty()) {
    shares.push_back(ShareText(account.native_frames_with_line, account.native, "native"));
  }
  std::string text = absl::StrCat("lines: ", absl::StrJoin(shares, ", "), " have one");
  constexpr size_t kShown = 3;
  const size_t shown = std::min(kShown, account.without_pdb.size());
  const auto without = account.pdbs.find("without");
  if (shown == 0 || without == account.pdbs.end()) return text;
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, i == 0 ? "; no PDB: " : ", ", PrintableText(account.without_pdb[i]));
  }
  if (without->second > shown) absl::StrAppend(&text, " and ", without->second - shown, " more");
  return absl::StrCat(text, " (--pdb-path, --symbol-server)");
}

// The server that would name the runtime's functions. Empty where few are nameless, or servers were asked.
std::string NamelessRuntimeText(const Account& account, const HottestMethods& hottest) {
  if (hottest.total == 0 || !account.symbol_server.empty()) return "";
  const double share = static_cast<double>(hottest.nameless_runtime) / static_cast<double>(hottest.total);
  if (share <= kMuchNameless) return "";
  return absl::StrFormat(
      "%5.1f %%  in functions of the .NET runtime without a name: --symbol-server microsoft has names "
      "of Microsoft's builds\n",
      100.0 * share);
}

std::string SamplesText(const Account& account, const HottestMethods& hottest) {
  std::string text = absl::StrFormat("%d samples in %.1f s", account.samples_written, account.duration_seconds);
  absl::StrAppend(&text, " (", account.samples_expected, " expected from CPU time), ", account.processes.size(),
                  account.processes.size() == 1 ? " process" : " processes");
  if (account.samples_set_aside > 0) {
    absl::StrAppend(&text, "; ", account.samples_set_aside, " samples are no part of this view");
  }
  uint64_t lost = 0;
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : account.lost) {
    lost += count;
    if (count > 0) reasons.push_back(absl::StrCat(count, " ", reason));
  }
  if (lost > 0) absl::StrAppend(&text, "; lost: ", absl::StrJoin(reasons, ", "));
  text += '\n';
  absl::StrAppend(&text, "frames: managed ", Share(account.managed), "; native ", Share(account.native), "; kernel ",
                  Share(account.kernel), "\n");
  if (const std::string said = RuntimeText(account); !said.empty()) absl::StrAppend(&text, said, "\n");
  if (const std::string said = PerfMapText(account); !said.empty()) absl::StrAppend(&text, said, "\n");
  if (const std::string said = LinesText(account); !said.empty()) absl::StrAppend(&text, said, "\n");
  absl::StrAppend(&text, "stacks: ", account.stacks_complete, " complete, ", account.stacks_truncated, " truncated, ",
                  account.stacks_broken, " broken\n");
  if (!account.unnamed_reasons.empty()) {
    std::vector<std::pair<uint64_t, std::string>> unnamed;
    for (const auto& [reason, count] : account.unnamed_reasons) unnamed.emplace_back(count, reason);
    std::sort(unnamed.rbegin(), unnamed.rend());
    const size_t shown = std::min<size_t>(unnamed.size(), 3);
    absl::StrAppend(&text, "without a name: ");
    for (size_t i = 0; i < shown; ++i) {
      absl::StrAppend(&text, i > 0 ? ", " : "", unnamed[i].first, " ", PrintableText(unnamed[i].second));
    }
    if (unnamed.size() > shown)
      absl::StrAppend(&text, ", and ", unnamed.size() - shown, " kinds more (--stats has all)");
    absl::StrAppend(&text, "\n");
  }
  for (size_t i = 0; i < std::min(kShownMethods, hottest.methods.size()); ++i) {
    const MethodWeight& method = hottest.methods[i];
    if (method.self == 0) break;
    absl::StrAppendFormat(
        &text, "%5.1f %%  %s\n",
        100.0 * static_cast<double>(method.self) / static_cast<double>(std::max<uint64_t>(hottest.total, 1)),
        Shortened(PrintableText(method.name)));
  }
  absl::StrAppend(&text, NamelessRuntimeText(account, hottest));
  return text;
}

}  // namespace

std::string PrintableText(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (byte >= 0x20 && byte != 0x7f && !c1) {
      out += text[i];
      continue;
    }
    out += '?';
    if (c1) ++i;
  }
  return out;
}

std::string SummaryText(const Account& account, const HottestMethods& hottest) {
  std::string text = hottest.instead.empty() ? SamplesText(account, hottest) : hottest.instead;
  for (const Notice& notice : account.notices) {
    absl::StrAppend(&text, "note: ", PrintableText(notice.message), "\n");
    if (!notice.hint.empty()) absl::StrAppend(&text, "  hint: ", PrintableText(notice.hint), "\n");
  }
  absl::StrAppend(
      &text, absl::StrFormat("cost: %.3f s of CPU, %.1f MiB of memory, %.1f MiB of BPF maps\n",
                             account.self_cpu_seconds, static_cast<double>(account.self_peak_rss_bytes) / 1048576.0,
                             static_cast<double>(account.bpf_map_bytes) / 1048576.0));
  if (!hottest.more.empty()) absl::StrAppend(&text, "more: ", PrintableText(hottest.more), "\n");
  return text;
}

}  // namespace clrsampler
