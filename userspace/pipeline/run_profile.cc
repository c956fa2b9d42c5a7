#include "pipeline/run_profile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace clrsampler {
namespace {

SampleLog::Thread ThreadOf(const Process& process, uint32_t tid, absl::string_view name) {
  return {process.key.tgid, tid, process.comm, std::string(name), process.container.cgroup.container_id};
}

}  // namespace

bool RunProfile::Add(const NamedSample& named) {
  const LabelId label = ledger_.Count(named.process, named.sources);
  // A delay has no weight until its pause is over.
  if (view_ == RecordView::kSuspendDelay) return false;
  if (view_ == RecordView::kPause && named.phase != PausePhase::kStopped) return false;
  const StackId stack = stacks_.Intern(label, named.frames);
  stacks_.Add(stack, 1);
  if (keep_samples_) {
    const wire_cpu_sample& sample = named.sample;
    samples_.Add(ThreadOf(named.process, sample.tid, {sample.comm, strnlen(sample.comm, sizeof sample.comm)}),
                 {sample.header.time_ns}, stack, StateOf(named.phase), 1);
  }
  return true;
}

uint64_t RunProfile::AddPause(const ObservedPause& observed) {
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
  if (view_ != RecordView::kJit) return;
  const StackId stack = stacks_.Intern(ledger_.LabelOf(process), frames);
  const uint64_t own_us = std::max<uint64_t>(own_ns / 1000, 1);
  stacks_.Add(stack, own_us);
  if (keep_samples_) samples_.Add(ThreadOf(process, 0, ""), MonotonicTime::Max(), stack, SampleState::kNone, own_us);
}

void RunProfile::AddAllocation(const ObservedAllocation& allocation) {
  if (view_ != RecordView::kAllocations) return;
  AddWeighted(allocation.process, allocation.frames, allocation.bytes, allocation.time, allocation.tid);
}

void RunProfile::AddException(const ObservedException& exception) {
  if (view_ != RecordView::kExceptions) return;
  AddWeighted(exception.process, exception.frames, 1, exception.time, exception.tid);
}

void RunProfile::AddWeighted(ProcessKey process, std::span<const FrameId> frames, uint64_t weight, MonotonicTime time,
                             uint32_t tid) {
  const StackId stack = stacks_.Intern(ledger_.Of(process).label, frames);
  Weighted& of_process = weighted_[process];
  if (keep_samples_) {
    of_process.samples.push_back({stack, weight, time, tid});
  } else {
    of_process.by_stack[stack] += weight;
  }
}

void RunProfile::Scale(ProcessKey process, double factor) {
  const auto found = weighted_.find(process);
  if (found == weighted_.end()) return;
  // What rounding takes from one the next one gets, so that their sum is what it is.
  double sum = 0;
  const auto scaled = [&](uint64_t weight) {
    const auto before = static_cast<uint64_t>(std::llround(sum));
    sum += static_cast<double>(weight) * factor;
    return static_cast<uint64_t>(std::llround(sum)) - before;
  };
  const ProcessLedger::Identity identity = ledger_.Of(process);
  for (const WeightedSample& one : found->second.samples) {
    const uint64_t weight = scaled(one.weight);
    stacks_.Add(one.stack, weight);
    samples_.Add({process.tgid, one.tid, identity.comm, "", identity.container_id}, one.time, one.stack,
                 SampleState::kNone, weight);
  }
  for (const auto& [stack, weight] : found->second.by_stack) stacks_.Add(stack, scaled(weight));
  weighted_.erase(found);
}

}  // namespace clrsampler
