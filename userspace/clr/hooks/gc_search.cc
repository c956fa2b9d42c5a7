#include "clr/hooks/gc_search.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clr/hooks/code_scan_arm64.h"
#include "clr/hooks/code_scan_x64.h"
#include "clr/hooks/image_code.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMinGcSlots = 45;
// GCToEEInterface::SuspendEE has 0x33 bytes. Larger functions that suspend, among them the virtual ones of another
// table of 19 functions, do so as a part of something else.
constexpr size_t kMaxWrapperBytes = 0x60;
// A static copy lacks the instructions that move the arguments, or has them.
constexpr size_t kMaxCopyDifference = 0x20;
// DiagGCEnd has 0xcc bytes, do_post_gc 0xe5d. This bounds the number of comparisons.
constexpr size_t kMaxBodyBytes = 0x1000, kMaxCollectorBytes = 0x10000;
constexpr size_t kCollectors = 2;  // workstation and server

struct Slot {
  absl::string_view name;
  uint64_t index;
  absl::string_view arguments;  // as in JumpThunk
};
constexpr Slot kGcStartWork{"GcStartWork", 3, "44"};
constexpr Slot kGcDone{"GcDone", 6, "4"};
constexpr Slot kDiagGcStart{"DiagGCStart", 20, "44"};
constexpr Slot kDiagGcEnd{"DiagGCEnd", 22, "8444"};

bool Contains(const std::vector<FunctionIndex>& sorted, FunctionIndex function) {
  return std::binary_search(sorted.begin(), sorted.end(), function);
}

void SortOnce(std::vector<FunctionIndex>& functions) {
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
}

// Small functions that call `function`, and jump thunks to those.
std::vector<FunctionIndex> Wrappers(const ImageCode& code, FunctionIndex function) {
  std::vector<FunctionIndex> wrappers;
  for (const FunctionIndex caller : code.CallersOf(function)) {
    if (code.Code(caller).size() <= kMaxWrapperBytes) wrappers.push_back(caller);
  }
  const size_t direct = wrappers.size();
  for (size_t i = 0; i < direct; ++i) {
    for (const FunctionIndex caller : code.CallersOf(wrappers[i])) {
      const auto thunk = code.JumpThunkOf(caller);
      if (thunk && thunk->target == wrappers[i]) wrappers.push_back(caller);
    }
  }
  SortOnce(wrappers);
  return wrappers;
}

struct GcTable {
  VirtualAddress at;
  size_t slots = 0;
};

absl::StatusOr<GcTable> FindTable(const ImageCode& code, FunctionIndex suspend_ee, FunctionIndex restart_ee) {
  const std::vector<FunctionIndex> suspends = Wrappers(code, suspend_ee), restarts = Wrappers(code, restart_ee);
  std::optional<GcTable> found;
  for (const RelativeRelocation& row : code.relocations().all()) {
    const auto first = code.functions().StartingAt(row.target);
    if (!first || !Contains(suspends, *first)) continue;
    const auto second = code.FunctionInSlot({row.slot.value + kSlotBytes});
    if (!second || !Contains(restarts, *second)) continue;
    // A run of slots begins here. The word before it holds no function: it is type information, which is left out. So
    // each run of slots is counted once.
    if (code.FunctionInSlot({row.slot.value - kSlotBytes})) continue;
    const size_t slots = code.TableSlots(row.slot);
    if (slots < kMinGcSlots) continue;
    if (found) {
      return absl::FailedPreconditionError(absl::StrCat("two tables look like the collector's callbacks: at ",
                                                        AddressText(found->at), " and ", AddressText(row.slot)));
    }
    found = GcTable{row.slot, slots};
  }
  if (!found) {
    return absl::NotFoundError(absl::StrCat("no table of ", kMinGcSlots,
                                            " functions or more begins with two that lead to SuspendEE and RestartEE"));
  }
  return *found;
}

// The callers of a function, without the thunk of its slot.
std::vector<FunctionIndex> CallersWithoutThunks(const ImageCode& code, FunctionIndex function) {
  std::vector<FunctionIndex> callers;
  for (const FunctionIndex caller : code.CallersOf(function)) {
    const auto thunk = code.JumpThunkOf(caller);
    if (!thunk || thunk->target != function) callers.push_back(caller);
  }
  return callers;
}

bool AreTwoOthers(const std::vector<FunctionIndex>& a, const std::vector<FunctionIndex>& b) {
  std::vector<FunctionIndex> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return a.size() == kCollectors && b.size() == kCollectors && both.empty();
}

std::string CallersText(const ImageCode& code, const std::vector<FunctionIndex>& callers) {
  return absl::StrCat(AddressText(code.Start(callers[0])), " and ", AddressText(code.Start(callers[1])));
}

