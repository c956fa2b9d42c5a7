#include "process/maps_mapping.h"

namespace clrsampler {

Mapping MappingOf(const MapsLine& line) {
  Mapping mapping;
  mapping.start = line.start;
  mapping.end = line.end;
  mapping.file_offset = line.file_offset;
  mapping.device_major = line.device_major;
  mapping.device_minor = line.device_minor;
  mapping.inode = line.inode;
  mapping.path = line.path;
  mapping.kind = ClassifyMapping(mapping.path, mapping.inode);
  return mapping;
}

}  // namespace clrsampler
