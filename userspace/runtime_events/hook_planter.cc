#include "runtime_events/hook_planter.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "capture/uprobe.h"
#include "clr/hooks/jit_flags.h"
#include "clr/runtime_image.h"
#include "formats/elf/elf_image.h"
#include "os/tape_answer.h"
#include "runtime_events/hook_cost.h"
#include "runtime_events/hook_file.h"
#include "runtime_events/hook_images.h"
#include "runtime_events/hook_places.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::Status NotWatched(ProcessKey key, absl::string_view what) {
  return WithHint(absl::NotFoundError(absl::StrCat("process ", key.tgid, " runs no ", what, " that can be opened")),
                  "clrsampler ps lists the .NET processes");
}

// The time between two looks at processes that run into hooks and are not followed.
constexpr uint64_t kOthersNs = 250'000'000;

bool AreSame(const ImageFile* a, const ImageFile* b) {
  return a == nullptr || b == nullptr ? a == b : IsSameFile(*a, *b);
}

}  // namespace

HookPlanter::HookPlanter(HookPlanterOptions options, RuntimeDiscovery& runtimes, ImageFiles& images, Notices& notices,
                         const Clock& clock)
    : options_(std::move(options)),
      runtimes_(runtimes),
      images_(images),
      notices_(notices),
      clock_(clock),
      debug_files_(images),
      states_([this](ProcessKey key, ProcessState&) { limiter_.Forget(key); }),
      limiter_(options_.cost_share, KindsWanted()),
      trap_ns_(kUsualTrapNs) {}

HookPlanter::~HookPlanter() { Finish(); }

int HookPlanter::KindsWanted() const {
  return static_cast<int>(std::ranges::count_if(kHookParts, [this](HookPart part) { return Wants(part); }));
}

void HookPlanter::HookRuntimeOf(const Process& process) {
  main_loop_.Check();
  if (process.exited != MonotonicTime::Max() || process.exec_announced != MonotonicTime::Max()) return;
  ProcessState& state = states_.Of(process);
  if (std::exchange(state.exec_count, process.exec_count) != process.exec_count) {
    state.hooked = {};
    state.has_other_runtime = false;
    limiter_.Forget(process.key);
  }
  if (options_.selects != nullptr) {
    const bool hooked = std::ranges::any_of(state.hooked, [](const auto& its) { return its != nullptr; });
    state.selected = hooked && options_.selects(process);
  }
  const auto lacks = [&](HookPart part) { return Wants(part) && state.hooked[IndexOf(part)] == nullptr; };
  if (std::ranges::none_of(kHookParts, lacks)) return;
  if (!state.look.Due(process.mappings, clock_)) return;
  const bool lacked_allocations = lacks(HookPart::kAllocations), lacked_exceptions = lacks(HookPart::kExceptions);
  const std::optional<DotNetRuntime> runtime = runtimes_.Find(process);
  if (!runtime) return;
  const std::string version = absl::StrCat(".NET ", runtime->version.Text());
  const bool holds_jit = runtime->form == DeploymentForm::kSingleFile;
  // A collector in a library of its own comes before the compiler, which comes some milliseconds after the runtime.
  const Mapping* const jit = holds_jit ? nullptr : FindJit(process);
  const bool knows_collector = holds_jit || jit != nullptr || runtime->kind == RuntimeImageKind::kNativeAot;
  Wanted wanted{.of_runtime = true};
  wanted.parts[IndexOf(HookPart::kSuspensions)] = lacks(HookPart::kSuspensions);
  wanted.parts[IndexOf(HookPart::kAllocations)] = lacked_allocations && knows_collector && !runtime->standalone_gc;
  wanted.parts[IndexOf(HookPart::kExceptions)] = lacked_exceptions;
  wanted.parts[IndexOf(HookPart::kCompilations)] = holds_jit && lacks(HookPart::kCompilations);
  if (wanted.parts != Wanted().parts) Hook(process, runtime->mapping, wanted, version, state);
  if (lacked_allocations && knows_collector && runtime->standalone_gc) {
    Wanted collector{.beside = &runtime->mapping};
    collector.parts[IndexOf(HookPart::kAllocations)] = true;
    Hook(process, *runtime->standalone_gc, collector, version, state);
  }
  if (jit != nullptr && lacks(HookPart::kCompilations)) {
    Wanted compiler;
    compiler.parts[IndexOf(HookPart::kCompilations)] = true;
    Hook(process, *jit, compiler, version, state);
  }
  for (const HookPart part : kHookParts) {
    const Hooked* hooked = state.hooked[IndexOf(part)].get();
    limiter_.Use(process.key, part, hooked == nullptr ? nullptr : hooked->set.get(),
                 process.compiles_since >= options_.began);
  }
  const Hooked* exceptions = state.hooked[IndexOf(HookPart::kExceptions)].get();
  if (lacked_exceptions && exceptions != nullptr) {
    state.hooked[IndexOf(HookPart::kExceptions)]->beyond_ns = BeyondExceptionNs(runtime->version.major);
    NoteCoverage(exceptions, HookPart::kExceptions, clock_.Now());
  }
  const Hooked* allocations = state.hooked[IndexOf(HookPart::kAllocations)].get();
  if (lacked_allocations && allocations != nullptr) {
    NoteCoverage(allocations, HookPart::kAllocations, clock_.Now());
  }
}

