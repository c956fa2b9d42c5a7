// Names of ready-to-run (precompiled) managed code: the framework, and applications published with PublishReadyToRun.
//
// The runtime maps such an image from its dll, or from the single-file host that contains it, so an address leads to a
// place in a file: file offset -> section table -> RVA -> runtime function -> method. Images of a compressed
// single-file program are in no file: there the tables come out of the target's memory (r2r_memory_images.h), and the
// metadata of other assemblies out of the compressed bundle. The image's own tables name it (formats/pe/r2r_image.h).
// An r2rmap beside the image is a second witness where it proves to belong to it (r2r_map_file.h). It is the reported
// source where both agree. Its text is taken where they don't or where the image's tables need an assembly that is not
// there; for those it is asked for from symbol servers too. Cold parts and funclets, which have no row in it, take the
// name of their method, so that one method is one frame.
//
// An address that no runtime function contains is never given a neighbour's name. An address that can't be named here
// is answered with the reason, and the next source is asked all the same.
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
#include "clr/r2r_counters.h"
#include "clr/r2r_files.h"
#include "clr/r2r_memory_images.h"
#include "formats/names/frame_text.h"
#include "formats/pe/r2r_image.h"
#include "process/image_files.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbol_server/symbol_files.h"
#include "symbols/code_source.h"
#include "symbols/frame.h"
#include "symbols/frame_source.h"
#include "symbols/line_source.h"

namespace clrsampler {

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
  const R2rMemoryCounters& memory_counters() const { return files_.memory().counters(); }
  size_t heap_bytes() const { return files_.heap_bytes(); }  // of the indexes; names are in the FrameTable

 private:
  // The answer for a method; valid until the next call that is not const.
  struct Method {
    R2rFile& file;
    R2rLoadedImage& image;
    R2rCodePlace place;
  };
  std::optional<Method> MethodAt(const FrameQuery& query);
  std::shared_ptr<const std::string> CodeBytes(const FrameQuery& query, const Method& method, uint64_t start);

  Resolution ResolveAt(R2rFile& file, const Process& process, R2rLoadedImage& image, uint32_t rva);
  void LoadMap(const Process& process, const R2rFile& file, R2rLoadedImage& image);
  void FetchMap(R2rLoadedImage& image);
  std::shared_ptr<const MethodLines> LinesOf(const Process& process, const Method& method);
  std::shared_ptr<const MethodLines> ReadLines(const Process& process, R2rFile& file, R2rLoadedImage& image,
                                               uint32_t method);
  absl::StatusOr<R2rMethodName> OwnName(R2rLoadedImage& image, uint32_t method, AssemblyOpener& assemblies);
  static bool Agrees(const R2rLoadedImage& image, uint32_t method, absl::string_view row, AssemblyOpener& assemblies);
  void NoteDisagreement(const R2rLoadedImage& image);
  Frame UnnamedFrame(const R2rLoadedImage& image, const absl::StatusOr<R2rMethodName>& own);
  Frame NamedFrame(const R2rFile& file, const R2rLoadedImage& image, MethodName name,
                   const std::optional<R2rFunction>& start, std::optional<absl::string_view> row);
  FrameId NameMethod(const Process& process, R2rFile& file, R2rLoadedImage& image, uint32_t method);
  Resolution Postponed(const FrameQuery& query);
  Resolution Unnamed(const R2rLoadedImage& image, std::string text);

  ImageFiles* images_;
  FrameTable* frames_;
  NameStyle style_;
  Notices* notices_ = nullptr;
  AssemblyPdbs* pdbs_ = nullptr;
  SymbolFiles* symbol_files_;
  R2rMethodCounters counters_;
  R2rFiles files_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_R2R_METHODS_H_
