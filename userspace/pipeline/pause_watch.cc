#include "pipeline/pause_watch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "capture/uprobe.h"
#include "clr/hooks/hook_locator.h"
#include "formats/elf/elf_image.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Of one window; a pause that takes longer to come than a minute at 1,000 Hz loses blame, and no memory.
constexpr size_t kMaxBlamed = 1 << 17;
// Threads whose pause is not over: one, and some whose end was lost.
constexpr size_t kMaxUnreported = 64;

struct Place {
  HookKind kind;
  wire_hook hook;
};
// A return probe is on two functions through which no C++ exception passes.
constexpr Place kPlaces[] = {
    {HookKind::kSuspendEE, WIRE_HOOK_SUSPEND},    {HookKind::kSuspendEE, WIRE_HOOK_SUSPENDED},
    {HookKind::kRestartEE, WIRE_HOOK_RESTART},    {HookKind::kRestartEE, WIRE_HOOK_RESTARTED},
    {HookKind::kDiagGcStart, WIRE_HOOK_GC_START}, {HookKind::kDiagGcEnd, WIRE_HOOK_GC_END},
};

bool KindOf(uint32_t hook, RuntimeEventKind& kind) {
  switch (hook) {
    case WIRE_HOOK_SUSPEND:
      kind = RuntimeEventKind::kSuspend;
      return true;
    case WIRE_HOOK_SUSPENDED:
      kind = RuntimeEventKind::kSuspended;
      return true;
    case WIRE_HOOK_RESTART:
      kind = RuntimeEventKind::kRestart;
      return true;
    case WIRE_HOOK_RESTARTED:
      kind = RuntimeEventKind::kRestarted;
      return true;
    case WIRE_HOOK_GC_START:
      kind = RuntimeEventKind::kGcStart;
      return true;
    case WIRE_HOOK_GC_END:
      kind = RuntimeEventKind::kGcEnd;
      return true;
    default:
      return false;
  }
}

void AddTo(SuspensionCounters& sum, const SuspensionCounters& one) {
  sum.pauses += one.pauses;
  sum.aborted += one.aborted;
  sum.cut += one.cut;
  sum.unexpected += one.unexpected;
  sum.without_gc_end += one.without_gc_end;
  sum.background += one.background;
  for (size_t i = 0; i < sum.collections.size(); ++i) sum.collections[i] += one.collections[i];
}

}  // namespace

// Probes are per file, for all processes that map it.
struct PauseWatch::HookedImage {
  std::shared_ptr<const ImageFile> image;
  std::vector<UniqueFd> probes;
  absl::Status refusal;

  ~HookedImage() { CloseUprobes(std::move(probes)); }
};

struct PauseWatch::Target {
  uint32_t tgid = 0;
  uint64_t mappings_seen = 0;  // generation
  uint32_t exec_count = 0;
  std::shared_ptr<HookedImage> hooked;
  SuspensionTracker tracker;
  struct Blamed {
    uint32_t tid;
    std::string method;
    StackId stack;
  };
  std::vector<Blamed> window;                             // between the request and the stop of the pause at hand
  absl::flat_hash_map<uint32_t, std::vector<Blamed>> of;  // by the thread that asked, until its pause is complete
};

PauseWatch::PauseWatch(Callbacks callbacks, RuntimeDiscovery& runtimes, ImageFiles& images, const FrameTable& frames,
                       Notices& notices)
    : callbacks_(std::move(callbacks)), runtimes_(runtimes), images_(images), frames_(frames), notices_(notices) {}

PauseWatch::~PauseWatch() = default;

PauseWatch::Target& PauseWatch::TargetOf(ProcessKey key) {
  std::unique_ptr<Target>& target = targets_[key];
  if (target == nullptr) {
    target = std::make_unique<Target>();
    target->tgid = key.tgid;
  }
  return *target;
}

void PauseWatch::Look(const Process& process) {
  if (process.exited != MonotonicTime::Max() || process.exec_announced != MonotonicTime::Max()) return;
  Target& target = TargetOf(process.key);
  if (std::exchange(target.exec_count, process.exec_count) != process.exec_count) target.hooked = nullptr;
  if (target.hooked != nullptr || target.mappings_seen == process.mappings.generation()) return;
  target.mappings_seen = process.mappings.generation();
  const std::optional<DotNetRuntime> runtime = runtimes_.Find(process);
  if (runtime) target.hooked = Hook(process, *runtime);
}

