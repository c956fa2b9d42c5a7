#include "pipeline/file_pages.h"

#include <malloc.h>

#include <algorithm>

#include "os/mapped_file.h"
#include "os/own_usage.h"

namespace clrsampler {
namespace {

// Of 210 MiB that a host with 50 .NET processes had in memory after two minutes, later samples needed few.
constexpr uint64_t kTrimNs = 30'000'000'000;

// Sooner where many programs come and go: of 80 of 9 MB that ran within 3 s, 144 MiB stayed otherwise.
constexpr uint64_t kMaxNewBytes = 32 << 20;

}  // namespace

void FilePages::AgePages(MonotonicTime now) {
  const bool trim = now.ns - trimmed_.ns >= kTrimNs;
  const uint64_t bytes = ReadOwnMemory().file_bytes();
  least_bytes_ = std::min(least_bytes_, bytes);
  if (!trim && bytes - least_bytes_ < kMaxNewBytes) return;
  MappedFile::DropResidentPages();
  least_bytes_ = ReadOwnMemory().file_bytes();
  if (!trim) return;
  trimmed_ = now;
  malloc_trim(0);  // what a busy minute took stays with the process otherwise
}

}  // namespace clrsampler
