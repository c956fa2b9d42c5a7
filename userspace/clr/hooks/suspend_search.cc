#include "clr/hooks/suspend_search.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kNames[] = {"DotNETRuntime:GCSuspendEEBegin_V1", "DotNETRuntime:GCSuspendEEEnd_V1",
                                        "DotNETRuntime:GCRestartEEBegin_V1", "DotNETRuntime:GCRestartEEEnd_V1"};
constexpr uint64_t kStateOffset = 8;
constexpr size_t kMaxStateUsers = 2;

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

absl::StatusOr<VirtualAddress> FindTracepoint(const ImageCode& code, absl::string_view name) {
  const ElfImage& image = code.image();
  const ElfSection* const points = image.FindSection("__tracepoints");
  const ElfSection* const strings = image.FindSection("__tracepoints_strings");
  const auto text = strings == nullptr ? std::nullopt : image.SectionBytes(*strings);
  if (points == nullptr || !text) return absl::NotFoundError("the image has no tracepoint sections");
  const absl::StatusOr<VirtualAddress> named = FindName(*strings, AsText(*text), name);
  if (!named.ok()) return named.status();
  std::optional<VirtualAddress> found;
  for (const RelativeRelocation& row : code.relocations().Within(points->address, points->size)) {
    if (row.target != *named) continue;
    if (found) return absl::FailedPreconditionError(absl::StrCat("two tracepoints have the name ", name));
    found = row.slot;
  }
  if (!found) return absl::NotFoundError(absl::StrCat("no tracepoint has the name ", name));
  return *found;
}

}  // namespace

SuspendSearch::SuspendSearch(const ImageCode& code)
    : code_(code),
      tracepoints_{FindTracepoint(code, kNames[0]), FindTracepoint(code, kNames[1]), FindTracepoint(code, kNames[2]),
                   FindTracepoint(code, kNames[3])} {}

std::vector<VirtualAddress> SuspendSearch::Watched() const {
  std::vector<VirtualAddress> watched;
  for (const auto& tracepoint : tracepoints_) {
    // Address 0 is referred to by nothing.
    watched.push_back({tracepoint.ok() ? tracepoint->value + kStateOffset : 0});
  }
  return watched;
}

absl::StatusOr<FunctionIndex> SuspendSearch::OnlyCaller(size_t tracepoint) const {
  if (!tracepoints_[tracepoint].ok()) return tracepoints_[tracepoint].status();
  const absl::string_view name = kNames[tracepoint];
  const std::span<const FunctionIndex> users = code_.UsersOf(tracepoint);
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
  const absl::StatusOr<FunctionIndex> begin = OnlyCaller(first), end = OnlyCaller(first + 1);
  if (!begin.ok()) return begin.status();
  if (!end.ok()) return end.status();
  if (*begin != *end) {
    return absl::FailedPreconditionError(absl::StrCat("the events ", kNames[first], " and ", kNames[first + 1],
                                                      " are fired by two functions, ", AddressText(code_.Start(*begin)),
                                                      " and ", AddressText(code_.Start(*end))));
  }
  return FoundFunction{*begin, absl::StrCat("the only function that fires ", kNames[first], " and ", kNames[first + 1],
                                            " (tracepoints at ", AddressText(*tracepoints_[first]), " and ",
                                            AddressText(*tracepoints_[first + 1]), ")")};
}

}  // namespace clrsampler
