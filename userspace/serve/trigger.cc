#include "serve/trigger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "output/durations.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kHint[] =
    "write it as 'pause>100ms', 'suspend-delay>20ms', 'cpu>80% for 10s', 'alloc>500MB/s' or "
    "'wait:monitor+lock>50% for 10s'";

// "100ms", "1.5s", "2m"; nullopt: none of these, or nothing.
std::optional<uint64_t> ParseTime(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  double unit_ns = 0;
  if (absl::ConsumeSuffix(&text, "us")) {
    unit_ns = 1e3;
  } else if (absl::ConsumeSuffix(&text, "ms")) {
    unit_ns = 1e6;
  } else if (absl::ConsumeSuffix(&text, "s")) {
    unit_ns = 1e9;
  } else if (absl::ConsumeSuffix(&text, "m")) {
    unit_ns = 60e9;
  }
  double value = 0;
  if (unit_ns == 0 || !absl::SimpleAtod(text, &value) || !std::isfinite(value) || value <= 0) return std::nullopt;
  const double ns = value * unit_ns;
  if (ns < 1 || ns > 24 * 3600e9) return std::nullopt;
  return static_cast<uint64_t>(ns);
}

// Bytes of "500MB/s", also KB and GB, and KiB, MiB and GiB; nullopt: none of these, or nothing.
std::optional<double> ParseByteRate(absl::string_view text) {
  constexpr std::pair<absl::string_view, double> kUnits[] = {
      {"KiB/s", 1024.0}, {"MiB/s", 1048576.0}, {"GiB/s", 1073741824.0}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}};
  for (const auto& [unit, bytes] : kUnits) {
    absl::string_view number = text;
    if (!absl::ConsumeSuffix(&number, unit)) continue;
    double value = 0;
    if (!absl::SimpleAtod(number, &value) || !std::isfinite(value) || value <= 0 || value > 1e12) return std::nullopt;
    return value * bytes;
  }
  return std::nullopt;
}

// "80%" as 0.8; nullopt: none of these, or nothing.
std::optional<double> ParsePercent(absl::string_view text) {
  double percent = 0;
  if (!absl::ConsumeSuffix(&text, "%") || !absl::SimpleAtod(text, &percent) || !std::isfinite(percent) ||
      percent <= 0 || percent > 1e6) {
    return std::nullopt;
  }
  return percent / 100;
}

// Kinds of "monitor+task-wait"; nullopt: one of them is none.
std::optional<std::vector<WaitKind>> ParseWaitKinds(absl::string_view text) {
  std::vector<WaitKind> kinds;
  for (const absl::string_view word : absl::StrSplit(text, '+')) {
    const std::optional<WaitKind> kind =
        WaitKindOf(absl::StrReplaceAll(absl::StripAsciiWhitespace(word), {{"-", " "}}));
    if (!kind) return std::nullopt;
    kinds.push_back(*kind);
  }
  return kinds;
}

absl::Status Bad(absl::string_view text, absl::string_view why) {
  return WithHint(absl::InvalidArgumentError(absl::StrCat("--trigger ", text, ": ", why)), kHint);
}

std::string PauseWord(const WindowPause& pause) {
  if (!pause.generation) return pause.kind;
  return absl::StrCat("gen", *pause.generation, " ", pause.kind);
}

}  // namespace

absl::StatusOr<Trigger> ParseTrigger(absl::string_view text) {
  Trigger trigger;
  trigger.text = std::string(absl::StripAsciiWhitespace(text));
  const size_t sign = trigger.text.find('>');
  if (sign == std::string::npos) return Bad(trigger.text, "there is no > in it");
  absl::string_view what = absl::StripAsciiWhitespace(absl::string_view(trigger.text).substr(0, sign));
  absl::string_view value = absl::StripAsciiWhitespace(absl::string_view(trigger.text).substr(sign + 1));
  std::optional<uint64_t> for_ns;
  if (const size_t word = value.find(" for "); word != absl::string_view::npos) {
    for_ns = ParseTime(value.substr(word + 5));
    if (!for_ns) return Bad(trigger.text, "the text behind 'for' is no time");
    value = absl::StripAsciiWhitespace(value.substr(0, word));
  }
  if (what == "alloc") {
    const std::optional<double> rate = ParseByteRate(value);
    if (!rate) return Bad(trigger.text, "a rate of allocation is given in bytes a second");
    trigger.kind = TriggerKind::kAllocations;
    trigger.more_than_rate = *rate;
    trigger.for_ns = for_ns.value_or(0);
    return trigger;
  }
  if (absl::ConsumePrefix(&what, "wait:")) {
    trigger.kind = TriggerKind::kWaits;
    std::optional<std::vector<WaitKind>> kinds = ParseWaitKinds(what);
    if (!kinds) return Bad(trigger.text, absl::StrCat("'", what, "' is no kind of wait"));
    const std::optional<double> threads = ParsePercent(value);
    if (!threads) return Bad(trigger.text, "waiting is given in percent of one thread");
    trigger.waits = *std::move(kinds);
    trigger.more_than_rate = *threads;
    trigger.for_ns = for_ns.value_or(0);
    return trigger;
  }
  if (what == "cpu") {
    trigger.kind = TriggerKind::kCpu;
    const std::optional<double> cpus = ParsePercent(value);
    if (!cpus) return Bad(trigger.text, "CPU time is given in percent of one CPU");
    trigger.more_than_rate = *cpus;
    trigger.for_ns = for_ns.value_or(0);
    return trigger;
  }
  if (what == "pause") {
    trigger.kind = TriggerKind::kPause;
  } else if (what == "suspend-delay") {
    trigger.kind = TriggerKind::kSuspendDelay;
  } else {
    return Bad(trigger.text, absl::StrCat("'", what, "' is nothing that is watched"));
  }
  if (for_ns) return Bad(trigger.text, "'for' goes with cpu, alloc and wait only");
  const std::optional<uint64_t> limit = ParseTime(value);
  if (!limit) return Bad(trigger.text, "the text behind > is no time");
  trigger.more_than_ns = *limit;
  return trigger;
}

