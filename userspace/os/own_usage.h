// The resources that this process itself uses, as of now, by /proc/self.
#ifndef CLRSAMPLER_OS_OWN_USAGE_H_
#define CLRSAMPLER_OS_OWN_USAGE_H_

#include <cstdint>

namespace clrsampler {

struct OwnUsage {
  double cpu_seconds = 0;
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  uint64_t open_fds = 0;
  uint64_t max_fds = 0;
  double start_unix_seconds = 0;
};

// A value that can't be read is 0, here and below.
OwnUsage ReadOwnUsage();

struct OwnMemory {
  uint64_t resident_bytes = 0;
  uint64_t own_bytes = 0;  // of these: not pages of files, which the kernel takes back when it needs room
  uint64_t file_bytes() const { return resident_bytes - own_bytes; }
};

OwnMemory ReadOwnMemory();

uint64_t OwnCpuMicroseconds();  // of all threads, also of those that have ended
uint64_t OwnThreadCpuNs();      // of the calling thread
uint64_t OwnPeakResidentBytes();

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_OWN_USAGE_H_
