// Reads profiles of google/pprof's format, unpacked (formats/profile/gzip.h), of whatever program wrote them.
//
// Where a sample has several values, the count of samples is taken, else a time, else another count; profiles of bytes
// are refused. Labels that pprof_fields.h names make the thread and the state of a sample; others are left out. Any
// bytes give a model or an error; memory is at most some five times the bytes.
#ifndef CLRSAMPLER_FORMATS_PROFILE_PPROF_READER_H_
#define CLRSAMPLER_FORMATS_PROFILE_PPROF_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

absl::StatusOr<ProfileModel> ReadPprof(absl::string_view bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_PPROF_READER_H_
