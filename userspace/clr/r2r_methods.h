// Names of ready-to-run (precompiled) managed code: the framework, and applications published with PublishReadyToRun.
//
// The runtime maps such an image from its dll, or from the single-file host that contains it, so an address leads to a
// place in a file: file offset -> section table -> RVA -> runtime function -> method. Images of a compressed
// single-file program are in no file: there the tables come out of the target's memory (r2r_memory_images.h), and the
// metadata of other assemblies out of the compressed bundle. The image's own tables name it (formats/pe/r2r_image.h).
// An r2rmap beside the image is a second witness where it proves to belong to it (r2r_map_file.h): it is the reported
// source where both agree, and its text is taken where they don't or where the image's tables need an assembly that is
// not there; for those it is asked for from symbol servers too. Cold parts and funclets, which have no row in it, take
// the name of their method, so that one method is one frame.
//
// An address that no runtime function contains is never given a neighbour's name. What can't be named here is answered
// with the reason, and the next source is asked all the same.
#ifndef CLRSAMPLER_CLR_R2R_METHODS_H_
#define CLRSAMPLER_CLR_R2R_METHODS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "clr/lines/assembly_pdbs.h"
#include "clr/lines/method_lines.h"
#include "clr/r2r_memory_images.h"
#include "formats/names/frame_text.h"
#include "formats/pe/r2r_image.h"
#include "process/image_files.h"
#include "status/notices.h"
#include "symbol_server/symbol_files.h"
#include "symbols/code_source.h"
#include "symbols/frame.h"
#include "symbols/frame_source.h"
#include "symbols/line_source.h"

namespace clrsampler {

struct R2rMethodCounters {
  // Images and maps, each once.
  uint64_t images = 0;          // whose tables were read
  uint64_t bundles = 0;         // single-file hosts
  uint64_t images_refused = 0;  // R2R images that are newer than we know or whose tables contradict themselves
  uint64_t images_damaged = 0;  // files that shrank while they were read
  uint64_t maps_used = 0;
  uint64_t maps_fetched = 0;        // of these, from a symbol server
  uint64_t maps_rejected = 0;       // an r2rmap that does not parse or belongs to another image
  uint64_t missing_assemblies = 0;  // components and references that names need and that were not found
  // Methods, each once per image.
  uint64_t methods_named = 0;
  uint64_t methods_by_token = 0;          // unnamed: only module and token are known, an assembly is missing
  uint64_t methods_with_type_tokens = 0;  // named, but a generic argument stands as a token
  uint64_t methods_failed = 0;            // unnamed: the tables could not be followed
  uint64_t map_disagreements = 0;         // the r2rmap says another name than the image
  // Questions.
  uint64_t unreadable_files = 0;   // the mapped file could not be opened
  uint64_t outside_functions = 0;  // in code of an image, but in no runtime function
};

// Main loop only. Images are shared by all processes that map the same file, see it at the same path and have the same
// mounts, and some idle ones are kept for the next.
class R2rMethods : public FrameSource, public LineSource, public CodeSource {
 public:
  // Without `memory.read_memory` only images in files are named. `symbol_files`: asked for maps that are not on this
  // machine; nullptr: nobody is.
  R2rMethods(ImageFiles* images, FrameTable* frames, NameStyle style, R2rMemoryOptions memory = {},
             SymbolFiles* symbol_files = nullptr);
  ~R2rMethods() override;
  // Where maps that can't be used or that contradict their image are told of; until then they are only counted.
  void ReportTo(Notices* notices) { notices_ = notices; }

  // Where the lines of methods come from; until then there are none.
  void TakeLinesFrom(AssemblyPdbs* pdbs) { pdbs_ = pdbs; }

  // Holds as long as the mapping does, for which the caller keeps watch.
  std::optional<Resolution> Resolve(const FrameQuery& query) override;
  std::optional<SourcePlace> PlaceOf(const FrameQuery& query) override;
  // Not of cold parts.
  std::optional<CodeBody> BodyOf(const FrameQuery& query) override;
  uint64_t Generation(ProcessKey) const override { return symbol_files_ == nullptr ? 0 : symbol_files_->generation(); }
  void Poll(const Process&, MonotonicTime) override {}
  MonotonicTime CompleteUntil(ProcessKey) const override { return MonotonicTime::Max(); }
  void Forget(ProcessKey key) override;