// .NET 8: the only other function that refers to exactly what `body` refers to.
absl::StatusOr<FunctionIndex> ExactCopy(const ImageCode& code, FunctionIndex body, const Slot& slot) {
  const ImageCode::References wanted = code.ReferencesOf(body);
  if (wanted.calls.empty()) return absl::NotFoundError(absl::StrCat(slot.name, " calls nothing that tells its copy"));
  // A copy is among the callers of the function that is called least.
  const FunctionIndex rarest = *std::min_element(wanted.calls.begin(), wanted.calls.end(), [&](auto a, auto b) {
    return code.CallersOf(a).size() < code.CallersOf(b).size();
  });
  std::optional<FunctionIndex> found;
  for (const FunctionIndex candidate : code.CallersOf(rarest)) {
    const size_t a = code.Code(candidate).size(), b = code.Code(body).size();
    if (candidate == body || std::max(a, b) - std::min(a, b) > kMaxCopyDifference) continue;
    const ImageCode::References references = code.ReferencesOf(candidate);
    if (references.calls != wanted.calls || references.data != wanted.data) continue;
    if (found) return absl::FailedPreconditionError(absl::StrCat(slot.name, " has two static copies"));
    found = candidate;
  }
  if (!found) return absl::NotFoundError(absl::StrCat(slot.name, " has no static copy"));
  return *found;
}

// All that a function refers to, each once; functions by their addresses.
std::vector<uint64_t> ReferredTo(const ImageCode& code, FunctionIndex function) {
  const ImageCode::References references = code.ReferencesOf(function);
  std::vector<uint64_t> all;
  for (const FunctionIndex callee : references.calls) all.push_back(code.Start(callee).value);
  for (const VirtualAddress data : references.data) all.push_back(data.value);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// .NET 8: the only function that exactly `callers` call and that shares three quarters of what `body` refers to.
absl::StatusOr<FunctionIndex> NearCopy(const ImageCode& code, FunctionIndex body,
                                       const std::vector<FunctionIndex>& callers, const Slot& slot) {
  if (code.Code(body).size() > kMaxBodyBytes || code.Code(callers[0]).size() > kMaxCollectorBytes) {
    return absl::FailedPreconditionError(absl::StrCat(slot.name, " is larger than in any known version"));
  }
  const std::vector<uint64_t> wanted = ReferredTo(code, body);
  std::vector<FunctionIndex> candidates = code.ReferencesOf(callers[0]).calls;
  SortOnce(candidates);
  std::optional<FunctionIndex> found;
  for (const FunctionIndex candidate : candidates) {
    const std::span<const FunctionIndex> its_callers = code.CallersOf(candidate);
    if (!std::equal(its_callers.begin(), its_callers.end(), callers.begin(), callers.end())) continue;
    if (code.Code(candidate).size() > kMaxBodyBytes) continue;
    const std::vector<uint64_t> references = ReferredTo(code, candidate);
    std::vector<uint64_t> shared;
    std::set_intersection(references.begin(), references.end(), wanted.begin(), wanted.end(),
                          std::back_inserter(shared));
    if (wanted.empty() || shared.size() * 4 < wanted.size() * 3) continue;
    if (found) return absl::FailedPreconditionError(absl::StrCat(slot.name, " has two static copies"));
    found = candidate;
  }
  if (!found) return absl::NotFoundError(absl::StrCat(slot.name, " has no static copy"));
  return *found;
}

absl::StatusOr<FunctionIndex> TargetOfThunk(const ImageCode& code, FunctionIndex function, const Slot& slot) {
  const auto thunk = code.JumpThunkOf(function);
  if (!thunk)
    return absl::FailedPreconditionError(absl::StrCat("slot ", slot.index, ", ", slot.name, ", is no jump thunk"));
  if (thunk->arguments != slot.arguments) {
    return absl::FailedPreconditionError(
        absl::StrCat("slot ", slot.index, " passes on arguments of other sizes than ", slot.name, " has"));
  }
  return thunk->target;
}

}  // namespace

