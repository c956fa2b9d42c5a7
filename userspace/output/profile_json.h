// Our own format, which loses nothing: the tables of the model as JSON, column by column. docs/profile-json.md has
// every key; formats/profile/profile_json_reader.h reads it back.
#ifndef CLRSAMPLER_OUTPUT_PROFILE_JSON_H_
#define CLRSAMPLER_OUTPUT_PROFILE_JSON_H_

#include "output/profile_writer.h"

namespace clrsampler {

// Bytes of names that are no UTF-8 become U+FFFD: JSON has no other bytes.
class ProfileJsonWriter : public ProfileWriter {
 public:
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_PROFILE_JSON_H_
