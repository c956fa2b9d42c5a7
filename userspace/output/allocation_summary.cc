#include "output/allocation_summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/seen_share.h"
#include "output/summary.h"

namespace clrsampler {
namespace {

std::vector<AllocatedBytes> Sorted(const absl::flat_hash_map<std::string, uint64_t>& sums) {
  std::vector<AllocatedBytes> rows;
  for (const auto& [name, bytes] : sums) rows.push_back({name, bytes});
  std::sort(rows.begin(), rows.end(), [](const AllocatedBytes& a, const AllocatedBytes& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  return rows;
}

// The share of it that was seen, and where the rest is known from.
std::string SeenText(const Account& account) {
  if (CountOf(account.events, "lost") > 0) return "more were, since events were lost";
  if (CountOf(account.events, "damaged") > 0) return "more were, since events were damaged";
  for (const char* const missing : {"failed", "broke_off", "not_taken"}) {
    if (CountOf(account.events, missing) > 0) return "more may have been, since the last events are missing";
  }
  const SeenShare share =
      SeenShareOf(CountOf(account.allocations, "estimated_bytes"), CountOf(account.allocations, "bytes"),
                  CountOf(account.allocations, "counted_bytes"));
  if (share.all()) return "every 100 KB of them was seen";
  std::string text = absl::StrFormat("%.0f %% of them were seen", share.seen);
  if (share.counted > 0) absl::StrAppendFormat(&text, ", %.0f %% were counted by the runtime", share.counted);
  if (share.estimated > 0) absl::StrAppendFormat(&text, ", %.0f %% are estimated by CPU time", share.estimated);
  return text + ": the probes are detached where they would cost more than --hook-budget";
}

void AddTable(const char* title, const std::vector<AllocatedBytes>& rows, size_t limit, uint64_t total, double seconds,
              std::string& text) {
  absl::StrAppendFormat(&text, "%10s  %7s  %s\n", "MB/s", "share", title);
  for (size_t i = 0; i < std::min(limit, rows.size()); ++i) {
    const auto bytes = static_cast<double>(rows[i].bytes);
    absl::StrAppendFormat(&text, "%10.3f  %5.1f %%  %s\n", bytes / 1e6 / seconds,
                          100.0 * bytes / static_cast<double>(std::max<uint64_t>(total, 1)),
                          PrintableText(rows[i].name));
  }
  if (rows.size() > limit) absl::StrAppendFormat(&text, "%21s and %d more\n", "", rows.size() - limit);
}

}  // namespace

AllocationSummary SummarizeAllocations(const FrameTable& frames, const StackTable& stacks) {
  absl::flat_hash_map<std::string, uint64_t> types, methods;
  AllocationSummary summary;
  for (StackId id = 0; id < stacks.size(); ++id) {
    const std::span<const FrameId> stack = stacks.stack(id).frames;
    const uint64_t bytes = stacks.count(id);
    if (stack.empty() || bytes == 0) continue;
    summary.bytes += bytes;
    types[frames.at(stack.back()).text] += bytes;
    if (stack.size() > 1) methods[frames.at(stack[stack.size() - 2]).text] += bytes;
  }
  summary.types = Sorted(types);
  summary.methods = Sorted(methods);
  return summary;
}

std::string AllocationSummaryText(const AllocationSummary& summary, const Account& account, size_t rows) {
  const double seconds = std::max(account.duration_seconds, 0.001);
  if (summary.bytes == 0) {
    return absl::StrFormat("nothing was seen to be allocated in %.1f s: the collector tells of each 100 KB\n", seconds);
  }
  std::string text =
      absl::StrFormat("%.1f MB were allocated in %.1f s, %.1f MB/s; %s\n", static_cast<double>(summary.bytes) / 1e6,
                      seconds, static_cast<double>(summary.bytes) / 1e6 / seconds, SeenText(account));
  AddTable("type", summary.types, rows, summary.bytes, seconds, text);
  AddTable("allocated in", summary.methods, rows, summary.bytes, seconds, text);
  return text;
}

}  // namespace clrsampler
