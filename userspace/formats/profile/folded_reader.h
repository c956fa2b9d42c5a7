// Reads folded stacks, "comm;root;...;leaf COUNT" a line, of whatever program wrote them.
//
// The first frame is the process, as stackcollapse-perf.pl and clrsampler write it; a pid in it stays a part of its
// name.
// "_[k]", "_[j]" and "_[i]" at the end of a frame say its kind. A fractional count is rounded, and two counts (the
// output of difffolded.pl) are refused: they are two profiles. Any bytes give a model or an error.
#ifndef CLRSAMPLER_FORMATS_PROFILE_FOLDED_READER_H_
#define CLRSAMPLER_FORMATS_PROFILE_FOLDED_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

absl::StatusOr<ProfileModel> ReadFolded(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_FOLDED_READER_H_
