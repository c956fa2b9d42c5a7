// A line of /proc/PID/maps as a mapping.
#ifndef CLRSAMPLER_PROCESS_MAPS_MAPPING_H_
#define CLRSAMPLER_PROCESS_MAPS_MAPPING_H_

#include "formats/proc/maps_text.h"
#include "process/mappings.h"

namespace clrsampler {

Mapping MappingOf(const MapsLine& line);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_MAPS_MAPPING_H_
