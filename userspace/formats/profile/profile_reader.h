// Bytes of a profile in any of the formats that are read -> the model. The format is told by the content.
//
//   folded text, our JSON, pprof, speedscope's JSON; each of them also compressed with gzip
//
// The input is hostile: any bytes give a model or an error with a hint, and memory is bounded by kMaxProfileBytes and
// kReadLimits.
#ifndef CLRSAMPLER_FORMATS_PROFILE_PROFILE_READER_H_
#define CLRSAMPLER_FORMATS_PROFILE_PROFILE_READER_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// The most bytes of a file, and of what it unpacks to. A recording of 8 million samples has 200 MiB as JSON.
inline constexpr size_t kMaxProfileBytes = 512 << 20;

absl::StatusOr<ProfileModel> ReadProfile(absl::string_view bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_PROFILE_READER_H_
