// Reads files of speedscope.app (src/lib/file-format-spec.ts of jlfwong/speedscope): "sampled" and "evented" profiles.
//
// Each profile of the file becomes a process of its name. Any bytes give a model or an error; memory is at most some
// three times the text.
#ifndef CLRSAMPLER_FORMATS_PROFILE_SPEEDSCOPE_READER_H_
#define CLRSAMPLER_FORMATS_PROFILE_SPEEDSCOPE_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

inline constexpr absl::string_view kSpeedscopeSchema = "https://www.speedscope.app/file-format-schema.json";

absl::StatusOr<ProfileModel> ReadSpeedscope(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_SPEEDSCOPE_READER_H_
