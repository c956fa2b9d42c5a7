// From an address of a process to a ready-to-run image and the RVA in it.
//
// The runtime maps such an image from its dll, or from the single-file host that contains it. Images of a compressed
// single-file program are in no file: their tables come out of the target's memory (r2r_memory_images.h).
#ifndef CLRSAMPLER_CLR_R2R_FILES_H_
#define CLRSAMPLER_CLR_R2R_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clr/lines/method_lines.h"
#include "clr/r2r_counters.h"
#include "clr/r2r_map_file.h"
#include "clr/r2r_memory_images.h"
#include "formats/pe/bundle_manifest.h"
#include "formats/pe/pe_image.h"
#include "formats/pe/r2r_image.h"
#include "process/image_files.h"
#include "process/per_process.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/frame_source.h"

namespace clrsampler {

// A ready-to-run image, in a file or in memory.
struct R2rLoadedImage {
  enum class State { kUsable, kNoCode, kRefused };
  struct Named {
    FrameId frame;
    bool retry;  // an assembly was missing: another process may see it
  };

  std::shared_ptr<const MemoryImage> memory;  // where the image is in no file; before `r2r`, which points into it
  State state = State::kNoCode;
  std::string file_name;  // "System.Linq.dll"
  std::string module;     // "System.Linq"
  std::string refusal;
  std::unique_ptr<R2rImage> r2r;
  bool map_tried = false;
  std::optional<R2rMapFile> map;
  std::optional<uint64_t> map_asked_at;           // generation of the symbol files; nullopt: no map is wanted yet
  absl::flat_hash_set<std::string> maps_refused;  // signatures of maps that came and were not of this build
  absl::flat_hash_map<uint32_t, Named> names;     // by the function where the method begins
  // By the function where the method begins; nullptr: it has no lines.
  absl::flat_hash_map<uint32_t, std::shared_ptr<const MethodLines>> lines;
  std::vector<std::shared_ptr<const ImageFile>> opened;  // other assemblies, to notice damage
  size_t missing_counted = 0;

  // Another process may see the assemblies that were missing.
  void AskAgain();
};

// A file that processes of the same mounts see at one path: a dll, or the host of a bundle.
struct R2rFile {
  std::shared_ptr<const ImageFile> content;
  std::string path;  // without " (deleted)"
  ImageRef image;    // of a PE file
  bool is_pe = false;
  std::optional<BundleManifest> bundle;
  absl::flat_hash_map<uint64_t, std::unique_ptr<R2rLoadedImage>> images;  // by offset in the file
  absl::flat_hash_map<const MemoryImage*, std::unique_ptr<R2rLoadedImage>> memory_images;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const std::vector<std::byte>>> inflated;  // by offset in the file
  uint64_t inflated_bytes = 0;
  size_t users = 0;
  uint64_t idle_since = 0;
  bool damage_counted = false;
};

// Main loop only. Images are shared by all processes that map the same file, see it at the same path and have the same
// mounts, and some idle ones are kept for the next.
class R2rFiles {
 public:
  // `images` and `counters` are borrowed.
  R2rFiles(ImageFiles* images, R2rMemoryOptions memory, R2rMethodCounters& counters);

  struct Place {
    R2rFile* file = nullptr;
    R2rLoadedImage* image = nullptr;
    // In an executable section; of images that are not usable it is not known. nullopt: in no such section.
    std::optional<uint32_t> rva;
  };
  // nullopt: there is no image with ready-to-run code.
  std::optional<Place> Find(const FrameQuery& query);
  // The place in a file's mapping, executable or not.
  std::optional<Place> FindInFile(const FrameQuery& query);
  // Only what was read tells whether a file is still whole, so this question comes last.
  bool IsDamaged(R2rFile& file);

  // Bytes that may still be unpacked from compressed bundles for this process. Unpacked ones stay with their file.
  uint64_t RoomToUnpack(ProcessKey key) const;

  R2rMemoryImages& memory() { return memory_; }
  const R2rMemoryImages& memory() const { return memory_; }
  size_t heap_bytes() const;

 private:
  using Used = absl::flat_hash_set<R2rFile*>;

  // By identity: each R2rFile holds its ImageFile, so that the address stays taken.
  // With the mounts and the path by which a process sees it: maps and other assemblies are looked for from there, and
  // what they say counts for nobody else.
  using Sources = std::tuple<const ImageFile*, std::string, std::string>;

  std::optional<Place> FindInMemory(const FrameQuery& query);
  R2rFile* FileOf(const FrameQuery& query);
  R2rFile& HostOf(const Process& process);
  R2rFile* Use(const Process& process, const std::shared_ptr<const ImageFile>& content, Sources sources);
  R2rLoadedImage* ImageAt(R2rFile& file, uint64_t file_offset);
  std::unique_ptr<R2rLoadedImage> OpenImage(const R2rFile& file, uint64_t offset, uint64_t bytes,
                                            absl::string_view file_name);
  void OpenTables(R2rLoadedImage& image, absl::StatusOr<PeImage> pe);
  void DropIdleFiles();
  void Release(const Used& used);

  ImageFiles* images_;
  R2rMethodCounters& counters_;
  const uint64_t most_unpacked_, most_unpacked_of_one_;  // bytes: of all files, of those that one process uses
  R2rMemoryImages memory_;
  std::unique_ptr<R2rFile> no_host_;  // stands for the program of a process whose own file can't be read
  absl::flat_hash_map<Sources, std::unique_ptr<R2rFile>> files_;
  PerProcess<Used> by_process_;
  uint64_t ends_ = 0;  // of programs that used files: clock of the idle files
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_R2R_FILES_H_
