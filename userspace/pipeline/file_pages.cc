#include "pipeline/file_pages.h"

#include <malloc.h>

#include <algorithm>

#include "os/mapped_file.h"
#include "os/own_usage.h"

namespace clrsampler {
namespace {

// A host with 50 .NET processes had 210 MiB in memory after two minutes. Later samples needed few of them.
constexpr uint64_t kTrimNs = 30'000'000'000;

// The pages are given back sooner where many programs come and go. Otherwise 144 MiB stayed of 80 programs of 9 MB that
// ran within 3 s.
constexpr uint64_t kMaxNewBytes = 32 << 20;

}  // namespace

void FilePages::AgePages(MonotonicTime now) {
  main_loop_.Check();
  const bool trim = now.ns - trimmed_.ns >= kTrimNs;
  const uint64_t bytes = ReadOwnMemory().file_bytes();
  least_bytes_ = std::min(least_bytes_, bytes);
  if (!trim && bytes - least_bytes_ < kMaxNewBytes) return;
  MappedFile::DropResidentPages();
  least_bytes_ = ReadOwnMemory().file_bytes();
  if (!trim) return;
  trimmed_ = now;
  malloc_trim(0);  // otherwise the memory of a busy minute stays with the process
}

}  // namespace clrsampler
