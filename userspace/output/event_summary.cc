#include "output/event_summary.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_format.h"
#include "output/allocation_summary.h"
#include "output/exception_summary.h"
#include "output/summary.h"

namespace clrsampler {
namespace {

using Rows = std::vector<AllocatedBytes>;

// `scale`: of a weight in the unit that the table's first column has.
void AddTable(const char* unit, const char* title, const Rows& rows, size_t limit, double scale, double seconds,
              std::string& text) {
  uint64_t total = 0;
  for (const AllocatedBytes& row : rows) total += row.bytes;
  absl::StrAppendFormat(&text, "%10s  %7s  %s\n", unit, "share", title);
  for (size_t i = 0; i < std::min(limit, rows.size()); ++i) {
    const auto weight = static_cast<double>(rows[i].bytes);
    absl::StrAppendFormat(&text, "%10.3f  %5.1f %%  %s\n", weight * scale / seconds,
                          100.0 * weight / static_cast<double>(std::max<uint64_t>(total, 1)),
                          PrintableText(rows[i].name));
  }
  if (rows.size() > limit) absl::StrAppendFormat(&text, "%21s and %d more\n", "", rows.size() - limit);
}

std::string ExceptionsText(const AllocationSummary& summary, const Account& account, double seconds, size_t rows) {
  const std::string seen = SeenExceptionsText(account);
  if (summary.bytes == 0) return absl::StrFormat("no exception was thrown in %.1f s\n", seconds);
  std::string text = absl::StrFormat("%d %s thrown in %.1f s, %.1f a second%s%s\n", summary.bytes,
                                     summary.bytes == 1 ? "exception was" : "exceptions were", seconds,
                                     static_cast<double>(summary.bytes) / seconds, seen.empty() ? "" : "; ", seen);
  AddTable("a second", "type", summary.types, rows, 1, seconds, text);
  AddTable("a second", "thrown in", summary.methods, rows, 1, seconds, text);
  return text;
}

// These stacks end in the method that waited, where others end in a type.
std::string ContentionText(const AllocationSummary& summary, const Account& account, double seconds, size_t rows) {
  const uint64_t waits = account.samples_written;
  if (waits == 0) return absl::StrFormat("no thread waited for a lock in %.1f s\n", seconds);
  std::string text = absl::StrFormat("%d %s for locks took %.3f s together, in %.1f s\n", waits,
                                     waits == 1 ? "wait" : "waits", static_cast<double>(summary.bytes) / 1e9, seconds);
  AddTable("ms/s", "waited in", summary.types, rows, 1e-6, seconds, text);
  return text;
}

}  // namespace

std::string EventSummaryText(ProfileView view, const FrameTable& frames, const StackTable& stacks,
                             const Account& account, size_t rows) {
  const AllocationSummary summary = SummarizeAllocations(frames, stacks);
  const double seconds = std::max(account.duration_seconds, 0.001);
  if (view == ProfileView::kAllocations) return AllocationSummaryText(summary, account, rows);
  if (view == ProfileView::kContention) return ContentionText(summary, account, seconds, rows);
  return ExceptionsText(summary, account, seconds, rows);
}

}  // namespace clrsampler
