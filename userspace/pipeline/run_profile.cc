#include "pipeline/run_profile.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/scaled_sum.h"
#include "profile/pause_detail.h"

namespace clrsampler {
namespace {

SampleLog::Thread ThreadOf(const Process& process, uint32_t tid, absl::string_view name) {
  return {process.key.tgid, tid, process.comm, std::string(name), process.container.cgroup.container_id};
}

std::string PauseName(const Pause& pause) {
  std::string name(pause.kind == PauseKind::kOther ? SuspendReasonText(pause.reason) : PauseKindText(pause.kind));
  if (pause.generation) absl::StrAppend(&name, " gen", *pause.generation);
  return name;
}

}  // namespace

bool RunProfile::Add(const NamedSample& named) {
  main_loop_.Check();
  const LabelId label = ledger_.Count(named.process, named.sources);
  // A delay has no weight until its pause is over.
  if (view_ == RecordView::kSuspendDelay) return false;
  if (view_ == RecordView::kPause && named.phase != PausePhase::kStopped) return false;
  const StackId stack = stacks_.Intern(label, named.frames);
  if (view_ == RecordView::kWall) {
    const wire_cpu_sample& sample = named.sample;
    waits_[named.process.key].AddCpu(stack, named.weight_ns, {sample.header.time_ns}, sample.tid,
                                     {sample.comm, strnlen(sample.comm, sizeof sample.comm)}, Keeps());
    return true;
  }
  stacks_.Add(stack, 1);
  if (keep_samples_) {
    const wire_cpu_sample& sample = named.sample;
    samples_.Add(ThreadOf(named.process, sample.tid, {sample.comm, strnlen(sample.comm, sizeof sample.comm)}),
                 {sample.header.time_ns}, stack, StateOf(named.phase), 1, named.link);
  }
  return true;
}

SampleLog::Thread RunProfile::ThreadOfKey(ProcessKey process, uint32_t tid, absl::string_view name) {
  const ProcessLedger::Identity identity = ledger_.Of(process);
  return {process.tgid, tid, identity.comm, std::string(name), identity.container_id};
}

void RunProfile::AddCollection(ProcessKey process, const GcDone& done) {
  main_loop_.Check();
  if (!keep_samples_ || !done.background) return;  // others are pauses
  events_.Add({.kind = ModelEventKind::kCollection,
               .began = done.time,
               .thread = ThreadOfKey(process, 0, ""),
               .name = absl::StrCat("background gen", done.generation, " ended"),
               .detail = std::string(GcReasonText(done.reason))});
}

void RunProfile::AddCompilation(ProcessKey process, const NamedCompilation& named) {
  main_loop_.Check();
  if (!keep_samples_) return;
  const Compilation& compilation = named.compilation;
  events_.Add({.kind = ModelEventKind::kCompilation,
               .began = compilation.began,
               .duration_ns = compilation.duration_ns(),
               .thread = ThreadOfKey(process, compilation.tid, compilation.comm),
               .name = named.method,
               .detail = named.tier});
}

uint64_t RunProfile::AddPause(const ObservedPause& observed) {
  main_loop_.Check();
  if (keep_samples_) {
    events_.Add({.kind = ModelEventKind::kPause,
                 .began = observed.pause.requested,
                 .duration_ns = observed.pause.pause_ns(),
                 .thread = ThreadOfKey(observed.process, 0, ""),
                 .name = PauseName(observed.pause),
                 .detail = PauseDetail(observed.pause.gc_reason, observed.culprits)});
  }
  if (view_ != RecordView::kSuspendDelay) return 0;
  const ProcessLedger::Identity process = ledger_.Of(observed.process);
  for (const BlamedStack& blamed : observed.stacks) {
    const StackId stack = stacks_.Intern(process.label, blamed.frames);
    const uint64_t delay_us = std::max<uint64_t>(blamed.delay_ns / 1000, 1);
    stacks_.Add(stack, delay_us);
    if (keep_samples_) {
      samples_.Add({observed.process.tgid, blamed.tid, process.comm, "", process.container_id},
                   observed.pause.requested, stack, SampleState::kSuspending, delay_us);
    }
  }
  return observed.stacks.size();
}

void RunProfile::AddCompiledStack(const Process& process, std::span<const FrameId> frames, uint64_t own_ns) {
  main_loop_.Check();
  if (view_ != RecordView::kJit) return;
  const StackId stack = stacks_.Intern(ledger_.LabelOf(process), frames);
  const uint64_t own_us = std::max<uint64_t>(own_ns / 1000, 1);
  stacks_.Add(stack, own_us);
  if (keep_samples_) samples_.Add(ThreadOf(process, 0, ""), MonotonicTime::Max(), stack, SampleState::kNone, own_us);
}

void RunProfile::AddWait(const ObservedWait& wait) {
  main_loop_.Check();
  if (!HasWaits(view_)) return;
  const StackId stack = stacks_.Intern(ledger_.Of(wait.process).label, wait_stack_.Of(wait));
  waits_[wait.process].Add(stack, wait, Keeps());
}

void RunProfile::SumUpThreads(ProcessKey process, const WaitWatch::Threads& threads) {
  main_loop_.Check();
  const auto found = waits_.find(process);
  GiveWaits(process, found == waits_.end() ? WaitSums() : found->second, threads);
  if (found == waits_.end()) return;
  kept_ -= found->second.kept();
  waits_.erase(found);
}

void RunProfile::GiveWaits(ProcessKey process, const WaitSums& sums, const WaitWatch::Threads& threads) {
  const ProcessLedger::Identity identity = ledger_.Of(process);
  const WaitSums::Rest rest = sums.Give(threads, [&](const WaitSums::Entry& entry) {
    if (entry.microseconds == 0) return;
    stacks_.Add(entry.stack, entry.microseconds);
    if (!keep_samples_) return;
    samples_.Add({process.tgid, entry.tid, identity.comm, entry.comm, identity.container_id}, entry.began, entry.stack,
                 SampleState::kNone, entry.microseconds);
  });
  const auto add = [&](FrameId mark, uint64_t microseconds) {
    if (microseconds == 0) return;
    const StackId stack = stacks_.Intern(identity.label, std::span(&mark, 1));
    stacks_.Add(stack, microseconds);
    if (!keep_samples_) return;
    samples_.Add({process.tgid, 0, identity.comm, "", identity.container_id}, MonotonicTime::Max(), stack,
                 SampleState::kNone, microseconds);
  };
  add(wait_stack_.ShorterThan(options_.min_wait_ns), rest.short_us);
  add(wait_stack_.NotTold(), rest.untold_us);
}

void RunProfile::AddAllocation(const ObservedAllocation& allocation) {
  main_loop_.Check();
  if (view_ != RecordView::kAllocations) return;
  AddWeighted(allocation.process, allocation.frames, allocation.bytes, allocation.time, allocation.tid);
}

void RunProfile::AddException(const ObservedException& exception) {
  main_loop_.Check();
  if (view_ != RecordView::kExceptions) return;
  AddWeighted(exception.process, exception.frames, 1, exception.time, exception.tid);
}

void RunProfile::AddWeighted(ProcessKey process, std::span<const FrameId> frames, uint64_t weight, MonotonicTime time,
                             uint32_t tid) {
  const StackId stack = stacks_.Intern(ledger_.Of(process).label, frames);
  Weighted& of_process = weighted_[process];
  if (Keeps()) {
    of_process.samples.push_back({stack, weight, time, tid});
  } else {
    of_process.by_stack[stack] += weight;
  }
}

void RunProfile::Scale(ProcessKey process, double factor) {
  main_loop_.Check();
  const auto found = weighted_.find(process);
  if (found == weighted_.end()) return;
  ScaledSum scaled(factor);
  const ProcessLedger::Identity identity = ledger_.Of(process);
  for (const WeightedSample& one : found->second.samples) {
    const uint64_t weight = scaled.Next(one.weight);
    stacks_.Add(one.stack, weight);
    samples_.Add({process.tgid, one.tid, identity.comm, "", identity.container_id}, one.time, one.stack,
                 SampleState::kNone, weight);
  }
  for (const auto& [stack, weight] : found->second.by_stack) {
    const uint64_t scaled_weight = scaled.Next(weight);
    stacks_.Add(stack, scaled_weight);
    if (!keep_samples_) continue;
    samples_.Add({process.tgid, 0, identity.comm, "", identity.container_id}, MonotonicTime::Max(), stack,
                 SampleState::kNone, scaled_weight);
  }
  kept_ -= found->second.samples.size();
  weighted_.erase(found);
}

}  // namespace clrsampler
