// The subject of a profile in a few words: for the head of a picture.
#ifndef CLRSAMPLER_OUTPUT_PROFILE_TITLE_H_
#define CLRSAMPLER_OUTPUT_PROFILE_TITLE_H_

#include <string>

#include "formats/profile/profile_model.h"

namespace clrsampler {

// "Shop.Api (4711)", "Shop.Api (4711) and 2 others", "dotnet run", "web-3: 120 processes". Any bytes.
std::string ProfileTitle(const ProfileModel& model);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_PROFILE_TITLE_H_
