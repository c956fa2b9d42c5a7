// How formats with mappings call the one that a frame is in.
#ifndef CLRSAMPLER_OUTPUT_MAPPING_NAME_H_
#define CLRSAMPLER_OUTPUT_MAPPING_NAME_H_

#include <string>

#include "formats/profile/profile_model.h"

namespace clrsampler {

// The path of native code; of other frames "[kernel.kallsyms]", or the kind and the assembly: "[jit] Shop". It says of
// what kind a frame is (formats/profile/pprof_fields.h). "": nothing is known.
std::string MappingName(const ProfileModel& model, const ModelFrame& frame);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_MAPPING_NAME_H_
