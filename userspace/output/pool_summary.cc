#include "output/pool_summary.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/article.h"
#include "output/summary.h"
#include "output/wait_parts.h"
#include "profile/method_text.h"
#include "profile/wait_kind.h"
#include "symbols/awaits.h"

namespace clrsampler {
namespace {

// The method that every worker's stack begins with, unless the awaiters of its work stand there.
constexpr absl::string_view kWorkerStart = "System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart";
// The name that the runtime gives to these threads.
constexpr absl::string_view kWorkerName = ".NET TP Worker";
// The methods in which they wait for work, and spin for it first.
constexpr absl::string_view kIdle = "System.Threading.LowLevelLifoSemaphore.Wait";
// A worker that shows up later than this after the beginning is new.
constexpr uint64_t kComesAfterNs = 500'000'000;
constexpr double kBlockedShare = 0.9;
// If this share of all workers waits, the pool counts as starved.
constexpr double kStarvedShare = 0.8;

using SitesByName = std::map<std::pair<std::string, std::string>, double>;  // kind and method

struct Worker {
  double running_us = 0, idle_us = 0, blocked_us = 0;
  uint64_t first_ns = kNoTime;
  uint64_t first_blocked_ns = kNoTime, last_idle_ns = 0;
  SitesByName sites;

  bool is_idle() const { return idle_us > running_us + blocked_us; }
  bool went_idle() const { return idle_us > 0 && last_idle_ns >= first_blocked_ns; }
  // A worker that got its first work meanwhile is judged from then on.
  bool is_blocked() const {
    const double judged_us = running_us + blocked_us + (went_idle() ? idle_us : 0);
    return blocked_us > 0 && blocked_us >= kBlockedShare * judged_us;
  }
};
using WorkersByThread = std::map<std::pair<uint32_t, uint32_t>, Worker>;  // pid and tid

bool IsIn(const FrameTable& frames, std::span<const FrameId> stack, absl::string_view method) {
  return std::any_of(stack.begin(), stack.end(), [&](FrameId id) { return HasMethod(frames.at(id).text, method); });
}

// `own`: the thread's own functions, without those of the one that ended its wait.
bool IsOfWorker(const FrameTable& frames, std::span<const FrameId> own, const SampleLog::Thread& thread) {
  if (thread.tid == 0) return false;
  if (IsIn(frames, own, kWorkerStart)) return true;
  return thread.name == kWorkerName &&
         std::any_of(own.begin(), own.end(), [&](FrameId id) { return IsAwaiter(frames.at(id)); });
}

void Add(const FrameTable& frames, const WaitParts& parts, const SampleLog::Row& row, Worker& worker) {
  worker.first_ns = std::min(worker.first_ns, row.time_ns);
  const auto microseconds = static_cast<double>(row.weight);
  const std::optional<WaitKind> kind = WaitKindOf(parts.kind);
  if (IsIn(frames, parts.functions, kIdle)) {
    worker.idle_us += microseconds;
    worker.last_idle_ns = std::max(worker.last_idle_ns, row.time_ns);
  } else if (!kind || *kind == WaitKind::kRunnable || *kind == WaitKind::kSuspended) {
    worker.running_us += microseconds;
  } else {
    worker.blocked_us += microseconds;
    worker.first_blocked_ns = std::min(worker.first_blocked_ns, row.time_ns);
    const std::vector<FrameId> innermost_first(parts.functions.rbegin(), parts.functions.rend());
    worker.sites[{std::string(parts.kind), OwnMethod(frames, innermost_first)}] += microseconds;
  }
}

bool IsMost(size_t part, size_t all) {
  return all > 0 && static_cast<double>(part) >= kStarvedShare * static_cast<double>(all);
}

// Up to its minimum the pool adds a worker at once, whenever there is work. Only those beyond it come because work was
// left lying.
size_t CameBeyondMinimum(const PoolSummary& summary) {
  if (!summary.numbers || summary.numbers->workers <= summary.numbers->min_workers) return 0;
  return std::min<size_t>(summary.came, summary.numbers->workers - summary.numbers->min_workers);
}

// Starved: no worker has time for new work. Either the pool knows, and lets more workers come, one after the other. Or
// work is left lying. Idle workers are no help if the pool lets no more of them work than do: they keep for 20 s. Then
// the others have to be held, since a worker that finds no work was idle in between.
PoolVerdict Judged(const PoolSummary& summary) {
  using enum PoolVerdict;
  if (summary.processes > 1) return kSeveral;
  if (summary.idle > 0) {
    const bool helpless = summary.numbers && summary.numbers->leaves_work_to_none();
    return helpless && IsMost(summary.held, summary.workers - summary.idle) ? kStarved : kNotStarved;
  }
  if (!IsMost(summary.blocked, summary.workers)) return kNotStarved;
  if (!summary.numbers) return summary.came > 0 ? kNotKnown : kNotStarved;
  return CameBeyondMinimum(summary) > 0 || summary.numbers->queued.value_or(0) > 0 ? kStarved : kNotStarved;
}

// "; the pool adds one every 0.5 s, 130 work items are queued, and it may have 64 workers"
std::string Outlook(const PoolSummary& summary, double seconds) {
  if (!summary.numbers) return "";
  std::string text;
  const PoolNumbers& numbers = *summary.numbers;
  const size_t came = CameBeyondMinimum(summary);
  if (summary.starved() && summary.idle > 0) {
    absl::StrAppendFormat(&text, "; the pool lets %d work for now, and %d are idle", *numbers.wanted, summary.idle);
  }
  if (came > 0) {
    absl::StrAppendFormat(&text, "; the pool adds one every %.1f s", seconds / static_cast<double>(came));
  }
  if (numbers.queued) {
    absl::StrAppendFormat(&text, "%s %d work item%s queued", came > 0 ? "," : ";", *numbers.queued,
                          *numbers.queued == 1 ? " is" : "s are");
  }
  if (numbers.workers >= numbers.max_workers) {
    absl::StrAppendFormat(&text, "; it has all the %d workers that it may have", numbers.max_workers);
  } else {
    absl::StrAppendFormat(&text, "; it may have %d workers", numbers.max_workers);
  }
  return text;
}

// nullopt: the samples have no threads.
std::optional<WorkersByThread> WorkersOf(const FrameTable& frames, const StackTable& stacks, const SampleLog& samples) {
  WorkersByThread workers;
  bool threads = samples.threads().empty();
  samples.ForEach([&](const SampleLog::Row& row) {
    const WaitParts parts = DivideWait(frames, stacks.stack(row.stack).frames);
    const SampleLog::Thread& thread = samples.threads()[row.thread];
    threads |= thread.tid != 0;
    if (IsOfWorker(frames, parts.functions, thread)) Add(frames, parts, row, workers[{thread.pid, thread.tid}]);
  });
  if (!threads) return std::nullopt;
  return workers;
}

std::string Verdict(const PoolSummary& summary, double seconds) {
  const auto with_counts = [&](absl::string_view verdict) {
    return absl::StrFormat("%s: of %d workers %d worked, %d were idle and %d waited", verdict, summary.workers,
                           summary.running, summary.idle, summary.blocked);
  };
  switch (summary.verdict) {
    case PoolVerdict::kNoThreads:
      return "the profile does not tell threads apart, so nothing is known of a thread pool";
    case PoolVerdict::kSeveral:
      return absl::StrFormat(
          "%d processes have workers of a thread pool; a recording with --pid of one judges its pool",
          summary.processes);
    case PoolVerdict::kNotKnown:
      return absl::StrFormat("%s; %d of them came meanwhile, and the pool's own numbers were not read",
                             with_counts("whether the thread pool starves is not known"), summary.came);
    case PoolVerdict::kStarved:
      break;
    case PoolVerdict::kNotStarved:
      if (summary.workers == 0) return absl::StrFormat("no worker of the thread pool did anything in %.1f s", seconds);
      return absl::StrCat(with_counts("the thread pool is not starved"), Outlook(summary, seconds));
  }
  std::string text =
      absl::StrFormat("the thread pool is starved: %d of %d workers wait", summary.blocked, summary.workers);
  if (!summary.sites.empty()) {
    absl::StrAppendFormat(&text, ", %d of them in %s below %s", summary.sites[0].workers,
                          WithArticle(summary.sites[0].kind), PrintableText(summary.sites[0].method));
  }
  return absl::StrCat(text, Outlook(summary, seconds));
}

}  // namespace

PoolSummary SummarizePool(const FrameTable& frames, const StackTable& stacks, const SampleLog& samples,
                          MonotonicTime began, const std::optional<PoolNumbers>& numbers) {
  PoolSummary summary;
  summary.numbers = numbers;
  const std::optional<WorkersByThread> workers = WorkersOf(frames, stacks, samples);
  if (!workers) {
    summary.verdict = PoolVerdict::kNoThreads;
    return summary;
  }
  std::map<std::pair<std::string, std::string>, size_t> sites;
  uint32_t last_pid = 0;
  for (const auto& [thread, worker] : *workers) {
    if (summary.workers == 0 || thread.first != last_pid) ++summary.processes;
    last_pid = thread.first;
    ++summary.workers;
    if (worker.first_ns != kNoTime && worker.first_ns > began.ns + kComesAfterNs) ++summary.came;
    if (worker.is_idle()) {
      ++summary.idle;
    } else if (worker.is_blocked()) {
      ++summary.blocked;
      summary.held += worker.went_idle() ? 0 : 1;
      const auto most = std::max_element(worker.sites.begin(), worker.sites.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      if (most != worker.sites.end()) ++sites[most->first];
    } else {
      ++summary.running;
    }
  }
  for (const auto& [site, count] : sites) summary.sites.push_back({site.first, site.second, count});
  std::sort(summary.sites.begin(), summary.sites.end(), [](const BlockedWorkers& a, const BlockedWorkers& b) {
    return std::tie(b.workers, a.kind, a.method) < std::tie(a.workers, b.kind, b.method);
  });
  summary.verdict = Judged(summary);
  return summary;
}

std::string PoolSummaryText(const PoolSummary& summary, double seconds, size_t rows) {
  std::string text = absl::StrCat(Verdict(summary, seconds), "\n");
  if (summary.sites.empty()) return text;
  absl::StrAppendFormat(&text, "%8s  %-13s  %s\n", "workers", "wait for", "in");
  for (size_t i = 0; i < std::min(rows, summary.sites.size()); ++i) {
    const BlockedWorkers& site = summary.sites[i];
    absl::StrAppendFormat(&text, "%8d  %-13s  %s\n", site.workers, site.kind, PrintableText(site.method));
  }
  if (summary.sites.size() > rows) absl::StrAppendFormat(&text, "%8s  and %d more\n", "", summary.sites.size() - rows);
  return text;
}

}  // namespace clrsampler