std::shared_ptr<PauseWatch::HookedImage> PauseWatch::Hook(const Process& process, const DotNetRuntime& runtime) {
  const absl::StatusOr<std::shared_ptr<const ImageFile>> image = images_.Get(process, runtime.mapping);
  const std::string who = absl::StrCat(runtime.mapping.path, " (.NET ", runtime.version.Text(), ")");
  if (!image.ok()) {
    notices_.Add("hooks", who, absl::StrCat("pauses of ", who, " are not seen: ", image.status().message()),
                 HintOf(image.status()));
    return nullptr;
  }
  absl::erase_if(hooked_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<HookedImage>& known = hooked_[image->get()];
  if (std::shared_ptr<HookedImage> shared = known.lock()) return shared;
  auto hooked = std::make_shared<HookedImage>();
  hooked->image = *image;
  known = hooked;
  if (const absl::Status planted = Plant(process, runtime, **image, *hooked); !planted.ok()) {
    hooked->probes.clear();
    ++counters_.images_refused;
    hooked->refusal =
        WithHint(absl::Status(planted.code(), absl::StrCat("pauses of ", who, " can't be seen: ", planted.message())),
                 HintOf(planted));
    notices_.Add("hooks", who, hooked->refusal.message(), HintOf(planted));
  } else {
    ++counters_.images_hooked;
  }
  return hooked;
}

absl::Status PauseWatch::Plant(const Process& process, const DotNetRuntime& runtime, const ImageFile& image,
                               HookedImage& hooked) {
  const absl::StatusOr<ElfImage> elf = ElfImage::Parse(image.bytes());
  RETURN_IF_ERROR(elf.status());
  const RuntimeHooks hooks = LocateHooks({.runtime = &*elf});
  if (image.content.damaged()) return absl::DataLossError("the file was changed while it was read");
  // By descriptor: the very file that was looked at, wherever its path leads by now.
  const absl::StatusOr<OpenedFile> file = process.files.OpenMapping(runtime.mapping);
  RETURN_IF_ERROR(file.status());
  if (file->status.st_dev != image.device || file->status.st_ino != image.inode ||
      static_cast<uint64_t>(file->status.st_size) != image.size) {
    return absl::FailedPreconditionError("the file was replaced while it was read");
  }
  const std::string path = absl::StrCat("/proc/self/fd/", file->fd.get());
  for (const Place& place : kPlaces) {
    const HookPoints& points = hooks[place.kind];
    if (!points.ok()) {
      // Without the collections pauses still have their lengths.
      if (place.kind != HookKind::kDiagGcStart && place.kind != HookKind::kDiagGcEnd) return points.status();
      notices_.Add(
          "gc_hooks", image.path,
          absl::StrCat("generations of collections in ", image.path, " are not known: ", points.status().message()),
          HintOf(points.status()));
      continue;
    }
    for (const HookPoint& point : *points) {
      absl::StatusOr<UniqueFd> probe =
          callbacks_.attach(place.hook, point.argument_shift != 0, path, point.offset.value);
      RETURN_IF_ERROR(probe.status());
      hooked.probes.push_back(*std::move(probe));
    }
  }
  return absl::OkStatus();
}

absl::Status PauseWatch::Watches(ProcessKey key) const {
  const auto target = targets_.find(key);
  if (target == targets_.end() || target->second->hooked == nullptr) {
    return WithHint(absl::NotFoundError(absl::StrCat("process ", key.tgid, " runs no .NET runtime that can be opened")),
                    "clrsampler ps lists the .NET processes");
  }
  return target->second->hooked->refusal;
}

void PauseWatch::Arrived(const wire_runtime_event& event) {
  if (event.hook == WIRE_HOOK_SUSPEND) {
    ++asking_[event.tgid];
  } else if (event.hook == WIRE_HOOK_SUSPENDED) {
    const auto asking = asking_.find(event.tgid);
    if (asking != asking_.end() && --asking->second == 0) asking_.erase(asking);
  }
}

void PauseWatch::Handle(const Process& process, const wire_runtime_event& event) {
  ++counters_.events;
  RuntimeEvent said;
  if (!KindOf(event.hook, said.kind)) return;
  said.time = {event.header.time_ns};
  said.tid = event.tid;
  said.comm.assign(event.comm, strnlen(event.comm, sizeof event.comm));
  std::copy(std::begin(event.values), std::end(event.values), said.arguments.begin());
  Target& target = TargetOf(process.key);
  // What is left of a request that came to nothing is nobody's delay.
  if (said.kind == RuntimeEventKind::kSuspend && target.tracker.Suspending() == nullptr) target.window.clear();
  if (said.kind == RuntimeEventKind::kSuspended && !target.window.empty()) {
    if (target.of.size() >= kMaxUnreported) target.of.clear();
    target.of[said.tid] = std::exchange(target.window, {});
  }
  target.tracker.Add(
      said, [&](const Pause& pause) { Report(target, pause); }, [](const GcDone&) {});
}

void PauseWatch::Sampled(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames,
                         StackId stack) {
  const auto found = targets_.find(process.key);
  if (found == targets_.end()) return;
  Target& target = *found->second;
  const Pause* suspending = target.tracker.Suspending();
  // The one that asks waits, or spins; what it does is no reason to wait.
  if (suspending == nullptr || sample.tid == suspending->tid || target.window.size() >= kMaxBlamed) return;
  target.window.push_back({sample.tid, MethodOf(frames), stack});
}

PausePhase PauseWatch::PhaseOf(ProcessKey key) const {
  const auto found = targets_.find(key);
  if (found == targets_.end()) return PausePhase::kNone;
  if (found->second->tracker.Stopped() != nullptr) return PausePhase::kStopped;
  return found->second->tracker.Suspending() != nullptr ? PausePhase::kStopping : PausePhase::kNone;
}

std::string PauseWatch::MethodOf(std::span<const FrameId> frames) const {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const Frame& text = frames_.at(*frame);
    if ((text.kind == FrameKind::kJit || text.kind == FrameKind::kR2r) && text.source != NameSource::kNone) {
      return text.text;
    }
  }
  return frames.empty() ? "[no stack]" : frames_.at(frames.back()).text;
}