absl::StatusOr<GcCallbacks> FindGcCallbacks(const ImageCode& code, FunctionIndex suspend_ee, FunctionIndex restart_ee) {
  ASSIGN_OR_RETURN(const GcTable table, FindTable(code, suspend_ee, restart_ee));
  const auto in_slot = [&](const Slot& slot) {
    return *code.FunctionInSlot({table.at.value + slot.index * kSlotBytes});  // there are kMinGcSlots
  };
  const bool thunks = code.JumpThunkOf(*code.FunctionInSlot(table.at)).has_value();
  const auto static_function = [&](const Slot& slot) {
    return thunks ? TargetOfThunk(code, in_slot(slot), slot) : ExactCopy(code, in_slot(slot), slot);
  };
  ASSIGN_OR_RETURN(const FunctionIndex start_work, static_function(kGcStartWork));
  ASSIGN_OR_RETURN(const FunctionIndex done, static_function(kGcDone));
  const std::vector<FunctionIndex> garbage_collect = CallersWithoutThunks(code, start_work);
  const std::vector<FunctionIndex> do_post_gc = CallersWithoutThunks(code, done);
  if (!AreTwoOthers(garbage_collect, do_post_gc)) {
    return absl::FailedPreconditionError(absl::StrCat("GcStartWork has ", garbage_collect.size(),
                                                      " callers and GcDone ", do_post_gc.size(),
                                                      " instead of two each, none of them common"));
  }
  const auto diagnostics = [&](const Slot& slot, const std::vector<FunctionIndex>& callers) {
    return thunks ? TargetOfThunk(code, in_slot(slot), slot) : NearCopy(code, in_slot(slot), callers, slot);
  };
  const absl::StatusOr<FunctionIndex> start = diagnostics(kDiagGcStart, garbage_collect);
  const absl::StatusOr<FunctionIndex> end = diagnostics(kDiagGcEnd, do_post_gc);
  if (!start.ok()) return start.status();
  if (!end.ok()) return end.status();
  if (CallersWithoutThunks(code, *start) != garbage_collect) {
    return absl::FailedPreconditionError("DiagGCStart has other callers than GcStartWork");
  }
  if (CallersWithoutThunks(code, *end) != do_post_gc) {
    return absl::FailedPreconditionError("DiagGCEnd has other callers than GcDone");
  }

  const std::string about_table =
      absl::StrCat("the collector's table of ", table.slots, " callbacks at ", AddressText(table.at));
  const auto callbacks = [&](const Slot& slot, FunctionIndex function, const Slot& twin,
                             const std::vector<FunctionIndex>& callers) {
    std::vector<GcCallback> result;
    result.push_back(
        {function, false,
         absl::StrCat(thunks ? "where slot " : "the static copy of slot ", slot.index, thunks ? " leads in " : " of ",
                      about_table, "; it has the callers of ", twin.name, ", ", CallersText(code, callers))});
    if (!thunks) result.push_back({in_slot(slot), true, absl::StrCat("slot ", slot.index, " of ", about_table)});
    return result;
  };
  return GcCallbacks{done, callbacks(kDiagGcStart, *start, kGcStartWork, garbage_collect),
                     callbacks(kDiagGcEnd, *end, kGcDone, do_post_gc)};
}

std::vector<FunctionIndex> PostGcFunctions(const ImageCode& code, FunctionIndex diag_gc_end) {
  return CallersWithoutThunks(code, diag_gc_end);
}

absl::StatusOr<std::vector<GcSettings>> FindGcSettings(const ImageCode& code,
                                                       const std::vector<FunctionIndex>& do_post_gc,
                                                       FunctionIndex gc_done, FunctionIndex diag_gc_end) {
  if (do_post_gc.empty() || do_post_gc.size() > kCollectors) {
    return absl::FailedPreconditionError(
        absl::StrCat("there are ", do_post_gc.size(), " functions do_post_gc instead of one or two"));
  }
  std::vector<GcSettings> found;
  for (const FunctionIndex caller : do_post_gc) {
    const bool x64 = code.image().machine() == ElfMachine::kX64;
    const auto settings = (x64 ? x64::SettingsOfPostGc : arm64::SettingsOfPostGc)(
        code.Code(caller), code.Start(caller), code.Start(gc_done), code.Start(diag_gc_end));
    if (!settings) {
      return absl::NotFoundError(absl::StrCat("the function at ", AddressText(code.Start(caller)),
                                              " does not read the settings in the known way"));
    }
    const std::span<const LoadSegment> segments = code.image().segments();
    const bool in_data = std::any_of(segments.begin(), segments.end(), [&](const LoadSegment& segment) {
      const uint64_t inside = settings->at.value - segment.address.value;
      return !segment.executable && settings->at >= segment.address && inside <= segment.memory_bytes &&
             segment.memory_bytes - inside >= GcSettings::kBytes;
    });
    if (!in_data || settings->at.value % sizeof(uint64_t) != 0) {
      return absl::FailedPreconditionError(absl::StrCat("the settings at ", AddressText(settings->at), " are no data"));
    }
    found.push_back(*settings);
  }
  std::sort(found.begin(), found.end(), [](const GcSettings& a, const GcSettings& b) { return a.at < b.at; });
  if (found.size() == kCollectors && found[1].at.value - found[0].at.value < GcSettings::kBytes) {
    return absl::FailedPreconditionError("two collectors have one place for their settings");
  }
  return found;
}

}  // namespace clrsampler
