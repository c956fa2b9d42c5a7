#include "pipeline/sample_handler.h"

#include <cstddef>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "capture/drop_counters.h"
#include "pipeline/thread_start.h"
#include "unwind/frame_chain.h"

namespace clrsampler {
namespace {

// The longest time that a sample waits for its names. After it they are lost or will never come.
constexpr uint64_t kMaxHoldNs = 2'000'000'000;

}  // namespace

bool SampleHandler::Handle(MonotonicTime time, const RawStack& raw, const EarlyStack& early,
                           const LoopIteration& iteration) {
  main_loop_.Check();
  const wire_cpu_sample& sample = raw.sample();
  // Tasks that our pid namespace does not show share the number 0 and a process without mappings.
  const bool outside = (sample.flags & WIRE_SAMPLE_OUTSIDE) != 0;
  Process& process = parts_.table.FindOrScan(sample.tgid, outside ? 0 : sample.process_start_ns);
  // Neither they nor kernel threads have a /proc entry with a name.
  if (outside || process.comm.empty()) process.comm.assign(sample.comm, strnlen(sample.comm, sizeof sample.comm));
  if (!selects_(process)) {
    if (sample.header.kind == WIRE_CPU_SAMPLE) ++parts_.account.samples_set_aside;
    return true;
  }
  const bool may_wait = !iteration.last_chance && iteration.started.ns - time.ns < kMaxHoldNs;
  if (may_wait && parts_.perf_maps.IsComing(process.key)) return false;
  const bool has_stack = (sample.flags & WIRE_SAMPLE_KTHREAD) == 0 && sample.ip != 0;
  // Events that tell of mappings replaced between the sample and the scan may still be on their way.
  if (may_wait && has_stack && time < process.scanned && iteration.horizon < process.scanned) return false;
  if (has_stack && !parts_.symbolizer.CatchUp(process, time, iteration.started)) {
    if (may_wait) return false;
    parts_.notices.Add("names_late", absl::StrCat(process.key.tgid),
                       absl::StrCat("the maps of process ", process.key.tgid,
                                    " could not be read in time; its newest methods may lack names"));
  }
  const UserStack& user = parts_.unwinder.Walk(process, raw, early);
  const NamedStack& named = parts_.stack_symbolizer.Name(process, raw, user, time);
  const std::span<const FrameId> frames = WithAwaiters(process, raw, user, named);
  if (HandleEvent(process, sample, frames)) return true;
  StackEnd end = user.end;
  if (end == StackEnd::kBroken && !named.frames.empty() && StartsThread(parts_.frames.at(named.frames.front()))) {
    end = StackEnd::kComplete;  // libc's start code keeps data in the frame pointer; there is nothing above it
  }
  CountEnd(end, sample.stop);
  ++handled_;
  named_ += (named.sources & 1u << static_cast<unsigned>(NameSource::kNone)) == 0 ? 1 : 0;
  const bool written = Write({process, sample, frames, std::nullopt, named.sources, PausePhase::kNone, end,
                              parts_.rate.PeriodAt(time), parts_.threads.LinkOf(process, raw)});
  // Where the kernel ran, the last frame is its own and has no code here.
  if (written && parts_.code != nullptr && !user.frames.empty() && !named.frames.empty()) {
    parts_.code->Count(process.key, user.frames.front().lookup_address, named.frames.back());
  }
  return true;
}

std::span<const FrameId> SampleHandler::WithAwaiters(const Process& process, const RawStack& raw, const UserStack& user,
                                                     const NamedStack& named) {
  if (parts_.async == nullptr) return named.frames;
  const MonotonicTime time{raw.sample().header.time_ns};
  const bool stopped = parts_.hooks != nullptr && parts_.hooks->PhaseOf(process.key, time) == PausePhase::kStopped;
  return parts_.async->Apply(process, raw, user, named, stopped);
}

// False: it is no stack of an event.
bool SampleHandler::HandleEvent(const Process& process, const wire_cpu_sample& sample,
                                std::span<const FrameId> frames) {
  switch (sample.header.kind) {
    case WIRE_COMPILED_STACK:
      if (parts_.hooks != nullptr) parts_.hooks->CompiledStack(process, sample, frames);
      return true;
    case WIRE_ALLOCATION_STACK:
      if (parts_.hooks != nullptr) parts_.hooks->AllocationStack(process, sample, frames);
      return true;
    case WIRE_EXCEPTION_STACK:
      if (parts_.hooks != nullptr) parts_.hooks->ExceptionStack(process, sample, frames);
      return true;
    case WIRE_THREAD_STACK:
      if (parts_.thread_creations != nullptr) parts_.thread_creations->HandleStack(process.key, sample, frames);
      return true;
    case WIRE_WAIT_STACK:
      if (parts_.waits != nullptr) parts_.waits->HandleStack(process, sample, frames);
      return true;
    case WIRE_WAKER_STACK:
      if (parts_.waits != nullptr) parts_.waits->HandleWakerStack(sample, frames);
      return true;
    default:
      return false;
  }
}

void SampleHandler::CountEnd(StackEnd end, uint16_t stop) {
  switch (end) {
    case StackEnd::kComplete:
      ++parts_.account.stacks_complete;
      break;
    case StackEnd::kTruncated:
      ++parts_.account.stacks_truncated;
      break;
    case StackEnd::kBroken:
      ++parts_.account.stacks_broken;
      break;
  }
  ++parts_.account.stack_stops[std::string(StopName(stop))];
}

bool SampleHandler::Write(NamedSample named) {
  std::optional<RuntimeWatch::Role> role;
  const std::span<const FrameId> plain = named.frames;
  if (parts_.hooks != nullptr) {
    named.phase = parts_.hooks->PhaseOf(named.process.key, {named.sample.header.time_ns});
    role = parts_.hooks->RoleOf(named.process, named.sample, plain);
    if (role) named.role = role->kind;
    named.frames = Marked(named, role);
    parts_.hooks->Sampled(named.process, named.sample, plain, named.frames);
  }
  const bool written = parts_.sink.Add(named);
  ++(written ? parts_.account.samples_written : parts_.account.samples_set_aside);
  return written;
}

std::span<const FrameId> SampleHandler::Marked(const NamedSample& named,
                                               const std::optional<RuntimeWatch::Role>& role) {
  const PausePhase phase = mark_suspension_ ? named.phase : PausePhase::kNone;
  if (phase == PausePhase::kNone && !role) return named.frames;
  marked_.assign(named.frames.begin(), named.frames.end());
  if (role) marked_.insert(marked_.begin() + static_cast<std::ptrdiff_t>(role->at), role->frame);
  if (phase != PausePhase::kNone) {
    const char* mark = phase == PausePhase::kStopped ? "[the world is stopped]" : "[threads are being stopped]";
    marked_.insert(marked_.begin(), parts_.frames.Intern(Frame{FrameKind::kMark, NameSource::kNone, mark, "", ""}));
  }
  return marked_;
}

}  // namespace clrsampler
