// The separate file that holds the symbols of a stripped image (gdb manual, "Debugging Information in Separate Files").
#ifndef CLRSAMPLER_SYMBOLS_DEBUG_FILE_H_
#define CLRSAMPLER_SYMBOLS_DEBUG_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"
#include "process/image_files.h"
#include "process/process.h"

namespace clrsampler {

struct DebugFile {
  std::shared_ptr<const ImageFile> file;
  ElfImage image;  // borrows from `file`
};

// Looks in the target's root first, then on the host, each time under
//   /usr/lib/debug/.build-id/xx/yyyy.debug, DIR/NAME, DIR/.debug/NAME, /usr/lib/debug/DIR/NAME
// where NAME is the image's .gnu_debuglink, then the file's own name with ".dbg" (.NET's symbol packages) and with
// ".debug" (distributions); on the host only below the debug root, since other paths mean other files there. A file
// counts when its build-id is the image's, or, where one of them has none, when its CRC is the one in the link. Main
// loop only: it opens files.
class DebugFileFinder {
 public:
  explicit DebugFileFinder(ImageFiles& images, std::string host_debug_root = "/usr/lib/debug")
      : images_(images), host_debug_root_(std::move(host_debug_root)) {}

  // `image_path` in the mount namespace of `process`.
  std::optional<DebugFile> Find(const Process& process, absl::string_view image_path, const ElfImage& image);

  // Files that were there under the right name but belong to another build of the image.
  uint64_t mismatches() const { return mismatches_; }

 private:
  std::optional<DebugFile> Accept(std::shared_ptr<const ImageFile> file, const ElfImage& image);

  ImageFiles& images_;
  std::string host_debug_root_;
  uint64_t mismatches_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_DEBUG_FILE_H_
