// Does the reader of a runtime's memory understand this build? Judged by methods whose names are known from elsewhere:
// what the runtime says of precompiled methods, against what their image's own tables say of the same addresses.
#ifndef CLRSAMPLER_CLR_MEMORY_RUNTIME_SELF_TEST_H_
#define CLRSAMPLER_CLR_MEMORY_RUNTIME_SELF_TEST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/names/method_name.h"
#include "formats/pe/r2r_image.h"

namespace clrsampler {

struct SelfTestReport {
  size_t compared = 0;         // names that were equal
  size_t generic_types = 0;    // of these: with type arguments
  size_t generic_methods = 0;  // with method arguments
  // Compiled generic methods of which, where method arguments are read, there were as many types as their metadata
  // declares; no name to compare with. Anything else that a method points to is no list of types.
  size_t plausible_arguments = 0;
  // Enough of each kind to know that arguments are read from the right place.
  bool proves_method_arguments() const { return generic_methods >= 3 || plausible_arguments >= kEnoughPlausible; }

  static constexpr size_t kEnoughPlausible = 8;
};

// Methods of this assembly are compared: it is in every process and refers to no other one.
constexpr absl::string_view kCoreLib = "System.Private.CoreLib";

// Precompiled methods by RVA of their entry point; `name_of(i)` is what memory says of the i-th. nullopt: not readable
// at this moment, which says nothing. `assemblies`: where a composite image has the metadata of its components. Stops
// after `most` names, generic ones not counted. An error names the first two that differ.
absl::Status CompareWithImage(R2rImage& image, AssemblyOpener& assemblies, std::span<const uint32_t> entry_points,
                              const std::function<std::optional<MethodName>(size_t)>& name_of, size_t most,
                              SelfTestReport& report);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_RUNTIME_SELF_TEST_H_
