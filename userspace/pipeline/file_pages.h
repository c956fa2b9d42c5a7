// Gives back pages of mapped files in a continuous run: an image is read when a process is met, and hardly after.
#ifndef CLRSAMPLER_PIPELINE_FILE_PAGES_H_
#define CLRSAMPLER_PIPELINE_FILE_PAGES_H_

#include <cstdint>
#include <limits>

#include "os/clock.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class FilePages {
 public:
  // A few times a second.
  void AgePages(MonotonicTime now);

 private:
  MonotonicTime trimmed_;
  uint64_t least_bytes_ = std::numeric_limits<uint64_t>::max();  // since pages were dropped
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_FILE_PAGES_H_
