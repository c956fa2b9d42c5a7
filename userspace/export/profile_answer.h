// A profile, or the difference of two, as the answer to a request: any format of `record`, and "page", the data that
// the flame graph of a page is drawn from.
#ifndef CLRSAMPLER_EXPORT_PROFILE_ANSWER_H_
#define CLRSAMPLER_EXPORT_PROFILE_ANSWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "export/http_message.h"
#include "formats/profile/profile_model.h"
#include "profile/model_diff.h"

namespace clrsampler {

inline constexpr size_t kMaxAnswerBytes = size_t{16} << 20;

struct ProfileForm {
  std::string format;  // a word of WriterTable, or "page"
  std::string module;  // WriterOptions::module
};

// ResourceExhausted: more than kMaxAnswerBytes.
absl::StatusOr<HttpAnswer> ProfileAnswer(const ProfileModel& model, const ProfileForm& form);
// `format`: page, html, text or difffolded.
absl::StatusOr<HttpAnswer> DiffAnswer(const ProfileModel& before, const ProfileModel& after, DiffBasis basis,
                                      absl::string_view format);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_PROFILE_ANSWER_H_
