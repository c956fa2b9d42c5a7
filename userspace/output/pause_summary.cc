#include "output/pause_summary.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/summary.h"

namespace clrsampler {
std::string PausePurpose(const Pause& pause) {
  std::string text(SuspendReasonText(pause.reason));
  if (pause.generation) absl::StrAppend(&text, " gen", *pause.generation);
  if (pause.kind != PauseKind::kOther) absl::StrAppend(&text, " ", PauseKindText(pause.kind));
  return text;
}

std::string PauseLine(const Pause& pause, MonotonicTime begin) {
  std::string what = PausePurpose(pause);
  if (pause.gc_reason) absl::StrAppend(&what, ", ", GcReasonText(pause.gc_reason));
  const uint64_t at = pause.requested.ns - std::min(pause.requested, begin).ns;
  std::string line = absl::StrFormat("%10.3f  %-38s pause %-9s stopped after %-9s by %u %s",
                                     static_cast<double>(at) / 1e9, what, DurationText(pause.pause_ns()),
                                     DurationText(pause.suspend_ns()), pause.tid, PrintableText(pause.comm));
  if (pause.aborted > 0) absl::StrAppend(&line, ", at the ", pause.aborted + 1, ". try");
  return line;
}

void PauseSummary::Add(const Pause& pause) {
  first_ = std::min(first_, pause.requested);
  for (Row* row : {&rows_[PausePurpose(pause)], &all_}) {
    row->pause.Add(pause.pause_ns());
    row->suspend.Add(pause.suspend_ns());
  }
  ++bars_[std::bit_width(pause.pause_ns() / 1000)];
}

std::string PauseSummary::Text(double seconds) const {
  if (all_.pause.count() == 0) return absl::StrFormat("no pause in %.1f s\n", seconds);
  std::string text = absl::StrFormat(
      "\n%d pauses in %.1f s, %s in all (%.2f %%), of which %s to stop the threads\n\n%-38s %7s %10s %10s %10s %10s "
      "%12s\n",
      all_.pause.count(), seconds, DurationText(all_.pause.sum_ns()),
      seconds > 0 ? static_cast<double>(all_.pause.sum_ns()) / 1e7 / seconds : 0.0, DurationText(all_.suspend.sum_ns()),
      "", "pauses", "p50", "p90", "p99", "max", "stop p99");
  for (const auto& [what, row] : rows_) {
    absl::StrAppend(&text,
                    absl::StrFormat("%-38s %7d %10s %10s %10s %10s %12s\n", what, row.pause.count(),
                                    DurationText(row.pause.Percentile(50)), DurationText(row.pause.Percentile(90)),
                                    DurationText(row.pause.Percentile(99)), DurationText(row.pause.max_ns()),
                                    DurationText(row.suspend.Percentile(99))));
  }
  absl::StrAppend(&text, "\n");
  // Powers of two of microseconds; empty ones at both ends are left out.
  const auto any = [](uint64_t count) { return count > 0; };
  const auto first = std::find_if(bars_.begin(), bars_.end(), any);
  const auto last = std::find_if(bars_.rbegin(), bars_.rend(), any).base();
  const uint64_t most = *std::max_element(first, last);
  for (auto bar = first; bar != last; ++bar) {
    constexpr uint64_t kWidth = 50;
    const uint64_t to_ns = (uint64_t{1} << std::min<ptrdiff_t>(bar - bars_.begin(), 40)) * 1000;
    absl::StrAppend(&text, absl::StrFormat("%12s %7d %s\n", absl::StrCat("< ", DurationText(to_ns)), *bar,
                                           std::string((*bar * kWidth + most - 1) / most, '#')));
  }
  return text;
}

}  // namespace clrsampler
