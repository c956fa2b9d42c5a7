#include "pipeline/hook_planter.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
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

// A trap where none was measured yet, and what a hit costs beyond it: 0.3 to 1.4 us for our program, and what the
// thread has to fetch again into its caches. By the work that a program which does little else got done, a hit cost
// it 1.7 us in all on one machine, with traps of 0.57 us, and 3.7 us on another, with traps of 0.70 us
// (docs/performance.md).
constexpr uint64_t kUsualTrapNs = 600;
constexpr uint64_t kBeyondTrapNs = 3'000;
// Fewer hits in a whole run cost nothing that could be limited.
constexpr uint64_t kHitsThatMatter = 1'000;

bool IsDone(const std::future<void>& done) {
  return !done.valid() || done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

struct HookPlanter::HookedImage {
  std::shared_ptr<const ImageFile> image;

  struct Place {
    wire_hook hook;
    bool member;
    uint64_t offset;
  };
  std::vector<Place> places;  // in the order in which they were planted
  std::vector<UniqueFd> probes;
  // Where compilations begin: that probe may rest alone.
  UniqueFd entry_probe;
  uint64_t entry_offset = 0;

  UniqueFd file;              // the same that they come back to after a rest
  std::future<void> removal;  // of probes that rest: the kernel takes some 60 ms
  bool rests = false, has_rested = false;
  // Since when all of them are there. While some are missing, what the others say has no meaning.
  MonotonicTime complete_since = MonotonicTime::Max();

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

HookPlanter::HookPlanter(HookPlanterOptions options, RuntimeDiscovery& runtimes, ImageFiles& images, Notices& notices,
                         const Clock& clock)
    : options_(std::move(options)),
      runtimes_(runtimes),
      images_(images),
      notices_(notices),
      clock_(clock),
      debug_files_(images),
      trap_ns_(kUsualTrapNs) {}

HookPlanter::~HookPlanter() { Finish(); }

void HookPlanter::Look(const Process& process) {
  if (process.exited != MonotonicTime::Max() || process.exec_announced != MonotonicTime::Max()) return;
  const HookBudget budget(options_.share, process.compiles_since >= options_.began);
  Target& target = targets_.try_emplace(process.key, Target{.budget = budget}).first->second;
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
  hooked->complete_since = clock_.Now();
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
    const size_t before = hooked.probes.size();  // as many as places
    status = plant_all();
    if (status.ok()) return;
    std::vector<UniqueFd> half(std::make_move_iterator(hooked.probes.begin() + static_cast<std::ptrdiff_t>(before)),
                               std::make_move_iterator(hooked.probes.end()));
    hooked.probes.resize(before);
    hooked.places.resize(before);
    CloseUprobes(std::move(half));
  };
  if (options_.suspensions && parts.runtime) {
    plant([&] { return PlantSuspensions(hooks, path, hooked); }, hooked.suspensions);
  }
  if (options_.compilations && parts.jit) {
    plant([&] { return PlantCompilations(hooks, parts, path, hooked); }, hooked.compilations);
  }
  const bool may_rest = options_.share > 0 || (hooked.entry_probe.valid() && options_.rest_in_storms);
  if (may_rest) hooked.file = std::move(file->fd);
}

absl::Status HookPlanter::Attach(wire_hook hook, bool member, uint64_t offset, const std::string& path,
                                 HookedImage& hooked) {
  absl::StatusOr<UniqueFd> probe = options_.attach(hook, member, path, offset);
  RETURN_IF_ERROR(probe.status());
  hooked.places.push_back({hook, member, offset});
  hooked.probes.push_back(*std::move(probe));
  return absl::OkStatus();
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
      RETURN_IF_ERROR(Attach(place.hook, point.argument_shift != 0, point.offset.value, path, hooked));
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
  RETURN_IF_ERROR(Attach(WIRE_HOOK_COMPILED, false, hooks.jit_return->offset.value, path, hooked));
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
  if (!hooked.file.valid() || hooked.rests || storm != hooked.entry_probe.valid()) return;
  if (storm) {
    if (!hooked.start.proven() || !IsDone(hooked.removal)) return;
    ++counters_.rests;
    hooked.removal =
        std::async(std::launch::async, [probe = std::move(hooked.entry_probe)]() mutable { probe.reset(); });
    return;
  }
  absl::StatusOr<UniqueFd> probe =
      options_.attach(WIRE_HOOK_COMPILE, false, absl::StrCat("/proc/self/fd/", hooked.file.get()), hooked.entry_offset);
  if (probe.ok()) hooked.entry_probe = *std::move(probe);  // else the stack goes on telling
}

bool HookPlanter::Admit(ProcessKey key, HookPart part, MonotonicTime time, uint64_t hits, uint64_t more_ns) {
  const auto found = targets_.find(key);
  if (found == targets_.end()) return true;
  Target& target = found->second;
  if (options_.share > 0) Charge(target, part, time, hits, more_ns);
  const std::shared_ptr<HookedImage>& hooked = target.Of(part);
  if (hooked == nullptr || (!hooked->rests && time >= hooked->complete_since)) return true;
  ++(hooked->rests || hooked->has_rested ? counters_.not_admitted : counters_.while_planting);
  return false;
}

void HookPlanter::Charge(Target& target, HookPart part, MonotonicTime time, uint64_t hits, uint64_t more_ns) {
  if (hits_ < kHitsThatMatter && (hits_ += hits) >= kHitsThatMatter) {
    measuring_ = std::async(std::launch::async, options_.measure_trap);
  }
  const uint64_t cost_ns = hits * (trap_ns_ + kBeyondTrapNs) + more_ns;
  target.budget.Spend(time, cost_ns);
  target.spent_ns[static_cast<size_t>(part)] += cost_ns;
  if (target.budget.Exhausted(time)) GoWithout(target, time);
}

void HookPlanter::GoWithout(Target& target, MonotonicTime time) {
  constexpr HookPart kParts[] = {HookPart::kSuspensions, HookPart::kCompilations};
  const auto spent_ns = [&](HookPart part) { return target.spent_ns[static_cast<size_t>(part)]; };
  const auto rests = [&](HookPart part) { return target.Of(part) != nullptr && target.Of(part)->rests; };
  if (!rests(HookPart::kSuspensions) && !rests(HookPart::kCompilations)) {
    const HookPart more = spent_ns(HookPart::kSuspensions) > spent_ns(HookPart::kCompilations) ? kParts[0] : kParts[1];
    if (target.Of(more) == nullptr || !Rest(target.Of(more))) return;
    ++counters_.budget_rests;
    target.spent_ns = {};
    target.rests_since = time;
    return;
  }
  for (const HookPart part : kParts) {
    if (target.Of(part) == nullptr || rests(part)) continue;
    const double paid_for_ns = options_.share * static_cast<double>(time.ns - std::min(time, target.rests_since).ns +
                                                                    HookBudget::kSecondsAtOnce * kSecondNs / 4);
    if (static_cast<double>(spent_ns(part)) > paid_for_ns) Rest(target.Of(part));
  }
}

// Those of all processes that map the file: a probe is in the file.
bool HookPlanter::Rest(const std::shared_ptr<HookedImage>& hooked) {
  if (hooked->rests || !hooked->file.valid() || !IsDone(hooked->removal)) return false;
  hooked->rests = hooked->has_rested = true;
  hooked->removal =
      std::async(std::launch::async, [probes = hooked->TakeProbes()]() mutable { CloseUprobes(std::move(probes)); });
  for (const auto& [key, target] : targets_) {
    if (target.runtime == hooked) rested_.emplace_back(key, HookPart::kSuspensions);
    if (target.jit == hooked) rested_.emplace_back(key, HookPart::kCompilations);
  }
  return true;
}

void HookPlanter::Return(HookedImage& hooked) {
  hooked.rests = false;
  hooked.compiled = 0;
  hooked.storms = hooked.calms = 0;  // nothing was seen meanwhile
  const absl::Cleanup all_are_back = [&] {
    hooked.complete_since = hooked.counted_since = hooked.last_compiled = clock_.Now();
  };
  const std::string path = absl::StrCat("/proc/self/fd/", hooked.file.get());
  const auto give_up = [&](const absl::Status& error) {
    notices_.Add("hooks_gone", hooked.image->path,
                 absl::StrCat("probes in ", hooked.image->path, " could not come back: ", error.message()),
                 HintOf(error));
    for (absl::Status* status : {&hooked.suspensions, &hooked.compilations}) status->Update(error);
    CloseUprobes(hooked.TakeProbes());
    hooked.places.clear();
  };
  for (const HookedImage::Place& place : hooked.places) {
    absl::StatusOr<UniqueFd> probe = options_.attach(place.hook, place.member, path, place.offset);
    if (!probe.ok()) return give_up(probe.status());
    hooked.probes.push_back(*std::move(probe));
  }
  // Where the stack tells the beginning of a compilation, the probe comes back with calmer times only.
  if (hooked.entry_offset == 0 || (options_.rest_in_storms && hooked.start.proven())) return;
  absl::StatusOr<UniqueFd> entry = options_.attach(WIRE_HOOK_COMPILE, false, path, hooked.entry_offset);
  if (!entry.ok()) return give_up(entry.status());
  hooked.entry_probe = *std::move(entry);
}

void HookPlanter::Tick(MonotonicTime now) {
  const uint64_t passed_ns = last_tick_ == MonotonicTime::Min() ? 0 : now.ns - std::min(now, last_tick_).ns;
  last_tick_ = now;
  if (measuring_.valid() && measuring_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    const absl::StatusOr<uint64_t> measured = measuring_.get();
    if (measured.ok()) {
      trap_ns_ = *measured;
    } else {
      notices_.Add("trap_not_measured", "",
                   absl::StrCat("what probes cost here could not be measured: ", measured.status().message()));
    }
  }
  absl::flat_hash_set<HookedImage*> resting, to_stay;
  for (auto& [key, target] : targets_) {
    const bool exhausted = target.budget.Exhausted(now);
    bool rests = false;
    for (HookedImage* hooked : {target.runtime.get(), target.jit.get()}) {
      if (hooked == nullptr || !hooked->rests) continue;
      rests = true;
      resting.insert(hooked);
      if (exhausted || !IsDone(hooked->removal)) to_stay.insert(hooked);
    }
    if (rests) counters_.rested_ns += passed_ns;
    if (target.budget.full()) target.spent_ns = {};
  }
  for (HookedImage* hooked : resting) {
    if (!to_stay.contains(hooked)) Return(*hooked);
  }
}

bool HookPlanter::TellsOfMethods(ProcessKey key) const {
  const auto target = targets_.find(key);
  return target != targets_.end() && target->second.jit != nullptr && target->second.jit->compilations.ok() &&
         !target->second.jit->rests;
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
  for (const auto& [image, hooked] : hooked_) {
    if (const auto alive = hooked.lock(); alive != nullptr && alive->removal.valid()) alive->removal.wait();
  }
  if (measuring_.valid()) measuring_.wait();
}

}  // namespace clrsampler
