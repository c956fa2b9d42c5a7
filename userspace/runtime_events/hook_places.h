// Where probes of one kind go in a file, in the form in which they are attached. Pure.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_PLACES_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_PLACES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "capture/hook_form.h"
#include "clr/hooks/hook_locator.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

// Errors are those of the searches: a sentence with a hint. In the order in which they are to be planted.

struct SuspensionHooks {
  std::vector<HookPlace> places;
  absl::Status collections;   // why generations of collections are not known; OK: they are
  bool sees_returns = false;  // of SuspendEE and RestartEE
};
// `resumed`: also where RestartEE returns.
absl::StatusOr<SuspensionHooks> SuspensionHookPlaces(const RuntimeHooks& hooks, bool resumed);
// `of_runtime`: the image is a single-file host; else it is the compiler's alone.
absl::StatusOr<std::vector<HookPlace>> CompilationPlaces(const RuntimeHooks& hooks, bool of_runtime);
absl::StatusOr<std::vector<HookPlace>> AllocationReportPlaces(const ElfImage& collector);
// Where suspensions are noted for the types of allocated objects.
absl::StatusOr<std::vector<HookPlace>> NotedSuspensionPlaces(const RuntimeHooks& hooks);
absl::StatusOr<std::vector<HookPlace>> ExceptionPlaces(const ElfImage& runtime);

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_PLACES_H_
