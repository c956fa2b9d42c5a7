// Reports of hooks in a hostile process, in any order and with any values: the trackers of pauses and of compilations,
// and what threads were at. Each 6 bytes are an event: what, thread, two arguments, time passed, and what then is
// asked.
#include <cstddef>
#include <cstdint>

#include "profile/jit_tracker.h"
#include "profile/runtime_activity.h"
#include "profile/suspension_tracker.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using clrsampler::MonotonicTime;
  const auto require = [](bool condition) {
    if (!condition) __builtin_trap();
  };
  clrsampler::SuspensionTracker pauses(/*sees_resumed=*/true), without_resumed(/*sees_resumed=*/false);
  clrsampler::JitTracker jit;
  clrsampler::RuntimeActivity activity;
  constexpr const char* kNames[] = {"app", ".NET Server GC", ".NET BGC", ".NET Tiered Com"};
  uint64_t now = 1'000, begun = 0, number = 0, told = 0;
  const auto on_pause = [&](const clrsampler::Pause& pause) {
    ++told;
    require(pause.requested <= pause.stopped && pause.stopped <= pause.resume_begun);
    require(!pause.resumed || pause.resume_begun <= *pause.resumed);
  };
  for (; size >= 6; data += 6, size -= 6) {
    now += data[4];
    const uint32_t tid = data[1] % 16;
    const char* comm = kNames[data[1] / 64];
    const uint64_t first = data[2] % 16, second = data[3];
    switch (data[0] % 8) {
      case 6:
        ++begun;
        jit.Begin(tid, {now}, first, first, second);
        activity.CompilationBegan(tid, {now}, first, first);
        break;
      case 7: {
        clrsampler::Compilation done;
        done.tid = tid;
        done.method = first;
        done.done = {now};
        done.result = second % 2;
        if (const auto whole = jit.End(first, done)) require(whole->own_ns() <= whole->duration_ns());
        activity.CompilationEnded(tid, {now}, first, first, ++number);
        break;
      }
      default: {
        const clrsampler::RuntimeEvent event{{now},
                                             tid,
                                             comm,
                                             static_cast<clrsampler::RuntimeEventKind>(data[0] % 8),
                                             {first, second, second, second & 1}};
        pauses.Add(event, on_pause, [](const clrsampler::GcDone&) {});
        without_resumed.Add(
            event, [&](const clrsampler::Pause& pause) { require(!pause.resumed); }, [](const clrsampler::GcDone&) {});
        activity.Add(event);
      }
    }
    const uint64_t asked = now - data[5];
    if (const auto role = activity.At(tid, comm, {asked});
        role && role->kind == clrsampler::RuntimeRoleKind::kCompiling) {
      require(role->compilation > 0 && role->compilation <= number);
    }
    if (data[5] % 32 == 0) activity.DropBefore({asked});
  }
  pauses.Finish(on_pause);
  jit.Finish();
  require(jit.counters().compilations + jit.counters().unfinished == begun);
  require(pauses.counters().pauses == told);
  return 0;
}
