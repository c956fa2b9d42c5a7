// Ready-to-run images that are in no mapped file: those of a compressed single-file program. The runtime unpacks them
// into memory and lays them out itself, so that their tables can be read from the target only.
//
// Such an image lies there like this (measured on 8.0.30, 9.0.19, 10.0.14). It begins at a multiple of 64 KiB with a
// page of its own, the header, anonymous, private, readable and nothing else. Sections follow at their RVAs, the code
// as an anonymous executable mapping 64 KiB further on. The process table knows that one only. So on the first sample
// in an anonymous executable mapping /proc/PID/maps is read once, and the mappings that end where it begins are
// searched backwards for a header that spans the address.
#ifndef CLRSAMPLER_CLR_R2R_MEMORY_IMAGES_H_
#define CLRSAMPLER_CLR_R2R_MEMORY_IMAGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "formats/pe/loaded_image.h"
#include "formats/proc/maps_text.h"
#include "os/clock.h"
#include "os/sparse_memory.h"
#include "process/per_process.h"
#include "process/process.h"
#include "process/target_memory.h"
#include "status/thread_checker.h"

namespace clrsampler {

// The tables of one image, shared by all processes that have the same bytes. Immutable.
struct MemoryImage {
  SparseMemory memory;
  LoadedImage loaded;
  uint64_t hash = 0;
  uint64_t copied_bytes = 0;
};

struct R2rMemoryOptions {
  ReadMemory read_memory;
  // A composite image of the whole framework has 60 MB, of which 12 MB are copied. With .NET 11 it is some
  // more: the table of debug information, too.
  uint64_t max_image_bytes = uint64_t{1} << 30;
  uint64_t max_copied_bytes = 64 << 20;
  // The bytes of all images that are in use. A target that makes up image after image gets no more names; nothing else
  // happens.
  uint64_t max_total_bytes = uint64_t{512} << 20;
  size_t max_images_per_process = 1024;
  // The bytes of assemblies that are unpacked from compressed bundles: of all files, and of those that one process
  // uses. CoreLib has 5 MB without its code. More is not unpacked, and names that need it stay tokens.
  uint64_t max_unpacked_bytes = uint64_t{512} << 20;
  uint64_t max_unpacked_bytes_per_process = uint64_t{256} << 20;
};

struct R2rMemoryCounters {
  uint64_t images_copied = 0;
  uint64_t images_shared = 0;  // copied, and found equal to what another process has
  uint64_t images_failed = 0;  // a header was there, but its tables could not be copied, or there is no room for them
  uint64_t bytes_copied = 0;
  uint64_t maps_read = 0;
  uint64_t maps_postponed = 0;  // too many lines of this process were read a short time ago

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them, among those of memory
};

// Main loop only.
class R2rMemoryImages {
 public:
  explicit R2rMemoryImages(R2rMemoryOptions options) : options_(std::move(options)) {}

  struct Place {
    std::shared_ptr<const MemoryImage> image;
    uint64_t base = 0;  // address of RVA 0
  };

  // The image that holds the address, which lies in `mapping`. nullopt: none, or it can't be read, or it is too early
  // to look again. `now` grows: the time of the sample.
  std::optional<Place> Find(const Process& process, const Mapping& mapping, uint64_t address, MonotonicTime now);

  // A process that keeps making mappings pays for itself. A line of maps takes half a microsecond, so this many a
  // second are a quarter of a percent of a CPU. Unused ones are kept, up to the second number. So a program of 200
  // images and 600 mappings starts without a wait.
  static constexpr int64_t kMapsLinesPerSecond = 5'000;
  static constexpr int64_t kMostMapsLines = 128 << 10;

  // Memory of the process as it is now.
  bool Read(uint32_t tgid, uint64_t address, std::span<std::byte> into) const {
    return options_.read_memory && options_.read_memory(tgid, address, into);
  }

  const R2rMemoryCounters& counters() const { return counters_; }

 private:
  struct Known {  // about one executable mapping
    uint64_t end = 0;
    uint64_t confirmed = 0;  // generation of the mappings for which the header was last seen to be the same
    Place place;             // without an image: there is none
  };
  struct ProcessState {
    uint32_t exec_count = 0;
    absl::flat_hash_map<uint64_t, Known> mappings;  // by start
    // As of `counted`. It falls below zero by what the last text had too much: how long that is, is known afterwards.
    int64_t lines_left = kMostMapsLines;
    MonotonicTime counted = MonotonicTime::Min();
  };
  struct MapsText {  // the last one that was read, for all frames of a sample
    ProcessKey process;
    uint64_t generation = 0;  // of the mappings, as of the reading
    std::vector<MapsLine> lines;
  };

  bool MayReadMaps(ProcessState& state, MonotonicTime now);
  void ReadMaps(const Process& process, ProcessState& state);
  std::optional<uint64_t> FindBase(const Process& process, const Mapping& mapping, uint64_t address);
  bool IsBase(const Process& process, uint64_t base, uint64_t address);
  std::shared_ptr<const MemoryImage> Copy(const Process& process, uint64_t base);
  uint64_t BytesInUse() const;
  bool StillThere(const Process& process, const Place& place);

  R2rMemoryOptions options_;
  R2rMemoryCounters counters_;
  PerProcess<ProcessState> states_;
  MapsText maps_;
  absl::flat_hash_map<uint64_t, std::vector<std::weak_ptr<const MemoryImage>>> by_hash_;
  size_t purge_at_ = 64;  // hashes at which those that nobody uses any more are removed
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_R2R_MEMORY_IMAGES_H_
