#include "pipeline/thread_stacks.h"

#include "capture/thread_dump.h"
#include "clr/runtime_discovery.h"
#include "os/clock.h"
#include "pipeline/source_order.h"
#include "pipeline/stack_unwinder.h"
#include "process/process_table.h"
#include "status/status.h"
#include "symbols/resolver.h"

namespace clrsampler {
namespace {

constexpr char kProcRoot[] = "/proc";

}  // namespace

absl::StatusOr<ThreadStacks> TakeThreadStacks(uint32_t pid, NameStyle names) {
  SystemClock clock;
  Notices notices;
  FrameTable frames;
  ImageFiles images;
  ProcessTable table(kProcRoot, clock);
  RuntimeDiscovery discovery(images, RuntimeDiscovery::CacheBy::kFile);
  const Sources sources = MakeSources({frames, images, discovery, notices, clock, names});
  Resolver resolver(sources.borrowed(), frames);
  StackUnwinder unwinder({.replay = true, .max_frames = UINT16_MAX}, sources, images, resolver, clock);

  Process& process = table.FindOrScan(pid, 0);
  resolver.CatchUp(process, clock.Now(), clock.Now());
  absl::StatusOr<std::vector<DumpedThread>> dumped = DumpThreads(pid);
  RETURN_IF_ERROR(dumped.status());
  // Twice, as what may be freed counts only where it was seen before and after: the code of all threads is shown first.
  std::vector<std::optional<RawStack>> stacks;
  for (const DumpedThread& thread : *dumped) {
    absl::StatusOr<RawStack> raw = RawStack::Parse(std::as_bytes(std::span(thread.record)));
    stacks.push_back(raw.ok() ? std::optional<RawStack>(*std::move(raw)) : std::nullopt);
    if (stacks.back()) unwinder.Observe(process, *stacks.back());
  }
  ThreadStacks result;
  for (size_t i = 0; i < dumped->size(); ++i) {
    ThreadStack stack;
    stack.tid = (*dumped)[i].tid;
    stack.comm = (*dumped)[i].comm;
    stack.trouble = (*dumped)[i].trouble;
    if (stacks[i]) {
      const RawStack& raw = *stacks[i];
      const MonotonicTime time{raw.sample().header.time_ns};
      unwinder.Observe(process, raw);
      resolver.CatchUp(process, time, clock.Now());
      const UserStack& user = unwinder.Walk(process, raw);
      stack.end = user.end;
      for (const UserFrame& frame : user.frames) {
        const Mapping* mapping = process.mappings.Find(frame.lookup_address);
        const Resolution named = resolver.Resolve({process, mapping, frame.address, frame.lookup_address, time});
        stack.frames.push_back({frame, frames.at(named.frame)});
      }
    }
    result.threads.push_back(std::move(stack));
  }
  for (const Notice& notice : notices.kept()) result.notices.push_back(notice.message);
  return result;
}

}  // namespace clrsampler
