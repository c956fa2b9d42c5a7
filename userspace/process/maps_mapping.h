// A line of /proc/PID/maps as a mapping.
#ifndef CLRSAMPLER_PROCESS_MAPS_MAPPING_H_
#define CLRSAMPLER_PROCESS_MAPS_MAPPING_H_

#include <cstddef>

#include "formats/proc/maps_text.h"
#include "process/mappings.h"

namespace clrsampler {

// A process with 65,530 mappings (the kernel's default limit) has maps of some 10 MB.
inline constexpr size_t kMaxMapsBytes = 64 << 20;

Mapping MappingOf(const MapsLine& line);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_MAPS_MAPPING_H_
