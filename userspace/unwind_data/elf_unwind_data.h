// The facts about native code that the unwinder must know: CFI rows of the images that processes map.
#ifndef CLRSAMPLER_UNWIND_DATA_ELF_UNWIND_DATA_H_
#define CLRSAMPLER_UNWIND_DATA_ELF_UNWIND_DATA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/elf/cfi_table.h"
#include "process/by_mapping.h"
#include "process/image_files.h"
#include "process/process.h"
#include "status/thread_checker.h"
#include "symbols/debug_file.h"
#include "unwind/code_finder.h"

namespace clrsampler {

// Main loop only. Borrows `images`, which outlives it. Processes that map the same file share what is known of it.
//
// Memory: an image that has .eh_frame_hdr costs its section headers (3 KB), and address space for the mapped file;
// others a compiled table (formats/elf/cfi_table.h). All of it together stays below Options::max_bytes: what was used
// longest ago goes, and is made again when it is asked for. An image that alone needs more is unusable.
class ElfUnwindData {
 public:
  struct Options {
    size_t max_bytes = 32 << 20;
    std::string host_debug_root = "/usr/lib/debug";
  };
  struct Counters {
    uint64_t images_opened = 0;
    uint64_t images_unusable = 0;
    uint64_t images_evicted = 0;
    uint64_t debug_files_used = 0;       // for images that have no unwind data themselves, or next to none
    uint64_t debug_files_unchecked = 0;  // how often one was not: DebugFileFinder::unchecked
    uint64_t images_by_code = 0;         // the same, whose rows are made from their instructions
    uint64_t unreadable_rows = 0;        // look-ups that ended at damaged or unknown instructions
    uint64_t bytes = 0;                  // of what is held now
  };
  struct UnusableImage {
    std::string path;
    std::string reason;
  };

  struct ImageExtent {
    std::string path;
    CfiExtent extent;
    bool by_code = false;  // rows are made from its instructions
  };

  ElfUnwindData(ImageFiles& images, Options options);
  explicit ElfUnwindData(ImageFiles& images) : ElfUnwindData(images, Options()) {}
  ~ElfUnwindData();

  // The code at an address inside `mapping`, one of `process`. kUnknown: not an image that the system's loader mapped
  // (a PE file, JIT code), or no part of the image. kNative without a row and not between rows: the image can't be
  // used.
  CodeAt Find(const Process& process, const Mapping& mapping, uint64_t address);

  const Counters& counters() const { return counters_; }
  size_t heap_bytes() const;
  // The images that stacks can't be unwound through, each path once, in the order of their discovery. At most
  // kMaxUnusableListed; counters().images_unusable says how many there were.
  const std::vector<UnusableImage>& unusable() const { return unusable_; }

  // The images that can be used now, by path: how much of their code has rows. Takes 2 ms for a runtime.
  std::vector<ImageExtent> extents() const;

  static constexpr size_t kMaxUnusableListed = 256;
  // Each holds its file mapped; a .NET process has some 30. MappedFile::kMaxViews bounds those of all.
  static constexpr size_t kMaxImages = 1024;

 private:
  struct Image;
  struct MappedImage {
    enum class State : uint8_t { kNew, kForeign, kUnusable, kUnavailable, kImage } state = State::kNew;
    std::weak_ptr<Image> image;  // expired: evicted
  };

  std::shared_ptr<Image> Open(const Process& process, const Mapping& mapping, MappedImage& known);
  std::shared_ptr<Image> Make(std::shared_ptr<const ImageFile> file, std::string path, absl::StatusOr<ElfImage> elf,
                              absl::StatusOr<CfiTable> table, std::optional<DebugFile> debug);
  absl::Status Fill(Image& image, absl::StatusOr<ElfImage> elf, absl::StatusOr<CfiTable> table,
                    std::optional<DebugFile> debug);
  std::shared_ptr<Image> Vdso();
  static std::optional<VirtualAddress> PlaceIn(const Image& image, const Mapping& mapping, uint64_t address);
  void FindInTable(Image& image, VirtualAddress at, CodeAt& code);
  void NoteUnusable(absl::string_view path, absl::string_view reason);
  void Evict(const Image* keep);

  ImageFiles& images_;
  const size_t max_bytes_;
  DebugFileFinder debug_files_;
  Counters counters_;
  std::vector<UnusableImage> unusable_;
  uint64_t clock_ = 0;  // counts uses
  std::shared_ptr<Image> vdso_;
  // By the image and the debug file that was found for this process (nullptr: none). Each Image holds its files.
  using Sources = std::pair<const ImageFile*, const ImageFile*>;
  absl::flat_hash_map<Sources, std::shared_ptr<Image>> by_sources_;
  ByMapping<MappedImage> known_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_DATA_ELF_UNWIND_DATA_H_
