#include "output/pool_summary.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/article.h"
#include "output/summary.h"
#include "output/wait_parts.h"
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

struct Worker {
  double running_us = 0, idle_us = 0, blocked_us = 0;
  uint64_t first_ns = kNoTime;
  std::map<std::pair<std::string, std::string>, double> sites;  // kind and method

  double all_us() const { return running_us + idle_us + blocked_us; }
};

bool IsIn(const FrameTable& frames, std::span<const FrameId> stack, absl::string_view method) {
  return std::any_of(stack.begin(), stack.end(),
                     [&](FrameId id) { return absl::StrContains(frames.at(id).text, method); });
}

bool IsOfWorker(const FrameTable& frames, std::span<const FrameId> stack, const SampleLog::Thread& thread) {
  if (thread.tid == 0) return false;
  if (IsIn(frames, stack, kWorkerStart)) return true;
  return thread.name == kWorkerName &&
         std::any_of(stack.begin(), stack.end(), [&](FrameId id) { return IsAwaiter(frames.at(id)); });
}

void Add(const FrameTable& frames, std::span<const FrameId> stack, const SampleLog::Row& row, Worker& worker) {
  worker.first_ns = std::min(worker.first_ns, row.time_ns);
  const auto microseconds = static_cast<double>(row.weight);
  const WaitParts parts = DivideWait(frames, stack);
  const std::optional<WaitKind> kind = WaitKindOf(parts.kind);
  if (IsIn(frames, stack, kIdle)) {
    worker.idle_us += microseconds;
  } else if (!kind || *kind == WaitKind::kRunnable || *kind == WaitKind::kSuspended) {
    worker.running_us += microseconds;
  } else {
    worker.blocked_us += microseconds;
    const std::vector<FrameId> innermost_first(parts.functions.rbegin(), parts.functions.rend());
    worker.sites[{std::string(parts.kind), OwnMethod(frames, innermost_first)}] += microseconds;
  }
}

// No worker has time for new work. Either the pool knows, and lets more workers come, one after the other. Or work is
// left lying.
bool IsStarved(const PoolSummary& summary) {
  if (summary.idle != 0 ||
      static_cast<double>(summary.blocked) < kStarvedShare * static_cast<double>(summary.workers)) {
    return false;
  }
  if (summary.came > 0) return true;
  return summary.workers > 0 && summary.numbers && summary.numbers->queued.value_or(0) > 0;
}

// "; the pool adds one every 0.5 s, 130 work items are queued, and it may have 64 workers"
std::string Outlook(const PoolSummary& summary, double seconds) {
  std::string text;
  if (summary.came > 0) {
    absl::StrAppendFormat(&text, "; the pool adds one every %.1f s", seconds / static_cast<double>(summary.came));
  }
  if (!summary.numbers) return text;
  const PoolNumbers& numbers = *summary.numbers;
  if (numbers.queued) {
    absl::StrAppendFormat(&text, "%s %d work item%s queued", summary.came > 0 ? "," : ";", *numbers.queued,
                          *numbers.queued == 1 ? " is" : "s are");
  }
  if (numbers.workers >= numbers.max_workers) {
    absl::StrAppendFormat(&text, "; it has all the %d workers that it may have", numbers.max_workers);
  } else {
    absl::StrAppendFormat(&text, "; it may have %d workers", numbers.max_workers);
  }
  return text;
}

}  // namespace

PoolSummary SummarizePool(const FrameTable& frames, const StackTable& stacks, const SampleLog& samples,
                          MonotonicTime began, const std::optional<PoolNumbers>& numbers) {
  std::map<uint32_t, Worker> workers;  // by tid
  samples.ForEach([&](const SampleLog::Row& row) {
    const std::span<const FrameId> stack = stacks.stack(row.stack).frames;
    const SampleLog::Thread& thread = samples.threads()[row.thread];
    if (IsOfWorker(frames, stack, thread)) Add(frames, stack, row, workers[thread.tid]);
  });
  PoolSummary summary;
  std::map<std::pair<std::string, std::string>, size_t> sites;
  for (const auto& [tid, worker] : workers) {
    ++summary.workers;
    if (worker.first_ns != kNoTime && worker.first_ns > began.ns + kComesAfterNs) ++summary.came;
    if (worker.blocked_us >= kBlockedShare * worker.all_us()) {
      ++summary.blocked;
      const auto most = std::max_element(worker.sites.begin(), worker.sites.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      if (most != worker.sites.end()) ++sites[most->first];
    } else if (worker.idle_us > worker.running_us + worker.blocked_us) {
      ++summary.idle;
    } else {
      ++summary.running;
    }
  }
  for (const auto& [site, count] : sites) summary.sites.push_back({site.first, site.second, count});
  std::sort(summary.sites.begin(), summary.sites.end(), [](const BlockedWorkers& a, const BlockedWorkers& b) {
    return std::tie(b.workers, a.kind, a.method) < std::tie(a.workers, b.kind, b.method);
  });
  summary.numbers = numbers;
  summary.starved = IsStarved(summary);
  return summary;
}

std::string PoolSummaryText(const PoolSummary& summary, double seconds, size_t rows) {
  if (summary.workers == 0) {
    return absl::StrFormat("no worker of the thread pool did anything in %.1f s\n", seconds);
  }
  std::string text;
  if (summary.starved) {
    absl::StrAppendFormat(&text, "the thread pool is starved: %d of %d workers wait", summary.blocked, summary.workers);
    if (!summary.sites.empty()) {
      absl::StrAppendFormat(&text, ", %d of them in %s below %s", summary.sites[0].workers,
                            WithArticle(summary.sites[0].kind), PrintableText(summary.sites[0].method));
    }
    absl::StrAppend(&text, Outlook(summary, seconds), "\n");
  } else {
    absl::StrAppendFormat(&text, "the thread pool is not starved: of %d workers %d worked, %d were idle and %d waited",
                          summary.workers, summary.running, summary.idle, summary.blocked);
    absl::StrAppend(&text, Outlook(summary, seconds), "\n");
  }
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
