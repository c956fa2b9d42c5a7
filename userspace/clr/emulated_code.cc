#include "clr/emulated_code.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// A runtime that is loaded late is found late. Processes that make code and are no .NET are looked at as often.
constexpr uint64_t kPauseNs = 1'000'000'000;

}  // namespace

std::optional<Resolution> EmulatedCode::Resolve(const FrameQuery& query) {
  if (query.mapping == nullptr || query.mapping->kind != MappingKind::kJitMemory) return std::nullopt;
  Target& target = targets_[query.process.key];
  if (!target.frame.has_value()) Look(query.process, target);
  if (!target.frame.has_value()) return std::nullopt;
  return Resolution{*target.frame};
}

uint64_t EmulatedCode::Generation(ProcessKey key) const {
  const auto target = targets_.find(key);
  return target != targets_.end() && target->second.frame.has_value() ? 1 : 0;
}

void EmulatedCode::Look(const Process& process, Target& target) {
  // The process table still shows another program than the one that runs.
  if (process.exec_announced != MonotonicTime::Max()) return;
  const MonotonicTime now = clock_.Now();
  if (target.seen_mappings == process.mappings.generation() || now < target.next_look) return;
  target.seen_mappings = process.mappings.generation();
  target.next_look.ns = now.ns + kPauseNs;
  if (runtimes_.Find(process).has_value()) return;
  const std::optional<DotNetRuntime> runtime = runtimes_.FindEmulated(process);
  if (!runtime.has_value()) return;
  target.frame =
      frames_.Intern(Frame{FrameKind::kJit, NameSource::kNone,
                           absl::StrCat("[jit: ", MachineText(runtime->machine), " code under emulation]"), "", ""});
  notices_.Add("emulated", absl::StrCat(process.key.tgid),
               absl::StrCat("process ", process.key.tgid, " (", process.comm, ", .NET ", runtime->version.Text(),
                            ") is an ", EmulationText(*runtime), "; its native frames are the emulator's"),
               "profile it on a machine of its own kind");
}

}  // namespace clrsampler
