// The files that lines of frames are in, in the model that writers take.
#ifndef CLRSAMPLER_PROFILE_MODEL_SOURCES_H_
#define CLRSAMPLER_PROFILE_MODEL_SOURCES_H_

#include "formats/profile/profile_model.h"
#include "symbols/source_files.h"

namespace clrsampler {

// Adds what is known of the files that the frames of the model so far name, and of no others.
void AddSources(const SourceFiles& sources, ProfileModelBuilder& builder);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_MODEL_SOURCES_H_
