#include "pipeline/thread_stacks.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "capture/thread_dump.h"
#include "clr/memory/memory_methods.h"
#include "clr/runtime_discovery.h"
#include "formats/names/frame_text.h"
#include "os/clock.h"
#include "pipeline/lock_frames.h"
#include "pipeline/lock_holders.h"
#include "pipeline/sample_unwinder.h"
#include "pipeline/source_order.h"
#include "process/file_broker.h"
#include "process/proc_root.h"
#include "process/process_table.h"
#include "status/status.h"
#include "symbols/symbolizer.h"

namespace clrsampler {
namespace {

// Each look finds at least one more method that may be freed, or is the last. Such methods seldom call each other.
constexpr int kMaxLooks = 32;

absl::StatusOr<RawStack> Parse(const DumpedThread& thread) {
  return RawStack::Parse(std::as_bytes(std::span(thread.record)));
}

bool SameFrames(const UserStack& a, const UserStack& b) {
  return std::equal(
      a.frames.begin(), a.frames.end(), b.frames.begin(), b.frames.end(),
      [](const UserFrame& x, const UserFrame& y) { return x.address == y.address && x.doubt == y.doubt; });
}

// Code that may be freed counts at moments that lie between two readings of it that agree. The thread stands still, so
// this moment is as good as the one at which its registers were read, and each look is the later reading for what the
// one before has found.
void LookWhileItStands(const Process& process, DumpedThread& thread, SampleUnwinder& unwinder, const Clock& clock) {
  EarlyStack seen;
  UserStack last;
  for (int i = 0; i < kMaxLooks; ++i) {
    wire_header header;
    std::memcpy(&header, thread.record.data(), sizeof header);
    header.time_ns = clock.Now().ns;
    std::memcpy(thread.record.data(), &header, sizeof header);
    const absl::StatusOr<RawStack> raw = Parse(thread);
    if (!raw.ok()) return;
    unwinder.Observe(process, *raw, seen);
    if (i > 0 && SameFrames(seen.stack, last)) return;
    last = seen.stack;
  }
}

// The most bytes of a stack that frames of a wait can have.
std::vector<uint64_t> WordsFrom(MemoryReader& memory, uint64_t stack_pointer) {
  for (size_t count = 8192; count >= 64; count /= 2) {
    std::vector<uint64_t> words(count);
    if (memory.Read(stack_pointer, std::as_writable_bytes(std::span(words)))) return words;
  }
  return {};
}

std::vector<NamedFrame> NamesOf(const ThreadStack& thread) {
  std::vector<NamedFrame> frames;
  for (const ThreadFrame& frame : thread.frames) {
    const bool managed = frame.frame.kind == FrameKind::kJit || frame.frame.kind == FrameKind::kR2r;
    frames.push_back({frame.user.address, frame.frame.text, managed && frame.frame.source != NameSource::kNone});
  }
  return frames;
}

ThreadLock Told(const HeldLock& held, std::span<const NamedFrame> frames, NameStyle names) {
  return {.monitor = !WaitsInLock(frames) || EntersMonitor(frames),
          .known = true,
          .method = std::string(EnteringMethod(frames)),
          .type = held.wait.type.empty() ? "" : TypeNameText(held.wait.type, names),
          .held = held.wait.held,
          .holder_tid = held.holder_tid,
          .entered = held.wait.entered,
          .limited = held.wait.limited};
}

void AddLocks(uint32_t pid, const std::vector<DumpedThread>& dumped, NameStyle names, RuntimeMemory& runtime,
              ThreadStacks& stacks) {
  LockHolders holders(kProcRoot, pid, runtime);
  size_t without_stack = 0;
  for (size_t i = 0; i < dumped.size(); ++i) {
    const absl::StatusOr<RawStack> raw = Parse(dumped[i]);
    if (!raw.ok()) {
      ++without_stack;
      holders.AddHolder(stacks.threads[i].tid);  // such as one that waits for a disk
      continue;
    }
    const uint64_t stack_pointer = raw->sample().sp;
    ThreadStack& thread = stacks.threads[i];
    const std::vector<NamedFrame> frames = NamesOf(thread);
    WaitFrames wait;
    if (WaitsInLock(frames)) {
      wait = FramesOfLockWait(frames, stack_pointer, WordsFrom(runtime.memory(), stack_pointer));
      thread.lock = ThreadLock{.monitor = EntersMonitor(frames), .method = std::string(EnteringMethod(frames))};
    }
    holders.Add(thread.tid, stack_pointer, wait);
  }
  holders.Read();
  for (ThreadStack& thread : stacks.threads) {
    const auto held = holders.waits().find(thread.tid);
    if (held != holders.waits().end()) thread.lock = Told(held->second, NamesOf(thread), names);
  }
  stacks.deadlocks = holders.deadlocks();
  stacks.locks_trouble = holders.Trouble();
  if (without_stack > 0) {
    absl::StrAppend(&stacks.locks_trouble, stacks.locks_trouble.empty() ? "" : "; ",
                    "threads without a stack: ", without_stack);
  }
}

void TellLocks(const Process& process, const std::vector<DumpedThread>& dumped, NameStyle names, const Sources& sources,
               ThreadStacks& stacks) {
  RuntimeMemory* const runtime = sources.memory == nullptr ? nullptr : sources.memory->RuntimeOf(process.key);
  if (runtime != nullptr) return AddLocks(process.key.tgid, dumped, names, *runtime, stacks);
  const std::string refusal = sources.memory == nullptr ? "" : sources.memory->RefusalOf(process.key);
  stacks.locks_trouble =
      absl::StrCat("no memory of a .NET runtime is read", refusal.empty() ? "" : absl::StrCat(": ", refusal));
}

}  // namespace

absl::StatusOr<ThreadStacks> TakeThreadStacks(uint32_t pid, NameStyle names, const LineOptions& lines,
                                              FileBroker* files, std::shared_ptr<LineHelper> line_helper) {
  SystemClock clock;
  Notices notices;
  FrameTable frames;
  ImageFiles images;
  const FileBrokerReports reports(files, notices);
  ProcessTable table(kProcRoot, clock, nullptr, files);
  RuntimeDiscovery discovery(images, RuntimeDiscovery::CacheBy::kFile);
  const Sources sources = MakeSources({.frames = frames,
                                       .images = images,
                                       .runtimes = discovery,
                                       .notices = notices,
                                       .clock = clock,
                                       .names = names,
                                       .lines = lines,
                                       .line_helper = std::move(line_helper)});
  Symbolizer symbolizer(sources.borrowed(), frames, sources.line_sources());
  SampleUnwinder unwinder({.unwind_data = true, .max_frames = UINT16_MAX}, sources, images, symbolizer, clock);

  Process& process = table.FindOrScan(pid, 0);
  symbolizer.CatchUp(process, clock.Now(), clock.Now());
  // Twice: what the first one reads of images and runtimes, the second one need not read while a thread stands still.
  ThreadDumpOptions options;
  absl::StatusOr<std::vector<DumpedThread>> dumped = DumpThreads(pid, options);
  RETURN_IF_ERROR(dumped.status());
  for (const DumpedThread& thread : *dumped) {
    EarlyStack seen;
    if (absl::StatusOr<RawStack> raw = Parse(thread); raw.ok()) unwinder.Observe(process, *raw, seen);
  }
  options.look = [&](DumpedThread& thread) { LookWhileItStands(process, thread, unwinder, clock); };
  dumped = DumpThreads(pid, options);
  RETURN_IF_ERROR(dumped.status());
  sources.AwaitLines(clock);
  ThreadStacks result;
  for (const DumpedThread& thread : *dumped) {
    ThreadStack stack;
    stack.tid = thread.tid;
    stack.comm = thread.comm;
    stack.trouble = thread.trouble;
    if (const absl::StatusOr<RawStack> raw = Parse(thread); raw.ok()) {
      const MonotonicTime time{raw->sample().header.time_ns};
      symbolizer.CatchUp(process, time, clock.Now());
      const UserStack& user = unwinder.Walk(process, *raw, {});
      stack.end = user.end;
      for (const UserFrame& frame : user.frames) {
        const Mapping* mapping = process.mappings.Find(frame.lookup_address);
        const Resolution named = symbolizer.Resolve({process, mapping, frame.address, frame.lookup_address, time});
        stack.frames.push_back({frame, frames.at(named.frame)});
      }
    }
    result.threads.push_back(std::move(stack));
  }
  TellLocks(process, *dumped, names, sources, result);
  for (const Notice& notice : notices.kept()) result.notices.push_back(notice.message);
  return result;
}

}  // namespace clrsampler