std::optional<TriggerHit> TriggerWatch::Observe(const Window& window) {
  const bool of_pauses = trigger_.kind == TriggerKind::kPause || trigger_.kind == TriggerKind::kSuspendDelay;
  return of_pauses ? ObservePauses(window) : ObserveRate(window);
}

std::optional<TriggerHit> TriggerWatch::ObservePauses(const Window& window) const {
  const bool delay = trigger_.kind == TriggerKind::kSuspendDelay;
  const auto length = [delay](const WindowPause& pause) { return delay ? pause.suspend_ns : pause.pause_ns; };
  const WindowPause* worst = nullptr;
  for (const WindowPause& pause : window.pauses) {
    if (length(pause) <= trigger_.more_than_ns || pause.process >= window.processes.size()) continue;
    if (worst == nullptr || length(pause) > length(*worst)) worst = &pause;
  }
  if (worst == nullptr) return std::nullopt;
  const WindowProcess& process = window.processes[worst->process];
  TriggerHit hit{.begin_unix_ns = worst->requested_unix_ns,
                 .end_unix_ns = worst->requested_unix_ns + worst->pause_ns,
                 .pid = process.pid,
                 .started_boot_ns = process.started_boot_ns,
                 .comm = process.comm,
                 .container = process.container};
  hit.value =
      delay ? absl::StrCat(DurationText(worst->suspend_ns), " until all threads stood still (", PauseWord(*worst), ")")
            : absl::StrCat("a pause of ", DurationText(worst->pause_ns), " (", PauseWord(*worst), ")");
  if (delay && !worst->culprits.empty()) absl::StrAppend(&hit.value, ", delayed by ", worst->culprits.front().method);
  return hit;
}

double TriggerWatch::RateOf(const WindowProcess& process, double seconds) const {
  if (trigger_.kind == TriggerKind::kAllocations) return static_cast<double>(process.allocated_bytes) / seconds;
  uint64_t ns = trigger_.kind == TriggerKind::kCpu ? process.total_cpu_ns() : 0;
  for (const WaitKind kind : trigger_.waits) ns += process.waits.of(kind);
  return static_cast<double>(ns) / 1e9 / seconds;
}

std::string TriggerWatch::RateText(double rate) const {
  if (trigger_.kind == TriggerKind::kAllocations) return absl::StrFormat("%.1f MB/s allocated", rate / 1e6);
  if (trigger_.kind == TriggerKind::kCpu) return absl::StrFormat("%.0f%% of a CPU", rate * 100);
  const auto text = [](std::string* out, WaitKind kind) { absl::StrAppend(out, WaitKindText(kind)); };
  return absl::StrFormat("%.1f threads waited (%s)", rate, absl::StrJoin(trigger_.waits, ", ", text));
}

std::optional<TriggerHit> TriggerWatch::ObserveRate(const Window& window) {
  const uint64_t length_ns = window.cpu.meta.duration_ns;
  // In the rest of a run one sample can be more than a whole CPU.
  if (length_ns < Window::kShortestNs) return std::nullopt;
  const WindowProcess* worst = nullptr;
  double worst_rate = 0;
  for (const WindowProcess& process : window.processes) {
    const double rate = RateOf(process, static_cast<double>(length_ns) / 1e9);
    if (rate <= trigger_.more_than_rate) continue;
    Above& above = above_[{process.pid, process.started_boot_ns}];
    above.length_ns += length_ns;
    above.window = window.number;
    if (above.accepted || above.length_ns < trigger_.for_ns || rate <= worst_rate) continue;
    worst_rate = rate;
    worst = &process;
  }
  // A process that was below in this window, or is gone, begins anew.
  absl::erase_if(above_, [&](const auto& entry) { return entry.second.window != window.number; });
  if (worst == nullptr) return std::nullopt;
  Above& above = above_[{worst->pid, worst->started_boot_ns}];
  return TriggerHit{.begin_unix_ns = window.end_unix_ns,
                    .end_unix_ns = window.end_unix_ns,
                    .pid = worst->pid,
                    .started_boot_ns = worst->started_boot_ns,
                    .comm = worst->comm,
                    .container = worst->container,
                    .value = RateText(worst_rate),
                    .is_new = !std::exchange(above.told, true)};
}

void TriggerWatch::Accept(const TriggerHit& hit) {
  const auto found = above_.find({hit.pid, hit.started_boot_ns});
  if (found != above_.end()) found->second.accepted = true;
}

}  // namespace clrsampler