void PauseWatch::Report(Target& target, const Pause& pause) {
  ObservedPause observed{target.tgid, pause, {}, {}};
  if (const auto blamed = target.of.find(pause.tid); blamed != target.of.end()) {
    std::map<std::pair<std::string, uint32_t>, uint32_t> shares;
    const uint64_t samples = blamed->second.size();
    for (Target::Blamed& one : blamed->second) {
      observed.stacks.push_back({one.stack, pause.suspend_ns() / samples});
      ++shares[{std::move(one.method), one.tid}];
    }
    for (const auto& [who, count] : shares) {
      observed.culprits.push_back({who.first, who.second, pause.suspend_ns() * count / samples, count});
    }
    std::stable_sort(observed.culprits.begin(), observed.culprits.end(),
                     [](const Culprit& a, const Culprit& b) { return a.delay_ns > b.delay_ns; });
    target.of.erase(blamed);
  }
  if (callbacks_.on_pause) callbacks_.on_pause(observed);
}

void PauseWatch::Forget(ProcessKey key) {
  const auto found = targets_.find(key);
  if (found == targets_.end()) return;
  Target& target = *found->second;
  target.tracker.Finish([&](const Pause& pause) { Report(target, pause); });
  AddTo(counters_.suspensions, target.tracker.counters());
  asking_.erase(key.tgid);
  targets_.erase(found);
}

void PauseWatch::Finish() {
  std::vector<UniqueFd> probes;
  for (const auto& [image, hooked] : hooked_) {
    const std::shared_ptr<HookedImage> alive = hooked.lock();
    if (alive == nullptr) continue;
    std::move(alive->probes.begin(), alive->probes.end(), std::back_inserter(probes));
    alive->probes.clear();
  }
  CloseUprobes(std::move(probes));
  std::vector<ProcessKey> keys;
  for (const auto& [key, target] : targets_) keys.push_back(key);
  for (const ProcessKey key : keys) Forget(key);
}

std::map<std::string, uint64_t> PauseWatchCounters::ByName() const {
  return {{"images_hooked", images_hooked},
          {"images_refused", images_refused},
          {"events", events},
          {"pauses", suspensions.pauses},
          {"aborted", suspensions.aborted},
          {"cut", suspensions.cut},
          {"unexpected", suspensions.unexpected},
          {"without_gc_end", suspensions.without_gc_end},
          {"gen0", suspensions.collections[0]},
          {"gen1", suspensions.collections[1]},
          {"gen2", suspensions.collections[2]},
          {"background", suspensions.background}};
}

PauseWatchCounters PauseWatch::counters() const {
  PauseWatchCounters sum = counters_;
  for (const auto& [key, target] : targets_) AddTo(sum.suspensions, target->tracker.counters());
  return sum;
}

}  // namespace clrsampler
