// All mappings of one process, data included: the process table knows executable mappings only, and a managed assembly
// without precompiled code has none.
#ifndef CLRSAMPLER_CLR_MEMORY_TARGET_IMAGES_H_
#define CLRSAMPLER_CLR_MEMORY_TARGET_IMAGES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "clr/memory/code_ranges.h"
#include "clr/memory/runtime_modules.h"
#include "os/clock.h"
#include "process/image_files.h"
#include "process/process.h"
#include "status/thread_checker.h"

namespace clrsampler {

// One process, which must outlive it. Main loop only.
class TargetImages {
 public:
  TargetImages(const Process& process, ImageFiles& images, const Clock& clock)
      : process_(process), images_(images), clock_(clock) {}

  // The file that was mapped at `address` at the last look, from that byte on; another one may be there by now, so the
  // caller compares. nullopt: anonymous memory, or the file can't be opened.
  std::optional<MappedContent> ContentAt(uint64_t address);

  // The mapping of a file that was there at the last look; until the next call. nullptr: none.
  const Mapping* FileMappingAt(uint64_t address);

  // Where the image that `mapping` is a part of lies, from its first mapped byte to its last, with the zeroed memory
  // behind it that holds variables.
  AddressRange ImageAround(const Mapping& mapping);

 private:
  // Maps are read again when an address is in none of the known ones: a program that starts maps an assembly after the
  // other, and one that is not found has no lines for good. But a hostile process would have us read ten megabytes a
  // thousand times. So each has so many bytes at once, which 300 readings of an ordinary program take, and so many a
  // second after that: 2 % of a CPU, since 16,000 mappings are 1.6 MB and take 10 ms.
  static constexpr uint64_t kBytesAtOnce = 32 << 20;
  static constexpr uint64_t kBytesASecond = 3 << 20;

  bool MayRead();
  void Read();
  const Mapping* Find(uint64_t address);

  const Process& process_;
  ImageFiles& images_;
  const Clock& clock_;
  std::vector<Mapping> mappings_;  // by address
  uint64_t bytes_left_ = kBytesAtOnce;
  MonotonicTime counted_at_;  // what was left
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_TARGET_IMAGES_H_
