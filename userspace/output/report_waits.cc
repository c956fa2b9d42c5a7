#include "output/report_waits.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "output/account_numbers.h"
#include "output/pool_summary.h"
#include "output/stats_json.h"
#include "output/wait_parts.h"
#include "output/wait_summary.h"
#include "profile/model_tables.h"
#include "profile/wait_kind.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The kinds of waits in which threads wait for each other.
bool IsLock(absl::string_view kind) {
  switch (WaitKindOf(kind).value_or(WaitKind::kOther)) {
    case WaitKind::kMonitor:
    case WaitKind::kLock:
    case WaitKind::kSemaphore:
    case WaitKind::kEvent:
    case WaitKind::kTaskWait:
    case WaitKind::kFutex:
      return true;
    default:
      return false;
  }
}

// The scale of a profile's weights.
struct Scale {
  uint64_t unit_ns;
  double seconds;  // 0: not known

  // Weights in a foreign file may add up to more than there are nanoseconds.
  uint64_t Ns(uint64_t weight) const {
    return std::min(weight, std::numeric_limits<uint64_t>::max() / unit_ns) * unit_ns;
  }
  double Threads(uint64_t weight) const { return seconds > 0 ? static_cast<double>(Ns(weight)) / 1e9 / seconds : 0; }
  // Half a thread that waits all the time is half of what a table can tell.
  double Tells(uint64_t weight) const { return std::min(1.0, Threads(weight)); }
};

// Recordings of waits count in microseconds, and windows of the service in nanoseconds.
absl::StatusOr<Scale> ScaleOf(const ProfileMeta& meta) {
  const double seconds = static_cast<double>(meta.recorded_ns()) / 1e9;
  switch (meta.unit) {
    case WeightUnit::kMicroseconds:
      return Scale{1000, seconds};
    case WeightUnit::kNanoseconds:
      return Scale{1, seconds};
    case WeightUnit::kSamples:
    case WeightUnit::kBytes:
      break;
  }
  return WithHint(absl::InvalidArgumentError(
                      absl::StrCat("a profile of waits counts in ", WeightUnitText(meta.unit), ", which is no time")),
                  "record one with --event wall or --event off-cpu");
}

ReportTable KindTable(const WaitSummary& summary, const Scale& scale) {
  ReportTable table{.id = "wait_kinds",
                    .title = "Waits: for what",
                    .columns = {{"seconds", "time"}, {"threads", "threads at a time"}, {"kind", "for"}},
                    .weight = 0.3};
  table.says.push_back(absl::StrFormat("Threads waited for %.2f s, %.1f of them at a time.",
                                       static_cast<double>(scale.Ns(summary.waited_us)) / 1e9,
                                       scale.Threads(summary.waited_us)));
  for (const WaitSite& kind : summary.kinds) {
    if (kind.kind == kRunning) continue;
    AddRow(table, {{DurationCell(scale.Ns(kind.microseconds)), NumberCell(scale.Threads(kind.microseconds)),
                    WordCell(kind.kind)},
                   scale.Tells(kind.microseconds)});
  }
  return table;
}

ReportTable SiteTable(const WaitSummary& summary, const Scale& scale, bool locks) {
  ReportTable table{.id = locks ? "lock_sites" : "wait_sites",
                    .title = locks ? "Waits of threads for each other" : "Other waits",
                    .columns = {{"seconds", "time"},
                                {"threads", "threads at a time"},
                                {"kind", "for"},
                                {"method", "in"},
                                {"waker", "ended by"}},
                    .weight = locks ? 0.9 : 0.5};
  std::vector<WaitSite> sites;
  std::copy_if(summary.sites.begin(), summary.sites.end(), std::back_inserter(sites),
               [&](const WaitSite& site) { return IsLock(site.kind) == locks; });
  // Threads of the runtime that wait all the time would stand in front of what the program does.
  std::stable_partition(sites.begin(), sites.end(), [](const WaitSite& site) { return site.managed; });
  for (const WaitSite& site : sites) {
    const std::string waker(absl::StripPrefix(site.waker, "woken by "));
    AddRow(table, {{DurationCell(scale.Ns(site.microseconds)), NumberCell(scale.Threads(site.microseconds)),
                    WordCell(site.kind), NameCell(site.method), waker.empty() ? WordCell("unknown") : NameCell(waker)},
                   site.managed ? scale.Tells(site.microseconds) : 0});
  }
  if (table.rows.empty()) {
    table.says.push_back(locks ? "No thread was seen to wait for another." : "No other wait was seen.");
  }
  return table;
}

