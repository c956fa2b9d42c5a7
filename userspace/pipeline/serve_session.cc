#include "pipeline/serve_session.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "os/clock.h"
#include "os/own_usage.h"
#include "os/tape_answer.h"

namespace clrsampler {
namespace {

constexpr uint64_t kRateControlNs = 1'000'000'000;
// The most stacks that are read when all threads are looked at, of those that have run since: 30 for each second of a
// window. One takes 0.1 ms to read and as much to name.
constexpr uint64_t kNsAStack = 33'000'000;
constexpr size_t kLeastStacks = 20;

}  // namespace

ServeSession::ServeSession(RunParts& parts, const WindowOptions& options)
    : parts_(parts),
      options_(options),
      windows_(options.lengths, parts.frames, &parts.sources.source_files(), parts.options.min_wait_ns, parts.notices,
               parts.clock,
               [tape = parts.tape] {
                 return Taped(
                     tape, [] { return NowNs(CLOCK_REALTIME); }, "wall clock");
               }),
      labels_(parts) {}

bool ServeSession::SelectsKey(ProcessKey key) {
  main_loop_.Check();
  if (!options_.selects) return true;
  const Process* process = parts_.table.Find(key.tgid);
  return process != nullptr && process->key == key ? Selects(*process) : windows_.builder().Has(key);
}

void ServeSession::Begin() {
  main_loop_.Check();
  last_rate_control_ = parts_.started;
  windows_.Begin();
  parts_.counts.Begin();  // an earlier recorder of this process has counted what was used until now
}

void ServeSession::Reach(MonotonicTime time) {
  main_loop_.Check();
  while (windows_.End() <= time) Close(windows_.End());
}

void ServeSession::Close(MonotonicTime end) {
  parts_.UpdateClock();
  if (parts_.hooks) parts_.hooks->PublishAllocationFactors();
  SumUpWaits();
  parts_.table.ForEach([this](Process& process) { Describe(process); });
  parts_.CountAccount();
  options_.on_window(windows_.Close(end, std::exchange(parts_.account, {}), parts_.rate.TakeWindow()));
}

void ServeSession::SumUpWaits() {
  if (!parts_.waits) return;
  for (const ProcessKey key : parts_.waits->processes()) {
    const WaitWatch::Threads threads = parts_.waits->TakeThreads(key, windows_.begin());
    if (!threads.empty()) windows_.builder().SumUpThreads(key, threads);
  }
}

// A window's waits are reported as of its end. So a wait that is open then is in it with its part.
void ServeSession::BeginIteration(MonotonicTime now) {
  main_loop_.Check();
  const MonotonicTime end = windows_.End();
  if (parts_.waits && now >= end && end > looked_) ReadOpenWaits(end);
}

void ServeSession::ReadOpenWaits(MonotonicTime end) {
  looked_ = end;
  const uint64_t length_ns = end.ns - std::min(windows_.begin().ns, end.ns);
  OpenWaitQuery query;
  query.as_of = {end.ns - 1};  // belongs to the window
  query.most_stacks = kLeastStacks + static_cast<size_t>(length_ns / kNsAStack);
  if (options_.selects) {
    query.selects = [this](uint32_t tgid) { return Selects(parts_.table.FindOrScan(tgid, 0)); };
  }
  parts_.capture->ReadOpenWaits(query);
}

void ServeSession::SlowIteration(MonotonicTime now) {
  main_loop_.Check();
  if (parts_.tape == nullptr) file_pages_.AgePages(now);
  labels_.Update(now, [this](ProcessKey key) { return windows_.builder().Has(key); });
  ControlRate(now);
}

void ServeSession::Ended(ProcessKey key) {
  main_loop_.Check();
  windows_.builder().SetExited(key);
  labels_.Forget(key);
}

void ServeSession::ControlRate(MonotonicTime now) {
  if (now.ns - last_rate_control_.ns < kRateControlNs) return;
  last_rate_control_ = now;
  RateInputs inputs;
  inputs.now = now;
  inputs.ring_fill = parts_.intake->TakeRingFill();
  // Hook events that are lost, or wait, come no less often at a lower rate.
  inputs.lost = parts_.capture->counters().drops[WIRE_DROP_RING_FULL];
  inputs.queue_fill = parts_.intake->queue_fill();
  inputs.not_queued = parts_.intake->samples_dropped();
  inputs.self_cpu_ns = Taped(parts_.tape, OwnThreadCpuNs, "own cpu");
  inputs.memory_bytes = Taped(
      parts_.tape, [] { return ReadOwnMemory().own_bytes; }, "own memory");
  const std::optional<uint32_t> hz = parts_.rate.Wanted(inputs);
  if (!hz) return;
  parts_.UpdateClock();
  parts_.notices.Add(*hz < parts_.rate.hz() ? "rate_lowered" : "rate_raised", "", parts_.rate.Reason(*hz));
  if (const absl::Status changed = parts_.capture->SetFrequency(static_cast<int>(*hz)); !changed.ok()) {
    parts_.notices.Add("rate_not_changed", "", changed.message());
  }
  parts_.targets.expected().SetFrequency(*hz);
  parts_.rate.Changed(parts_.clock.Now(), *hz);
  parts_.rate.DropBefore(parts_.intake->OldestOr(parts_.horizon));
}

void ServeSession::Describe(const Process& process) {
  main_loop_.Check();
  WindowBuilder& builder = windows_.builder();
  if (!builder.Has(process.key)) return;
  const std::optional<DotNetRuntime> runtime = parts_.runtimes.Find(process);
  builder.Describe(process);
  builder.SetLabels(process.key, labels_.Of(process.key));
  builder.SetRuntime(process.key, runtime.has_value() ? runtime->version.Text() : "",
                     parts_.hooks && parts_.hooks->CheckSuspensions(process.key).ok());
}

void ServeSession::StopsSampling() {
  main_loop_.Check();
  if (parts_.waits) ReadOpenWaits(parts_.clock.Now());
}

FreshStart ServeSession::WantsFreshStart(MonotonicTime now) const {
  return FreshStartFor({.begins_anew = options_.begins_anew,
                        .ran_ns = now.ns - parts_.started.ns,
                        .memory_is_short = parts_.rate.helpless(),
                        .names_are_full = parts_.symbolizer.budget().full()});
}

void ServeSession::Finish() { Close(std::max(parts_.clock.Now(), windows_.begin())); }

}  // namespace clrsampler
