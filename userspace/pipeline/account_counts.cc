#include "pipeline/account_counts.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "capture/drop_counters.h"
#include "os/own_usage.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// A tenth is far more than chance and the ends of the recording make, once this many runs were due.
constexpr uint64_t kFewestRuns = 50;
constexpr double kLate = 0.9;

}  // namespace

void AccountCounts::Begin() { deltas_.Since("self_cpu_us", OwnCpuMicroseconds()); }

void AccountCounts::AddTo(Account& account, const CountingParts& parts) {
  main_loop_.Check();
  if (!parts.kernel.status().ok()) {
    parts.notices.Add("kernel_symbols", "",
                      absl::StrCat("kernel frames have no names: ", parts.kernel.status().message()),
                      HintOf(parts.kernel.status()));
  }
  const wire_counters counters = parts.capture.counters();
  for (int drop = 0; drop < WIRE_DROP_COUNT; ++drop) {
    // Known reasons are listed with 0 too: a reader sees that they were watched.
    const std::string name(DropName(static_cast<wire_drop>(drop)));
    account.lost[name] += deltas_.Since(name, counters.drops[drop]);
  }
  if (parts.hooks != nullptr) AddHooks(account, parts, counters);
  if (parts.waits != nullptr) AddWaits(account, parts, counters);
  if (parts.thread_creations != nullptr) AddThreadCreations(parts, counters);
  account.samples_expected = deltas_.Since("expected", parts.expected.samples());
  AddClock(account, parts);
  account.unwind = deltas_.Since("unwind", parts.unwinder.Counters());
  account.memory = deltas_.Since("memory", parts.memory.counters().ByName());
  account.memory.merge(deltas_.Since("memory_images", parts.precompiled.memory_counters().ByName()));
  if (parts.perf_maps != nullptr) {
    account.perf_maps = deltas_.Since("perf_maps", parts.perf_maps->counters().ByName());
  }
  if (parts.pdbs != nullptr) {
    const AssemblyPdbsCounters pdbs = parts.pdbs->counters();
    account.pdbs = deltas_.Since("pdbs", pdbs.ByName());
    account.pdbs["awaited"] = pdbs.awaited;  // which goes down again
    account.without_pdb = {parts.pdbs->without().begin(), parts.pdbs->without().end()};
  }
  if (parts.native_lines != nullptr) {
    account.native_lines = deltas_.Since("native_lines", parts.native_lines->counters().ByName());
  }
  if (parts.async != nullptr) account.async = deltas_.Since("async", parts.async->counters().ByName());
  if (parts.threads.any()) {
    const auto traces =
        deltas_.Since("traces", std::map<std::string, uint64_t>{{"read", counters.trace.read},
                                                                {"none", counters.trace.none},
                                                                {"unreadable", counters.trace.unreadable}});
    account.traces.insert(traces.begin(), traces.end());
  }
  account.bpf_map_bytes = parts.capture.map_bytes();
  account.notice_counts = deltas_.Since("notices", parts.notices.counts());
  account.notices = parts.notices.TakeKept();
  account.self_cpu_seconds = static_cast<double>(deltas_.Since("self_cpu_us", OwnCpuMicroseconds())) / 1e6;
  account.self_peak_rss_bytes = OwnPeakResidentBytes();
}

void AccountCounts::AddClock(Account& account, const CountingParts& parts) {
  account.clock_due = deltas_.Since("clock_due", parts.clock.due());
  account.clock_ran = deltas_.Since("clock_ran", parts.clock.ran());
  account.stolen_seconds = static_cast<double>(deltas_.Since("stolen", parts.clock.stolen_ns())) / 1e9;
  const auto due = static_cast<double>(account.clock_due);
  if (account.clock_due < kFewestRuns || static_cast<double>(account.clock_ran) >= kLate * due) return;
  parts.notices.Add(
      "late_clock", "",
      absl::StrFormat(
          "the sampling clock ran %d of the %d times that CPUs were busy for: what went on meanwhile was not "
          "sampled. The hypervisor says that it took %.1f s of CPU time away",
          account.clock_ran, account.clock_due, account.stolen_seconds),
      "a virtual machine whose host is busy or that is paused; shares of what was sampled still hold");
}

