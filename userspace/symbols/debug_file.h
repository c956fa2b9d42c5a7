// The separate file that holds the symbols of a stripped image (gdb manual, "Debugging Information in Separate Files").
#ifndef CLRSAMPLER_SYMBOLS_DEBUG_FILE_H_
#define CLRSAMPLER_SYMBOLS_DEBUG_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"
#include "os/clock.h"
#include "process/image_files.h"
#include "process/per_process.h"
#include "process/process.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct DebugFile {
  std::shared_ptr<const ImageFile> file;
  ElfImage image;  // borrows from `file`
};

// The bytes whose CRC is computed: 1 GB takes a second (zlib). Linkers write build-ids by default, so debug files
// without one are old or small.
struct CrcBounds {
  uint64_t of_process = 128 << 20;
  uint64_t first_file = 512 << 20;  // of a process; more than all of its files may have
  // Those of all are a token bucket, whose refill takes 0.2 % of a CPU.
  uint64_t of_all = uint64_t{1} << 30;
  uint64_t a_second = 2 << 20;
};

// Looks on the host first, then in the target's root, each time under
//   /usr/lib/debug/.build-id/xx/yyyy.debug, DIR/NAME, DIR/.debug/NAME, /usr/lib/debug/DIR/NAME
// where NAME is the image's .gnu_debuglink, then the file's own name with ".dbg" (.NET's symbol packages) and with
// ".debug" (distributions). Beside the image the host has it only where the host's own path leads to the same image. A
// file counts when its build-id is the image's, or, where one of them has none, when its CRC is the one in the link.
// The CRC of a file is computed once, and that of no file for which there is no room in the bounds. Main loop only: it
// opens files.
//
// A build-id proves nothing about symbols: a user that has the image can write a debug file with it. So a file on the
// host counts only if it belongs to root or to the image's owner, as the agent sees them, and a user's own mounts
// (FUSE) don't count. A file of the target counts for processes with that target's mounts and root only.
class DebugFileFinder {
 public:
  explicit DebugFileFinder(ImageFiles& images, std::string host_debug_root = "/usr/lib/debug",
                           const CrcBounds& bounds = CrcBounds())
      : images_(images), host_debug_root_(std::move(host_debug_root)), bounds_(bounds) {}

  // `image_path` in the mount namespace of `process`; `image` is what `image_file` holds. May be a file of the target:
  // what is made of it belongs to the pair of files, not to the image alone.
  std::optional<DebugFile> Find(const Process& process, absl::string_view image_path,
                                const std::shared_ptr<const ImageFile>& image_file, const ElfImage& image);
  // Looks on the host only: good enough to say where probes go.
  std::optional<DebugFile> FindOnHost(const Process& process, absl::string_view image_path, const ImageFile& image_file,
                                      const ElfImage& image);

  // Files that were there under the right name but belong to another build of the image.
  uint64_t mismatches() const { return mismatches_; }
  // Files that could be judged by their CRC alone, which was beyond the bounds. Such a file is looked at anew for the
  // next process that needs it.
  uint64_t unchecked() const { return unchecked_; }
  uint64_t crc_bytes() const { return crc_bytes_; }  // so many went into CRCs

 private:
  // Where one is looked for, in this order.
  struct Places {
    std::vector<std::string> in_debug_root;  // relative to it
    std::vector<std::string> beside;
  };
  static std::optional<Places> PlacesFor(absl::string_view image_path, const ElfImage& image);
  std::optional<DebugFile> FindInTarget(const Process& process, const Places& places, const ElfImage& image);
  std::optional<DebugFile> Accept(const Process& process, std::shared_ptr<const ImageFile> file, const ElfImage& image);
  std::optional<uint32_t> CrcOf(const Process& process, const ImageFile& file);
  bool TakeCrcBytes(const Process& process, uint64_t bytes);
  std::shared_ptr<const ImageFile> OpenOnHost(const Process& process, const std::string& path,
                                              std::optional<uid_t> image_owner, bool beside);

  // Processes with the same mounts and root share one search. Bounds a target that makes namespaces without end.
  static constexpr size_t kMaxKnown = 4096;
  struct Known {
    std::weak_ptr<const ImageFile> image;  // expired: the entry is of another file
    bool found = false;
    std::weak_ptr<const ImageFile> debug;
  };

  ImageFiles& images_;
  std::string host_debug_root_;
  const CrcBounds bounds_;
  uint64_t mismatches_ = 0, unchecked_ = 0, crc_bytes_ = 0;
  uint64_t crc_bytes_left_ = bounds_.of_all;  // as of `crc_bytes_counted_`
  MonotonicTime crc_bytes_counted_ = MonotonicTime::Min();
  PerProcess<uint64_t> crc_bytes_of_process_;
  absl::flat_hash_map<std::string, uint32_t> crcs_;  // of files, by their identity
  absl::flat_hash_map<std::string, Known> known_;    // by image, mounts and path
  // Those of the host, shared by their identity.
  absl::flat_hash_map<std::string, std::weak_ptr<const ImageFile>> on_host_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_DEBUG_FILE_H_
