// A file's mapping, as the process table would have it.
#ifndef CLRSAMPLER_TESTS_UNIT_PROCESS_MAPPING_OF_FILE_H_
#define CLRSAMPLER_TESTS_UNIT_PROCESS_MAPPING_OF_FILE_H_

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <string>

#include "process/mappings.h"

namespace clrsampler {

// `bytes` of the file from `offset` on; 0: up to its end.
inline Mapping MappingOfFile(const std::string& path, uint64_t start, uint64_t bytes = 0, uint64_t offset = 0) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  Mapping mapping;
  mapping.start = start;
  mapping.end = start + (bytes != 0 ? bytes : static_cast<uint64_t>(status.st_size) - offset);
  mapping.file_offset = offset;
  mapping.device_major = major(status.st_dev);
  mapping.device_minor = minor(status.st_dev);
  mapping.inode = status.st_ino;
  mapping.kind = MappingKind::kFile;
  mapping.path = path;
  return mapping;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_PROCESS_MAPPING_OF_FILE_H_
