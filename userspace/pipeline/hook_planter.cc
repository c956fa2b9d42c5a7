#include "pipeline/hook_planter.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "capture/uprobe.h"
#include "clr/hooks/jit_flags.h"
#include "formats/elf/elf_image.h"
#include "status/status.h"

namespace clrsampler {
namespace {

struct Place {
  HookKind kind;
  wire_hook hook;
};
// A return probe is on two functions through which no C++ exception passes. The last of a pause comes first: of what is
// seen to begin the end is then seen, too.
constexpr Place kSuspensionPlaces[] = {
    {HookKind::kRestartEE, WIRE_HOOK_RESTARTED}, {HookKind::kRestartEE, WIRE_HOOK_RESTART},
    {HookKind::kDiagGcEnd, WIRE_HOOK_GC_END},    {HookKind::kDiagGcStart, WIRE_HOOK_GC_START},
    {HookKind::kSuspendEE, WIRE_HOOK_SUSPENDED}, {HookKind::kSuspendEE, WIRE_HOOK_SUSPEND},
};

bool IsOfCollections(HookKind kind) { return kind == HookKind::kDiagGcStart || kind == HookKind::kDiagGcEnd; }

absl::Status NotWatched(ProcessKey key, absl::string_view what) {
  return WithHint(absl::NotFoundError(absl::StrCat("process ", key.tgid, " runs no ", what, " that can be opened")),
                  "clrsampler ps lists the .NET processes");
}

const Mapping* FindJit(const Process& process) {
  for (const Mapping& mapping : process.mappings.all()) {
    if (mapping.kind == MappingKind::kFile && absl::EndsWith(mapping.path, "/libclrjit.so")) return &mapping;
  }
  return nullptr;
}

// Compilations of one image in a second: more in each of three are a storm, fewer in each of three its end.
constexpr double kStorm = 1000, kCalm = 500;
constexpr int kSeconds = 3;
constexpr uint64_t kSecondNs = 1'000'000'000;

}  // namespace

struct HookPlanter::HookedImage {
  std::shared_ptr<const ImageFile> image;
  std::vector<UniqueFd> probes;

  // Where compilations begin. The probe may rest, and comes back to the same file.
  UniqueFd file, entry_probe;
  uint64_t entry_offset = 0;
  JitStart start;
  MonotonicTime counted_since, last_compiled = MonotonicTime::Min();
  uint64_t compiled = 0;      // since then
  int storms = 0, calms = 0;  // seconds in a row

  absl::Status suspensions;
  absl::Status compilations;

  ~HookedImage() { CloseUprobes(TakeProbes()); }

