// Reads our own format, the model as JSON (docs/profile-json.md).
//
// Any bytes give a model or an error. Memory is at most some four times the text: no column is allocated by a count
// that the text claims. Keys that this version does not know are skipped, so that files may get more of them.
#ifndef CLRSAMPLER_FORMATS_PROFILE_PROFILE_JSON_READER_H_
#define CLRSAMPLER_FORMATS_PROFILE_PROFILE_JSON_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

inline constexpr absl::string_view kProfileJsonFormat = "clrsampler-profile";
inline constexpr int kProfileJsonVersion = 1;

absl::StatusOr<ProfileModel> ReadProfileJson(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_PROFILE_JSON_READER_H_
