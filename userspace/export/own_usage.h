// What this process itself uses, as of now, by /proc/self.
#ifndef CLRSAMPLER_EXPORT_OWN_USAGE_H_
#define CLRSAMPLER_EXPORT_OWN_USAGE_H_

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

// What can't be read is 0.
OwnUsage ReadOwnUsage();

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_OWN_USAGE_H_