  std::vector<UniqueFd> TakeProbes() {
    std::vector<UniqueFd> all = std::exchange(probes, {});
    if (entry_probe.valid()) all.push_back(std::move(entry_probe));
    return all;
  }
};

HookPlanter::HookPlanter(HookPlanterOptions options, RuntimeDiscovery& runtimes, ImageFiles& images, Notices& notices)
    : options_(std::move(options)), runtimes_(runtimes), images_(images), notices_(notices), debug_files_(images) {}

HookPlanter::~HookPlanter() { Finish(); }

void HookPlanter::Look(const Process& process) {
  if (process.exited != MonotonicTime::Max() || process.exec_announced != MonotonicTime::Max()) return;
  Target& target = targets_[process.key];
  if (std::exchange(target.exec_count, process.exec_count) != process.exec_count) target.runtime = target.jit = nullptr;
  if (target.mappings_seen == process.mappings.generation()) return;
  if (target.runtime != nullptr && (target.jit != nullptr || !options_.compilations)) return;
  target.mappings_seen = process.mappings.generation();
  const std::optional<DotNetRuntime> runtime = runtimes_.Find(process);
  if (!runtime) return;
  const std::string who = absl::StrCat(".NET ", runtime->version.Text());
  const bool holds_jit = runtime->form == DeploymentForm::kSingleFile;
  if (target.runtime == nullptr) {
    const Parts parts = {.runtime = true, .jit = holds_jit, .by_symbols = runtime->form == DeploymentForm::kNativeAot};
    target.runtime = Hook(process, runtime->mapping, parts, who);
  }
  if (target.jit != nullptr || !options_.compilations) return;
  if (holds_jit) {
    target.jit = target.runtime;
  } else if (const Mapping* jit = FindJit(process)) {  // some milliseconds after the runtime
    target.jit = Hook(process, *jit, {.jit = true}, who);
  }
}

std::shared_ptr<HookPlanter::HookedImage> HookPlanter::Hook(const Process& process, const Mapping& mapping, Parts parts,
                                                            absl::string_view version) {
  const absl::StatusOr<std::shared_ptr<const ImageFile>> image = images_.Get(process, mapping);
  const std::string who = absl::StrCat(mapping.path, " (", version, ")");
  const auto refuse = [&](absl::string_view what, absl::Status& status) {
    if (status.ok()) return;
    const std::string hint = HintOf(status);
    status = WithHint(
        absl::Status(status.code(), absl::StrCat(what, " of ", who, " can't be seen: ", status.message())), hint);
    if (options_.say_refusals) notices_.Add("hooks", absl::StrCat(what, who), status.message(), hint);
  };
  if (!image.ok()) {
    absl::Status status = image.status();
    refuse(parts.runtime ? "pauses" : "compilations", status);
    return nullptr;
  }
  absl::erase_if(hooked_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<HookedImage>& known = hooked_[image->get()];
  if (std::shared_ptr<HookedImage> shared = known.lock()) return shared;
  // Containers of one image map one file, and a second set of probes would report each call of each of them twice.
  for (const auto& [other, entry] : hooked_) {
    std::shared_ptr<HookedImage> shared = entry.lock();
    if (shared != nullptr && IsSameFile(*other, **image)) return shared;
  }
  auto hooked = std::make_shared<HookedImage>();
  hooked->image = *image;
  known = hooked;
  Plant(process, mapping, parts, *hooked);
  ++(hooked->suspensions.ok() && hooked->compilations.ok() ? counters_.images_hooked : counters_.images_refused);
  refuse("pauses", hooked->suspensions);
  refuse("compilations", hooked->compilations);
  return hooked;
}

void HookPlanter::Plant(const Process& process, const Mapping& mapping, Parts parts, HookedImage& hooked) {
  const ImageFile& image = *hooked.image;
  const auto refuse_all = [&](const absl::Status& status) {
    if (options_.suspensions && parts.runtime) hooked.suspensions = status;
    if (options_.compilations && parts.jit) hooked.compilations = status;
  };
  const absl::StatusOr<ElfImage> elf = ElfImage::Parse(image.bytes());
  if (!elf.ok()) return refuse_all(elf.status());
  std::optional<DebugFile> debug;
  if (parts.by_symbols && !elf->symtab()) debug = debug_files_.Find(process, mapping.path, *elf);
  const RuntimeHooks hooks = parts.runtime
                                 ? LocateHooks({.runtime = &*elf, .runtime_debug = debug ? &debug->image : nullptr})
                                 : LocateHooks({.jit = &*elf});
  if (image.content.damaged() || (debug && debug->file->content.damaged())) {
    return refuse_all(absl::DataLossError("the file was changed while it was read"));
  }
  // By descriptor: the very file that was looked at, wherever its path leads by now.
  absl::StatusOr<OpenedFile> file = process.files.OpenMapping(mapping);
  if (!file.ok()) return refuse_all(file.status());
  if (file->status.st_dev != image.device || file->status.st_ino != image.inode ||
      static_cast<uint64_t>(file->status.st_size) != image.size) {
    return refuse_all(absl::FailedPreconditionError("the file was replaced while it was read"));
  }
  const std::string path = absl::StrCat("/proc/self/fd/", file->fd.get());
  // All of one kind, or none: half a pair means nothing.
  const auto plant = [&](auto&& plant_all, absl::Status& status) {
    const size_t before = hooked.probes.size();
    status = plant_all();
    if (status.ok()) return;
    std::vector<UniqueFd> half(std::make_move_iterator(hooked.probes.begin() + static_cast<std::ptrdiff_t>(before)),
                               std::make_move_iterator(hooked.probes.end()));
    hooked.probes.resize(before);
    CloseUprobes(std::move(half));
  };
  if (options_.suspensions && parts.runtime) {
    plant([&] { return PlantSuspensions(hooks, path, hooked); }, hooked.suspensions);
  }
  if (options_.compilations && parts.jit) {
    plant([&] { return PlantCompilations(hooks, parts, path, hooked); }, hooked.compilations);
    if (hooked.compilations.ok() && options_.rest_in_storms) hooked.file = std::move(file->fd);
  }
}

absl::Status HookPlanter::PlantSuspensions(const RuntimeHooks& hooks, const std::string& path, HookedImage& hooked) {
  // Without the collections pauses still have their lengths. With half of them they would be called what they are not.
  absl::Status collections = hooks[HookKind::kDiagGcStart].status();
  collections.Update(hooks[HookKind::kDiagGcEnd].status());
  if (!collections.ok() && options_.say_refusals) {
    notices_.Add(
        "gc_hooks", hooked.image->path,
        absl::StrCat("generations of collections in ", hooked.image->path, " are not known: ", collections.message()),
        HintOf(collections));
  }
  for (const Place& place : kSuspensionPlaces) {
    if (IsOfCollections(place.kind) && !collections.ok()) continue;
    if (place.hook == WIRE_HOOK_RESTARTED && !options_.resumed) continue;
    const HookPoints& points = hooks[place.kind];
    RETURN_IF_ERROR(points.status());
    for (const HookPoint& point : *points) {
      absl::StatusOr<UniqueFd> probe = options_.attach(place.hook, point.argument_shift != 0, path, point.offset.value);
      RETURN_IF_ERROR(probe.status());
      hooked.probes.push_back(*std::move(probe));
    }
  }
  return absl::OkStatus();
}

absl::Status HookPlanter::PlantCompilations(const RuntimeHooks& hooks, Parts parts, const std::string& path,
                                            HookedImage& hooked) {
  const HookPoints& begin = hooks[HookKind::kCompileMethod];
  RETURN_IF_ERROR(begin.status());
  RETURN_IF_ERROR(hooks.jit_return.status());
  const HookImage here = parts.runtime ? HookImage::kRuntime : HookImage::kJit;
  if (begin->size() != 1 || begin->front().image != here || hooks.jit_return->image != here) {
    return absl::FailedPreconditionError("compileMethod is in another image than expected");
  }
  // What bpf/jit_hooks.bpf.c reads.
  if (hooks.jit_return->flags_from_frame != kJitFlagsFromFrameX64 &&
      hooks.jit_return->flags_from_frame != kJitFlagsFromFrameArm64) {
    return absl::UnimplementedError("compileMethod keeps its flags at another place than known");
  }
  // First the end: of what is seen to begin the end is then seen, too.
  absl::StatusOr<UniqueFd> done = options_.attach(WIRE_HOOK_COMPILED, false, path, hooks.jit_return->offset.value);
  RETURN_IF_ERROR(done.status());
  hooked.probes.push_back(*std::move(done));
  absl::StatusOr<UniqueFd> called = options_.attach(WIRE_HOOK_COMPILE, false, path, begin->front().offset.value);
  RETURN_IF_ERROR(called.status());
  hooked.entry_probe = *std::move(called);
  hooked.entry_offset = begin->front().offset.value;
  return absl::OkStatus();
}

JitStart* HookPlanter::StartOf(ProcessKey key) const {
  const auto target = targets_.find(key);
  return target == targets_.end() || target->second.jit == nullptr ? nullptr : &target->second.jit->start;
}

void HookPlanter::NoteCompiled(ProcessKey key, MonotonicTime time, uint32_t count) {
  if (!options_.rest_in_storms) return;
  const auto target = targets_.find(key);
  if (target == targets_.end() || target->second.jit == nullptr) return;
  HookedImage& hooked = *target->second.jit;
  const MonotonicTime last = std::exchange(hooked.last_compiled, time);
  if (last == MonotonicTime::Min()) hooked.counted_since = time;
  hooked.compiled += count;
  const auto seconds_since = [time](MonotonicTime then) {
    return static_cast<double>(time.ns - std::min(time, then).ns) / kSecondNs;
  };
  if (const double idle = seconds_since(std::max(last, hooked.counted_since)); idle >= 1) {
    hooked.storms = 0;
    hooked.calms += static_cast<int>(std::min<double>(idle, kSeconds));
    hooked.compiled = count;
    hooked.counted_since = time;
  } else if (const double seconds = seconds_since(hooked.counted_since); seconds >= 1) {
    const double rate = static_cast<double>(std::exchange(hooked.compiled, 0)) / seconds;
    hooked.counted_since = time;
    hooked.storms = rate > kStorm ? hooked.storms + 1 : 0;
    hooked.calms = rate < kCalm ? hooked.calms + 1 : 0;
  }
  if (hooked.storms >= kSeconds || hooked.calms >= kSeconds) RestOrReturn(hooked, hooked.storms >= kSeconds);
}

void HookPlanter::RestOrReturn(HookedImage& hooked, bool storm) {
  if (!hooked.file.valid() || storm != hooked.entry_probe.valid()) return;
  if (storm) {
    if (!hooked.start.proven()) return;
    if (removing_.valid() && removing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    ++counters_.rests;
    removing_ = std::async(std::launch::async, [probe = std::move(hooked.entry_probe)]() mutable { probe.reset(); });
    return;
  }
  absl::StatusOr<UniqueFd> probe =
      options_.attach(WIRE_HOOK_COMPILE, false, absl::StrCat("/proc/self/fd/", hooked.file.get()), hooked.entry_offset);
  if (probe.ok()) hooked.entry_probe = *std::move(probe);  // else the stack goes on telling
}

absl::Status HookPlanter::SeesSuspensions(ProcessKey key) const {
  const auto target = targets_.find(key);
  if (target == targets_.end() || target->second.runtime == nullptr) return NotWatched(key, ".NET runtime");
  return target->second.runtime->suspensions;
}

absl::Status HookPlanter::SeesCompilations(ProcessKey key) const {
  const auto target = targets_.find(key);
  if (target == targets_.end() || target->second.jit == nullptr) return NotWatched(key, ".NET compiler");
  return target->second.jit->compilations;
}

void HookPlanter::Forget(ProcessKey key) { targets_.erase(key); }

void HookPlanter::Finish() {
  std::vector<UniqueFd> probes;
  for (const auto& [image, hooked] : hooked_) {
    const std::shared_ptr<HookedImage> alive = hooked.lock();
    if (alive == nullptr) continue;
    std::vector<UniqueFd> its = alive->TakeProbes();
    std::move(its.begin(), its.end(), std::back_inserter(probes));
  }
  CloseUprobes(std::move(probes));
  if (removing_.valid()) removing_.wait();
}

}  // namespace clrsampler