void HookPlanter::Hook(const Process& process, const Mapping& mapping, const Wanted& wanted, absl::string_view version,
                       ProcessState& state) {
  const absl::StatusOr<std::shared_ptr<const ImageFile>> image = images_.Get(process, mapping);
  const std::string who = absl::StrCat(mapping.path, " (", version, ")");
  const auto refuse = [&](HookPart part, absl::Status& status) {
    if (status.ok()) return;
    const std::string hint = HintOf(status);
    status = WithHint(
        absl::Status(status.code(), absl::StrCat(WhatIsSeen(part), " of ", who, " can't be seen: ", status.message())),
        hint);
    if (options_.say_refusals) notices_.Add("hooks", absl::StrCat(WhatIsSeen(part), who), status.message(), hint);
  };
  absl::erase_if(hooked_, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<const ImageFile> beside;
  if (wanted.beside != nullptr) beside = images_.Get(process, *wanted.beside).value_or(nullptr);
  Fresh fresh{};
  bool any_fresh = false;
  for (const HookPart part : kHookParts) {
    if (!wanted.parts[IndexOf(part)]) continue;
    if (!image.ok()) {
      absl::Status status = image.status();
      refuse(part, status);
      continue;
    }
    std::shared_ptr<Hooked>& hooked = state.hooked[IndexOf(part)];
    hooked = Known(**image, part);
    if (hooked != nullptr) {
      if (AreSame(hooked->beside.get(), beside.get())) continue;
      state.has_other_runtime = true;
      SayNoTypes(*hooked, absl::FailedPreconditionError("several runtimes use it"));
      continue;
    }
    hooked = std::make_shared<Hooked>();
    hooked->image = *image;
    hooked->beside = beside;
    hooked_[{image->get(), part}] = hooked;
    fresh[IndexOf(part)] = hooked.get();
    any_fresh = true;
  }
  if (!any_fresh) return;
  Plant(process, mapping, wanted, fresh);
  bool planted = true;
  for (const HookPart part : kHookParts) {
    if (Hooked* hooked = fresh[IndexOf(part)]) {
      planted &= hooked->status.ok();
      refuse(part, hooked->status);
      // The path decides where it is looked for. Another process may know the image by another path.
      if (hooked->by_symbols && !hooked->status.ok()) hooked_.erase({image->get(), part});
    }
  }
  ++(planted ? counters_.images_hooked : counters_.images_refused);
}

std::shared_ptr<HookPlanter::Hooked> HookPlanter::Known(const ImageFile& image, HookPart part) const {
  const auto same = hooked_.find({&image, part});
  if (same != hooked_.end()) return same->second.lock();
  // Containers of one image map one file, and a second set of probes would report each call of each of them twice.
  for (const auto& [key, entry] : hooked_) {
    std::shared_ptr<Hooked> shared = key.second == part ? entry.lock() : nullptr;
    if (shared != nullptr && IsSameFile(*shared->image, image)) return shared;
  }
  return nullptr;
}

void HookPlanter::Plant(const Process& process, const Mapping& mapping, const Wanted& wanted, const Fresh& fresh) {
  const ImageFile& image =
      *(*std::ranges::find_if(fresh, [](const Hooked* hooked) { return hooked != nullptr; }))->image;
  const auto refuse_all = [&](const absl::Status& status) {
    for (Hooked* hooked : fresh) {
      if (hooked != nullptr) hooked->status = status;
    }
  };
  const absl::StatusOr<ElfImage> elf = ElfImage::Parse(image.bytes());
  if (!elf.ok()) return refuse_all(elf.status());
  // The image's own bytes decide: the process chooses the form that it seems to have.
  const bool by_symbols = ReadRuntimeImage(*elf).kind == RuntimeImageKind::kNativeAot;
  for (Hooked* hooked : fresh) {
    if (hooked != nullptr) hooked->by_symbols = by_symbols;
  }
  std::optional<DebugFile> debug;
  if (by_symbols && !elf->symtab()) {
    debug = debug_files_.FindOnHost(process, mapping.path, image, *elf);
    if (!debug) {
      return refuse_all(WithHint(
          absl::NotFoundError("it has no symbols, and the host has no debug file of it that belongs to root or to the "
                              "program's owner"),
          "keep the .dbg file that dotnet publish writes beside the program, on the host and with the same owner. "
          "Those in containers are not taken, since a probe is in the file and so in every process of it"));
    }
  }
  HookImages code{.runtime_debug = debug ? &debug->image : nullptr};
  if (wanted.beside == nullptr) (wanted.of_runtime ? code.runtime : code.jit) = &*elf;
  const RuntimeHooks hooks = LocateHooks(code);
  if (debug && debug->file->content.damaged()) {
    return refuse_all(absl::DataLossError("the debug file was changed while it was read"));
  }
  const absl::StatusOr<std::shared_ptr<const OpenedFile>> file = OpenToHook(process, mapping, image);
  if (!file.ok()) return refuse_all(file.status());
  for (const HookPart part : kHookParts) {
    Hooked* hooked = fresh[IndexOf(part)];
    if (hooked == nullptr) continue;
    absl::StatusOr<std::vector<HookPlace>> places = PlacesOf(part, hooks, *elf, wanted.of_runtime, *hooked);
    hooked->status = places.status();
    if (!places.ok()) continue;
    hooked->set = std::make_unique<HookSet>(options_.attach, clock_);
    // The first event decides: its facts about an object hold from then on.
    if (part == HookPart::kAllocations) {
      if (wanted.beside == nullptr) {
        AddNotedSuspensions(hooks, *file, *hooked);
      } else {
        AddNotedSuspensionsBeside(process, *wanted.beside, *hooked);
      }
    }
    hooked->set->Add(*file, *places);
    hooked->status = hooked->set->Plant();
    if (!hooked->status.ok()) hooked->set = nullptr;
  }
}

absl::StatusOr<std::vector<HookPlace>> HookPlanter::PlacesOf(HookPart part, const RuntimeHooks& hooks,
                                                             const ElfImage& elf, bool of_runtime, Hooked& hooked) {
  if (part == HookPart::kSuspensions) return SuspensionPlaces(hooks, hooked.image->path, hooked);
  if (part == HookPart::kCompilations) return CompilationPlaces(hooks, of_runtime);
  auto places = part == HookPart::kAllocations ? AllocationReportPlaces(elf) : ExceptionPlaces(elf);
  if (hooked.image->content.damaged()) return absl::DataLossError("the file was changed while it was read");
  return places;
}

void HookPlanter::AddNotedSuspensions(const RuntimeHooks& hooks, const std::shared_ptr<const OpenedFile>& file,
                                      Hooked& hooked) {
  const absl::StatusOr<std::vector<HookPlace>> places = NotedSuspensionPlaces(hooks);
  hooked.sees_types = places.ok();
  if (places.ok()) return hooked.set->Add(file, *places);
  SayNoTypes(hooked, places.status());
}

void HookPlanter::AddNotedSuspensionsBeside(const Process& process, const Mapping& runtime, Hooked& hooked) {
  if (hooked.beside == nullptr) return SayNoTypes(hooked, absl::NotFoundError("its runtime can't be opened"));
  const absl::StatusOr<ElfImage> elf = ElfImage::Parse(hooked.beside->bytes());
  const auto file = OpenToHook(process, runtime, *hooked.beside);
  if (!elf.ok() || !file.ok()) return SayNoTypes(hooked, elf.ok() ? file.status() : elf.status());
  AddNotedSuspensions(LocateHooks({.runtime = &*elf}), *file, hooked);
}

void HookPlanter::SayNoTypes(const Hooked& hooked, const absl::Status& status) {
  if (!options_.say_refusals) return;
  notices_.Add("allocation_types", hooked.image->path,
               absl::StrCat("types of allocated objects in ", hooked.image->path, " are not known: ", status.message()),
               HintOf(status));
}

absl::StatusOr<std::vector<HookPlace>> HookPlanter::SuspensionPlaces(const RuntimeHooks& hooks, const std::string& path,
                                                                     Hooked& hooked) {
  ASSIGN_OR_RETURN(SuspensionHooks found, SuspensionHookPlaces(hooks, options_.resumed));
  if (!found.collections.ok() && options_.say_refusals) {
    notices_.Add("gc_hooks", path,
                 absl::StrCat("generations of collections in ", path, " are not known: ", found.collections.message()),
                 HintOf(found.collections));
  }
  hooked.sees_returns = found.sees_returns;
  return std::move(found.places);
}

HookPlanter::Hooked* HookPlanter::HookedOf(ProcessKey key, HookPart part) const {
  const ProcessState* const state = states_.Find(key);
  return state == nullptr ? nullptr : state->hooked[IndexOf(part)].get();
}

template <typename Function>
void HookPlanter::ForEachPlanted(Function&& function) const {
  for (const auto& [key, entry] : hooked_) {
    const std::shared_ptr<Hooked> hooked = entry.lock();
    if (hooked != nullptr && hooked->set != nullptr && hooked->set->planted()) function(*hooked, key.second);
  }
}

JitStart* HookPlanter::StartOf(ProcessKey key) const {
  Hooked* jit = HookedOf(key, HookPart::kCompilations);
  return jit == nullptr ? nullptr : &jit->start;
}

void HookPlanter::NoteCompiled(ProcessKey key, MonotonicTime time, uint32_t count) {
  main_loop_.Check();
  Hooked* jit = HookedOf(key, HookPart::kCompilations);
  if (!options_.drop_entry_probe_in_storms || jit == nullptr || jit->set == nullptr) return;
  jit->rate.Note(time, count);
  if (jit->rate.storm() && jit->start.proven() && !jit->set->is_detached(WIRE_HOOK_COMPILE)) {
    counters_.left_out += jit->set->DetachProbe(WIRE_HOOK_COMPILE) ? 1 : 0;
  } else if (jit->rate.calm()) {
    jit->set->ReattachProbe(WIRE_HOOK_COMPILE);
  }
}

uint64_t HookPlanter::CostNs(HookPart part, uint64_t hits, const Hooked* hooked) const {
  const bool measured = hooked != nullptr && hooked->beyond_ns != 0;
  return hits * (trap_ns_ + (measured ? hooked->beyond_ns : BeyondTrapNs(part)));
}

bool HookPlanter::Admit(ProcessKey key, HookPart part, MonotonicTime time, uint64_t hits, uint64_t more_ns) {
  main_loop_.Check();
  if (limiter_.limited() && hits_ < kHitsThatMatter && (hits_ += hits) >= kHitsThatMatter) {
    measuring_ = std::async(std::launch::async, options_.measure_trap);
  }
  Hooked* hooked = HookedOf(key, part);
  const bool has_set = hooked != nullptr && hooked->set != nullptr;
  if (limiter_.Spend(key, part, time, CostNs(part, hits, hooked) + more_ns) && has_set) {
    if (IsEstimated(part)) {
      hooked->exhausted_by = key.tgid;  // at a moment at which the process's CPU time is known, too: Tick
    } else {
      Detach(*hooked, part, key.tgid, time);
    }
  }
  bool complete = true, was_detached = false;
  const auto look_at = [&](const HookSet& set) {
    complete &= set.IsCompleteAt(time);
    was_detached |= set.was_detached();
  };
  if (has_set) {
    look_at(*hooked->set);
  } else {
    // It was not looked at yet. The file in which it was hit is not known.
    ForEachPlanted([&](const Hooked& one, HookPart its) {
      if (its == part) look_at(*one.set);
    });
  }
  if (!complete) ++(was_detached ? counters_.not_admitted : counters_.while_planting);
  return complete;
}

void HookPlanter::Detach(Hooked& hooked, HookPart part, uint32_t cause, MonotonicTime time) {
  if (IsEstimated(part) && !hooked.set->detached()) NoteCoverage(&hooked, part, time);
  if (!hooked.set->Detach(time)) return;
  if (IsEstimated(part)) {
    NoteCoverage(&hooked, part, time);
    NoteCountsOf(hooked, part);
  }
  ++(IsEstimated(part) ? counters_.estimated_detachments : counters_.detachments).times;
  Detached detached{part, cause, {}};
  for (const auto& [key, state] : states_) {
    if (state.hooked[IndexOf(part)].get() == &hooked) detached.processes.push_back(key);
  }
  detached_.push_back(std::move(detached));
}

void HookPlanter::Reattach(Hooked& hooked, HookPart part) {
  // Where the stack tells the beginning of a compilation, that probe comes back only when hits are rarer.
  if (part == HookPart::kCompilations && options_.drop_entry_probe_in_storms && hooked.start.proven()) {
    hooked.set->DetachProbe(WIRE_HOOK_COMPILE);
  }
  const absl::Status returned = hooked.set->Reattach();
  if (IsEstimated(part)) {
    NoteCoverage(&hooked, part, clock_.Now());
    NoteCountsOf(hooked, part);
  }
  hooked.rate.Restart(clock_.Now());
  if (returned.ok()) return;
  const bool for_good = !hooked.set->planted();
  const std::string what =
      absl::StrCat("the probes for ", WhatIsSeen(part), " in ", hooked.image->path, " could not come back");
  notices_.Add("hooks_gone", absl::StrCat(WhatIsSeen(part), hooked.image->path),
               absl::StrCat(what, for_good ? ": " : ", and will be tried again every 10 s: ", returned.message()),
               HintOf(returned));
  if (for_good) hooked.status = absl::Status(returned.code(), absl::StrCat(what, ": ", returned.message()));
}

void HookPlanter::ChargeOthers(MonotonicTime now) {
  if (!limiter_.limited() || options_.hits_of_others == nullptr || hooked_.empty()) return;
  if (others_asked_ != MonotonicTime::Min() && now.ns - std::min(now, others_asked_).ns < kOthersNs) return;
  others_asked_ = now;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t> hits;
  for (const HitsOfOthers& other : options_.hits_of_others()) {
    const std::pair<uint32_t, uint32_t> who{other.who.tgid, other.who.part};
    hits[who] = other.hits;
    const auto before = hits_of_others_.find(who);
    const bool goes_on = before != hits_of_others_.end() && before->second <= other.hits;
    const uint64_t fresh = other.hits - (goes_on ? before->second : 0);
    if (other.who.part >= kHookParts.size()) continue;
    const HookPart part = kHookParts[other.who.part];
    if (fresh == 0 || !limiter_.SpendOther(other.who.tgid, part, now, CostNs(part, fresh, nullptr))) continue;
    ForEachPlanted([&](Hooked& hooked, HookPart its) {
      // As in Tick, counts and CPU time must end at the same moment.
      if (its == part) Detach(hooked, part, other.who.tgid, IsEstimated(part) ? clock_.Now() : now);
    });
  }
  hits_of_others_ = std::move(hits);
}

void HookPlanter::TakeMeasured() {
  using Measured = std::optional<absl::StatusOr<uint64_t>>;
  const Measured measured = Taped(
      options_.tape,
      [this]() -> Measured {
        if (measuring_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
        return measuring_.get();
      },
      "trap");
  if (!measured) return;
  measuring_ = {};
  if (measured->ok()) {
    trap_ns_ = **measured;
  } else {
    notices_.Add("trap_not_measured", "",
                 absl::StrCat("the cost of probes here could not be measured: ", measured->status().message()));
  }
}

void HookPlanter::Tick(MonotonicTime now) {
  main_loop_.Check();
  const uint64_t passed_ns = last_tick_ == MonotonicTime::Min() ? 0 : now.ns - std::min(now, last_tick_).ns;
  last_tick_ = now;
  if (measuring_.valid()) TakeMeasured();
  for (const auto& [key, state] : states_) {
    const auto is_detached = [&hooks = state.hooked](HookPart part) {
      const Hooked* hooked = hooks[IndexOf(part)].get();
      return hooked != nullptr && hooked->set != nullptr && hooked->set->detached();
    };
    if (is_detached(HookPart::kSuspensions) || is_detached(HookPart::kCompilations))
      counters_.detachments.detached_ns += passed_ns;
    if (is_detached(HookPart::kAllocations) || is_detached(HookPart::kExceptions))
      counters_.estimated_detachments.detached_ns += passed_ns;
  }
  ChargeOthers(now);
  for (const HookPart part : kHookParts) {
    if (IsEstimated(part) && Wants(part)) NoteCoverage(nullptr, part, now);
  }
  NoteCountsDue(now);
  ForEachPlanted([&](Hooked& hooked, HookPart part) {
    // The counts and the CPU time that they are counted for must end at the same moment, and `now` has passed.
    if (const uint32_t cause = std::exchange(hooked.exhausted_by, 0); cause != 0) {
      Detach(hooked, part, cause, clock_.Now());
    }
    if (hooked.set->MayReattach() && !limiter_.MustDetach(hooked.set.get(), part, now)) Reattach(hooked, part);
  });
}

bool HookPlanter::SeesReturns(ProcessKey key) const {
  const Hooked* hooked = HookedOf(key, HookPart::kSuspensions);
  return hooked == nullptr || hooked->sees_returns;
}

MonotonicTime HookPlanter::SeesTypesSince(ProcessKey key) const {
  const ProcessState* const state = states_.Find(key);
  if (state == nullptr || state->has_other_runtime) return MonotonicTime::Max();
  const Hooked* hooked = state->hooked[IndexOf(HookPart::kAllocations)].get();
  if (hooked == nullptr || hooked->set == nullptr || !hooked->sees_types) return MonotonicTime::Max();
  return hooked->set->complete_since();
}

bool HookPlanter::ReportsMethods(ProcessKey key) const {
  const Hooked* jit = HookedOf(key, HookPart::kCompilations);
  return jit != nullptr && jit->set != nullptr && jit->status.ok() && !jit->set->detached();
}

MonotonicTime HookPlanter::SeesAllSince(ProcessKey key, HookPart part) const {
  const Hooked* hooked = HookedOf(key, part);
  return hooked == nullptr || hooked->set == nullptr ? MonotonicTime::Min() : hooked->set->complete_since();
}

absl::Status HookPlanter::Check(ProcessKey key, HookPart part) const {
  const Hooked* hooked = HookedOf(key, part);
  if (hooked != nullptr) return hooked->status;
  return NotWatched(key, part == HookPart::kCompilations ? ".NET compiler" : ".NET runtime");
}

void HookPlanter::Finish() {
  main_loop_.Check();
  std::vector<UniqueFd> probes;
  ForEachPlanted([&](Hooked& hooked, HookPart) {
    std::vector<UniqueFd> its = hooked.set->TakeProbes();
    std::move(its.begin(), its.end(), std::back_inserter(probes));
  });
  CloseUprobes(std::move(probes));
  ForEachPlanted([](Hooked& hooked, HookPart) { hooked.set->Await(); });
  if (measuring_.valid()) measuring_.wait();
}

}  // namespace clrsampler
