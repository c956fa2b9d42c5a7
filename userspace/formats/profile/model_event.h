// An event of a runtime and its duration, beside the samples of a profile.
#ifndef CLRSAMPLER_FORMATS_PROFILE_MODEL_EVENT_H_
#define CLRSAMPLER_FORMATS_PROFILE_MODEL_EVENT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace clrsampler {

enum class ModelEventKind : uint8_t {
  kPause,        // all threads of a .NET process stood still, or were asked to
  kCollection,   // a garbage collection came to its end; it has no duration
  kCompilation,  // a method was compiled
};
inline constexpr int kModelEventKindCount = 3;
absl::string_view ModelEventKindText(ModelEventKind kind);  // "pause", "collection", "compilation"
std::optional<ModelEventKind> ModelEventKindOf(absl::string_view text);

// Indexes are those of the profile's tables.
struct ModelEvent {
  uint64_t time_ns = 0;  // of its beginning, since the start of the recording
  uint64_t duration_ns = 0;
  uint32_t thread = 0;  // with tid 0 where it is of the whole process
  ModelEventKind kind = ModelEventKind::kPause;
  uint32_t name = 0;    // a string: the kind of pause or collection, or the method
  uint32_t detail = 0;  // a string: the reason with the culprits, or the tier; may be ""

  friend bool operator==(const ModelEvent&, const ModelEvent&) = default;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_MODEL_EVENT_H_