  // The code at an address of a ready-to-run image. nullopt: there is no such image.
  struct Code {
    const R2rImage* image = nullptr;  // as long as `content`, and until the next call that is not const
    // nullopt: in no runtime function, so in a stub of the image.
    std::optional<R2rFunction> function;
    uint64_t address = 0;                 // of RVA 0, if the code lies there as the image says
    std::shared_ptr<const void> content;  // holds the image's bytes
    bool in_memory = false;               // the bytes were copied from the process, without code and unwind data
    const ImageFile* file = nullptr;      // of others: check whether it is damaged after what was read
  };
  std::optional<Code> CodeAt(const FrameQuery& query);

  // The tables of the image at an address of a file's mapping, executable or not; its `image` is nullptr where none can
  // be used. Valid until the next call that is not const; what could not be opened for another process is forgotten.
  R2rTables TablesAt(const Process& process, const Mapping& mapping, uint64_t address);

  const R2rMethodCounters& counters() const { return counters_; }
  const R2rMemoryCounters& memory_counters() const { return memory_.counters(); }
  size_t heap_bytes() const;  // of the indexes; names are in the FrameTable

 private:
  struct Image;
  struct File;
  class Assemblies;

  // Of a method; valid until the next call that is not const.
  struct Method {
    File& file;
    Image& image;
    R2rCodePlace place;
  };
  std::optional<Method> MethodAt(const FrameQuery& query);
  std::shared_ptr<const std::string> CodeBytes(const FrameQuery& query, const Method& method, uint64_t start);

  struct Place {
    File* file = nullptr;
    Image* image = nullptr;
    // In an executable section; of images that are not usable it is not known. nullopt: in no such section.
    std::optional<uint32_t> rva;
  };
  std::optional<Place> Find(const FrameQuery& query);
  std::optional<Place> FindInFile(const FrameQuery& query);
  std::optional<Place> FindInMemory(const FrameQuery& query);
  bool IsDamaged(File& file);
  Resolution ResolveAt(File& file, const Process& process, Image& image, uint32_t rva);
  File* FileOf(const FrameQuery& query);
  File& HostOf(const Process& process);
  // By identity: each File holds its ImageFile, so that the address stays taken.
  // With the mounts and the path by which a process sees it: maps and other assemblies are looked for from there, and
  // what they say counts for nobody else.
  using Sources = std::tuple<const ImageFile*, std::string, std::string>;
  File* Use(const Process& process, const std::shared_ptr<const ImageFile>& content, Sources sources);
  Image* ImageAt(File& file, uint64_t file_offset);
  std::unique_ptr<Image> OpenImage(const File& file, uint64_t offset, uint64_t bytes, absl::string_view file_name);
  void OpenTables(Image& image, absl::StatusOr<PeImage> pe);
  void LoadMap(const Process& process, const File& file, Image& image);
  void FetchMap(Image& image);
  std::shared_ptr<const MethodLines> LinesOf(const Process& process, const Method& method);
  std::shared_ptr<const MethodLines> ReadLines(const Process& process, File& file, Image& image, uint32_t method);
  FrameId NameMethod(const Process& process, File& file, Image& image, uint32_t method);
  Resolution Unnamed(const Image& image, std::string text);
  void DropIdleFiles();

  ImageFiles* images_;
  FrameTable* frames_;
  NameStyle style_;
  Notices* notices_ = nullptr;
  AssemblyPdbs* pdbs_ = nullptr;
  SymbolFiles* symbol_files_;
  R2rMethodCounters counters_;
  R2rMemoryImages memory_;
  std::unique_ptr<File> no_host_;  // stands for the program of a process whose own file can't be read
  absl::flat_hash_map<Sources, std::unique_ptr<File>> files_;
  absl::flat_hash_map<ProcessKey, absl::flat_hash_set<File*>> by_process_;
  uint64_t forget_count_ = 0;  // clock of the idle files
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_R2R_METHODS_H_