// The pool's own fields that the account keeps. nullopt: it has none, or they fit no pool.
std::optional<PoolNumbers> PoolNumbersOf(const AccountNumbers& account) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  const char* const group = kPoolNumbersKey;
  const auto least = account.Find(group, "min_workers"), most = account.Find(group, "max_workers");
  const auto workers = account.Find(group, "workers");
  if (!least || !most || !workers || *most == 0 || *least > kMost || *most > kMost || *workers > kMost) {
    return std::nullopt;
  }
  PoolNumbers numbers{static_cast<uint32_t>(*least), static_cast<uint32_t>(*most), static_cast<uint32_t>(*workers),
                      account.Find(group, "queued")};
  const auto working = account.Find(group, "working"), wanted = account.Find(group, "wanted");
  if (working && wanted && *working <= kMost && *wanted <= kMost) {
    numbers.working = static_cast<uint32_t>(*working);
    numbers.wanted = static_cast<uint32_t>(*wanted);
  }
  return numbers;
}

ReportTable PoolTable(const PoolSummary& summary, double seconds) {
  ReportTable table{.id = "thread_pool",
                    .title = "Thread pool",
                    .columns = {{"workers", "workers"}, {"kind", "wait for"}, {"method", "in"}},
                    .weight = summary.starved()                           ? 1.0
                              : summary.verdict == PoolVerdict::kNotKnown ? 0.5
                                                                          : 0.2};
  std::string verdict = PoolSummaryText(summary, seconds, 0);
  verdict.resize(verdict.find('\n'));
  verdict[0] = absl::ascii_toupper(static_cast<unsigned char>(verdict[0]));
  table.says.push_back(verdict + ".");
  if (summary.numbers) {
    table.says.push_back(
        absl::StrFormat("By its own fields the pool has %d workers, keeps at least %d and may have %d.",
                        summary.numbers->workers, summary.numbers->min_workers, summary.numbers->max_workers));
  }
  for (const BlockedWorkers& site : summary.sites) {
    const double share = static_cast<double>(site.workers) / static_cast<double>(std::max<size_t>(summary.workers, 1));
    AddRow(table, {{CountCell(site.workers), WordCell(site.kind), NameCell(site.method)}, share});
  }
  return table;
}

// The share of the time that is an estimate, by the account of the run.
std::string EstimatedText(const ProfileModel& model) {
  const AccountNumbers account(model);
  if (!account.Has("waits")) return "";
  const uint64_t passed = account.Count("waits", "passed_over"), kept = account.Count("waits", "kept");
  if (passed == 0) return "Times are measured; each wait that is long enough for a stack is among them.";
  return absl::StrFormat(
      "%d of %d waits were passed over; their time counts with those that were told, so times of single places are "
      "estimates.",
      passed, passed + kept);
}

}  // namespace

absl::StatusOr<std::vector<ReportTable>> WaitTables(const ProfileModel& model) {
  ASSIGN_OR_RETURN(const Scale scale, ScaleOf(model.meta));
  ModelTables tables;
  if (absl::Status filled = tables.Fill(model); !filled.ok()) return filled;
  const WaitSummary summary = SummarizeWaits(tables.frames(), tables.stacks());
  std::vector<ReportTable> made;
  if (model.meta.view == ProfileView::kWall) {
    made.push_back(PoolTable(SummarizePool(tables.frames(), tables.stacks(), tables.samples(), tables.began(),
                                           PoolNumbersOf(AccountNumbers(model))),
                             scale.seconds));
  }
  made.push_back(SiteTable(summary, scale, true));
  made.push_back(SiteTable(summary, scale, false));
  made.push_back(KindTable(summary, scale));
  if (const std::string estimated = EstimatedText(model); !estimated.empty()) made.back().says.push_back(estimated);
  return made;
}

}  // namespace clrsampler
