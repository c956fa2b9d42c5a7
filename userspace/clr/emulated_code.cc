#include "clr/emulated_code.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// A runtime that is loaded late is found late. Processes that make code and are no .NET are looked at as often.
constexpr uint64_t kPauseNs = 1'000'000'000;

}  // namespace

std::optional<Resolution> EmulatedCode::Resolve(const FrameQuery& query) {
  main_loop_.Check();
  if (query.mapping == nullptr || query.mapping->kind != MappingKind::kJitMemory) return std::nullopt;
  ProcessState& state = states_.Of(query.process);
  if (!state.frame.has_value()) ReadRegions(query.process, state);
  if (!state.frame.has_value()) return std::nullopt;
  return Resolution{*state.frame};
}

uint64_t EmulatedCode::Generation(ProcessKey key) const {
  const ProcessState* const state = states_.Find(key);
  return state != nullptr && state->frame.has_value() ? 1 : 0;
}

void EmulatedCode::ReadRegions(const Process& process, ProcessState& state) {
  // The process table still shows another program than the one that runs.
  if (process.exec_announced != MonotonicTime::Max()) return;
  const MonotonicTime now = clock_.Now();
  if (state.seen_mappings == process.mappings.generation() || now < state.next_look) return;
  state.seen_mappings = process.mappings.generation();
  state.next_look.ns = now.ns + kPauseNs;
  if (runtimes_.Find(process).has_value()) return;
  const std::optional<DotNetRuntime> runtime = runtimes_.FindEmulated(process);
  if (!runtime.has_value()) return;
  state.frame =
      frames_.InternOwn(Frame{FrameKind::kJit, NameSource::kNone,
                              absl::StrCat("[jit: ", MachineText(runtime->machine), " code under emulation]"), "", ""});
  notices_.Add("emulated", absl::StrCat(process.key.tgid),
               absl::StrCat("process ", process.key.tgid, " (", process.comm, ", .NET ", runtime->version.Text(),
                            ") is an ", EmulationText(*runtime), "; its native frames are the emulator's"),
               "profile it on a machine of its own kind");
}

}  // namespace clrsampler