void AccountCounts::AddWaits(Account& account, const CountingParts& parts, const wire_counters& counters) {
  std::map<std::string, uint64_t> waits = parts.waits->counters().ByName();
  waits["ended"] = counters.waits;
  waits["short"] = counters.wait_short;
  waits["passed_over"] = counters.wait_passed_over;
  waits["kept"] = counters.wait_kept;
  waits["records_sent"] = counters.wait_records_sent;
  waits["outside"] = counters.wait_outside;
  waits["seen_anew"] = counters.wait_seen_anew;
  waits["records_lost"] = counters.wait_records_lost + parts.intake.wait_records_dropped();
  waits["stacks_lost"] = parts.intake.wait_stacks_dropped();
  account.waits = deltas_.Since("waits", waits);
  if (account.waits["seen_anew"] != 0) {
    parts.notices.Add("wait_table_full", "",
                      absl::StrCat("more threads than the kernel keeps the times of: some threads were forgotten and "
                                   "seen anew, ",
                                   account.waits["seen_anew"], " times. The time in between is missing"),
                      "Linux 6.4 or newer, or fewer processes: --pid");
  }
  if (account.waits["stacks_lost"] != 0) {
    parts.notices.Add(
        "wait_stacks_lost", "",
        absl::StrCat(account.waits["stacks_lost"],
                     " stacks of waits or of their wakers were lost: more came than the agent takes. Such "
                     "waits count, but have the mark [stack not taken] or no waker"),
        "a larger buffer: --ring-bytes");
  }
  if (account.waits["records_lost"] == 0) return;
  parts.notices.Add(
      "wait_records_lost", "",
      absl::StrCat(account.waits["records_lost"],
                   " records of waits were lost: more came than the agent takes. Their time is spread over the "
                   "others of their process"),
      "a larger buffer: --ring-bytes");
}

// The ring and the queue are those of hooks, so that what the queue drops may be an event of either.
void AccountCounts::AddThreadCreations(const CountingParts& parts, const wire_counters& counters) {
  const uint64_t lost = deltas_.Since("threads_lost", counters.threads_lost + parts.intake.runtime_events_dropped());
  if (lost == 0) return;
  parts.notices.Add(
      "thread_events_lost", "",
      absl::StrCat("up to ", lost, " new threads were not told: more came at a time than the agent could read"),
      "more CPU time for clrsampler");
}

void AccountCounts::AddHooks(Account& account, const CountingParts& parts, const wire_counters& counters) {
  const uint64_t lost = deltas_.Since("hook_lost", counters.hook_lost + parts.intake.runtime_events_dropped());
  const uint64_t filtered = deltas_.Since("hook_filtered", counters.hook_filtered);
  const uint64_t of_host = deltas_.Since("host_limited", parts.intake.runtime_events_limited());
  const uint64_t limited = deltas_.Since("hook_rate_limited", counters.hook_rate_limited) + of_host;
  account.pauses = deltas_.Since("pauses", parts.hooks->PauseCounts());
  account.jit = deltas_.Since("jit", parts.hooks->JitCounts());
  account.allocations = deltas_.Since("allocations", parts.hooks->AllocationCounts());
  account.rethrown = parts.hooks->rethrown();
  account.exceptions = deltas_.Since("exceptions", parts.hooks->ExceptionCounts());
  for (auto* counts : {&account.pauses, &account.jit, &account.allocations, &account.exceptions}) {
    if (counts->empty()) continue;
    (*counts)["events_lost"] = lost;
    (*counts)["events_of_others"] = filtered;
    (*counts)["events_limited"] = limited;
  }
  if (lost > 0) {
    parts.notices.Add("hook_events_lost", "",
                      absl::StrCat(lost,
                                   " events of runtimes were lost, and with them pauses or compilations: the agent "
                                   "read too slowly"),
                      "a larger buffer: --ring-bytes");
  }
  if (of_host > 0) {
    parts.notices.Add("host_events_limited", "",
                      absl::StrCat(of_host,
                                   " events of runtimes were left out: the programs of this host together collect and "
                                   "compile more often than is recorded"),
                      "clrsampler pauses --pid or clrsampler jit --pid record all of one process");
  }
}

}  // namespace clrsampler
