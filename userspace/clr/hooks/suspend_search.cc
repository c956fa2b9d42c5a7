#include "clr/hooks/suspend_search.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clr/hooks/image_code.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kProbeNames[] = {"DotNETRuntime:GCSuspendEEBegin_V1", "DotNETRuntime:GCSuspendEEEnd_V1",
                                             "DotNETRuntime:GCRestartEEBegin_V1", "DotNETRuntime:GCRestartEEEnd_V1"};
constexpr absl::string_view kProvider = "DotNETRuntime";
constexpr size_t kMaxStateUsers = 2;

// How a version of lttng-ust lays tracepoints out. Distances are from the slot that holds the event's name.
struct Layout {
  absl::string_view points, strings;  // sections
  bool provider_apart;                // in the slot before, and not a part of the name
  uint64_t state;                     // ahead of the slot
  uint64_t begin;                     // of the tracepoint, behind the slot
};
constexpr Layout kLayouts[] = {
    {"__tracepoints", "__tracepoints_strings", false, 8, 0},
    {"lttng_ust_tracepoints", "lttng_ust_tracepoints_strings", true, 8, 16},
};

// The address of the NUL-terminated `name`, which must stand in the section once.
absl::StatusOr<VirtualAddress> FindName(const ElfSection& section, absl::string_view strings, absl::string_view name) {
  std::optional<size_t> found;
  for (size_t at = strings.find(name); at != absl::string_view::npos; at = strings.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at > 0 && strings[at - 1] != '\0') || end >= strings.size() || strings[end] != '\0') continue;
    if (found) return absl::FailedPreconditionError(absl::StrCat("two tracepoints are named ", name));
    found = at;
  }
  if (!found) return absl::NotFoundError(absl::StrCat("no tracepoint is named ", name));
  return VirtualAddress{section.address.value + *found};
}

bool IsProvider(const ElfSection& section, absl::string_view strings, VirtualAddress at) {
  if (!section.contains(at)) return false;
  const uint64_t inside = at.value - section.address.value;
  if (inside >= strings.size()) return false;
  const absl::string_view rest = strings.substr(inside);
  return rest.size() > kProvider.size() && absl::StartsWith(rest, kProvider) && rest[kProvider.size()] == '\0';
}

absl::StatusOr<Tracepoint> FindTracepoint(const ImageCode& code, absl::string_view name) {
  const ElfImage& image = code.image();
  for (const Layout& layout : kLayouts) {
    const ElfSection* const points = image.FindSection(layout.points);
    const ElfSection* const strings = image.FindSection(layout.strings);
    const auto bytes = strings == nullptr ? std::nullopt : image.SectionBytes(*strings);
    if (points == nullptr || !bytes) continue;
    const absl::string_view text = AsText(*bytes);
    ASSIGN_OR_RETURN(const VirtualAddress named,
                     FindName(*strings, text, layout.provider_apart ? name.substr(kProvider.size() + 1) : name));
    std::optional<VirtualAddress> found;
    for (const RelativeRelocation& row : code.relocations().Within(points->address, points->size)) {
      if (row.target != named) continue;
      if (found) return absl::FailedPreconditionError(absl::StrCat("two tracepoints have the name ", name));
      found = row.slot;
    }
    if (!found) return absl::NotFoundError(absl::StrCat("no tracepoint has the name ", name));
    if (layout.provider_apart) {
      const auto provider = code.relocations().At({found->value - kSlotBytes});
      if (!provider || !IsProvider(*strings, text, *provider)) {
        return absl::FailedPreconditionError(absl::StrCat("the tracepoint ", name, " is of another provider"));
      }
    }
    return Tracepoint{.name_slot = *found,
                      .state = {found->value + layout.state},
                      .begin = {found->value - layout.begin},
                      .known_by_begin = layout.begin != 0};
  }
  return absl::NotFoundError("the image has no tracepoint sections");
}

}  // namespace

SuspendSearch::SuspendSearch(const ImageCode& code)
    : code_(code),
      tracepoints_{FindTracepoint(code, kProbeNames[0]), FindTracepoint(code, kProbeNames[1]),
                   FindTracepoint(code, kProbeNames[2]), FindTracepoint(code, kProbeNames[3])} {}

std::vector<VirtualAddress> SuspendSearch::Watched() const {
  std::vector<VirtualAddress> watched;
  for (const auto& tracepoint : tracepoints_) {
    // Nothing refers to address 0.
    watched.push_back(tracepoint.ok() ? tracepoint->state : VirtualAddress{0});
    watched.push_back(tracepoint.ok() && tracepoint->known_by_begin ? tracepoint->begin : VirtualAddress{0});
  }
  return watched;
}

absl::StatusOr<FunctionIndex> SuspendSearch::OnlyCaller(size_t tracepoint) const {
  if (!tracepoints_[tracepoint].ok()) return tracepoints_[tracepoint].status();
  const absl::string_view name = kProbeNames[tracepoint];
  std::vector<FunctionIndex> users;
  for (const size_t watched : {2 * tracepoint, 2 * tracepoint + 1}) {
    const std::span<const FunctionIndex> some = code_.UsersOf(watched);
    users.insert(users.end(), some.begin(), some.end());
  }
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  if (users.empty() || users.size() > kMaxStateUsers) {
    return absl::FailedPreconditionError(absl::StrCat("the state of the tracepoint ", name, " is read by ",
                                                      users.size(), " functions instead of one or two"));
  }
  std::vector<FunctionIndex> callers;
  for (const FunctionIndex user : users) {
    const std::span<const FunctionIndex> more = code_.CallersOf(user);
    callers.insert(callers.end(), more.begin(), more.end());
  }
  std::sort(callers.begin(), callers.end());
  callers.erase(std::unique(callers.begin(), callers.end()), callers.end());
  for (const FunctionIndex user : users)
    callers.erase(std::remove(callers.begin(), callers.end(), user), callers.end());
  if (callers.size() != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the event ", name, " is fired by ", callers.size(), " functions instead of one"));
  }
  return callers.front();
}

absl::StatusOr<FoundFunction> SuspendSearch::Find(size_t first) const {
  ASSIGN_OR_RETURN(const FunctionIndex begin, OnlyCaller(first));
  ASSIGN_OR_RETURN(const FunctionIndex end, OnlyCaller(first + 1));
  if (begin != end) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the events ", kProbeNames[first], " and ", kProbeNames[first + 1], " are fired by two functions, ",
        AddressText(code_.Start(begin)), " and ", AddressText(code_.Start(end))));
  }
  return FoundFunction{
      begin, absl::StrCat("the only function that fires ", kProbeNames[first], " and ", kProbeNames[first + 1],
                          " (tracepoints at ", AddressText(tracepoints_[first]->name_slot), " and ",
                          AddressText(tracepoints_[first + 1]->name_slot), ")")};
}

}  // namespace clrsampler
