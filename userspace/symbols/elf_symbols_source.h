// Names of native code: executables, shared libraries and the vDSO.
#ifndef CLRSAMPLER_SYMBOLS_ELF_SYMBOLS_SOURCE_H_
#define CLRSAMPLER_SYMBOLS_ELF_SYMBOLS_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_image.h"
#include "formats/elf/elf_symbols.h"
#include "formats/names/frame_text.h"
#include "formats/runtime/runtime_functions.h"
#include "process/by_mapping.h"
#include "process/image_files.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbol_server/symbol_files.h"
#include "symbols/debug_file.h"
#include "symbols/frame_source.h"

namespace clrsampler {

// Main loop only. Borrows `images`, `frames` and `notices`; they outlive it.
//
// Text of a frame, and the source that it names:
//   a symbol          kShort "ns::Class::Method", kFull "libfoo.so!ns::Class::Method(int)", kRaw the name as in the
//   table;
//                     kElfSymbols. Tables: .symtab and .dynsym of the image, those of its separate debug file when the
//                     image has no .symtab.
//   a PLT stub        "malloc@plt"; kElfSymbols. "[plt libfoo.so]" and kNone when its target is unknown.
//   a function of a   kShort and kRaw "ThreadNative_SpinWait", kFull "libcoreclr.so!ThreadNative_SpinWait";
//   .NET runtime      kRuntimeTable. Where the runtime has no symbols and its own tables name the function
//                     (formats/runtime/runtime_functions.h).
//   no symbol         "libfoo.so!0x3d0b60", the virtual address of the function's start by .eh_frame_hdr, or by its
//                     code in images with next to no unwind data (formats/elf/code_rows.h): one frame for a function,
//                     whatever its addresses; kFunctionStart.
//   a method of a     the method as of other managed code (docs/frame-names.md), kRaw the symbol; FrameKind::kAot,
//   NativeAOT program kElfSymbols. Without a symbol its function start, as above, and a notice.
//   not even that     "[native: no symbols libfoo.so]", "[native: cannot read libfoo.so]"; kNone.
// A mapped file that is no ELF image, and an address of an ELF file outside its segments (a bundle behind a single-file
// host), are left to other sources.
//
// An answer holds as long as the process's mappings do, so the caller's key must contain MappingTable::generation();
// and until a symbol file has come from a server, which makes Generation grow. Functions that were written by their
// start or by a runtime's table before that get their names at the end of the run (AddLateNames). Their frames are
// those of one build, since a server is asked by build id. That an image is not
// available at the moment holds for less than ImageFiles::kAskAgainNs.
//
// Memory: 12 bytes per symbol (libc 37 KB, libLLVM-14 0.6 MB), and address space for the mapped file. Images are shared
// by all processes that see the same image, debug file and path. Those that no process uses are kept up to a number of
// bytes, as programs that run again and again need them soon: Options::idle_bytes.
class ElfSymbolsSource : public FrameSource, public LateNames {
 public:
  struct Options {
    std::string host_debug_root = "/usr/lib/debug";
    SymbolFiles* symbol_files = nullptr;  // asked for what is not on this machine; nullptr: nobody is
    bool lines = false;                   // LinePlaceOf will be asked
    size_t idle_bytes = 8 << 20;
    size_t idle_images = 256;  // each holds its file mapped
  };
  struct Counters {
    uint64_t images_read = 0;
    uint64_t images_failed = 0;  // unreadable or damaged; each is a notice too
    uint64_t debug_files_used = 0;
    uint64_t debug_files_wrong = 0;  // right name, other build
    uint64_t debug_files_fetched = 0;
    uint64_t runtimes_read = 0;  // images whose own tables name functions
    uint64_t index_bytes = 0;    // of images now held
    uint64_t images_held = 0;
  };

  ElfSymbolsSource(ImageFiles& images, FrameTable& frames, Notices& notices, NameStyle style, Options options);
  ElfSymbolsSource(ImageFiles& images, FrameTable& frames, Notices& notices, NameStyle style)
      : ElfSymbolsSource(images, frames, notices, style, Options()) {}
  ~ElfSymbolsSource() override;

  std::optional<Resolution> Resolve(const FrameQuery& query) override;
  uint64_t Generation(ProcessKey) const override {
    return symbol_files_ == nullptr ? 1 : 1 + symbol_files_->generation();
  }
  LateNames* late_names() override { return this; }
  void AddLateNames(absl::flat_hash_map<FrameId, FrameId>& names) override;

  // Where debug information tells the line of the code at `lookup_address`: the image itself, or its separate debug
  // file. nullopt: neither has any, or it is no code of an ELF image.
  struct LinePlace {
    std::shared_ptr<const ImageFile> file;
    bool fetched = false;    // it lies in the cache of symbol files
    VirtualAddress address;  // as linked
  };
  std::optional<LinePlace> LinePlaceOf(const Process& process, const Mapping& mapping, uint64_t lookup_address);

  const Counters& counters() const { return counters_; }

 private:
  struct Image;
  struct MappedImage;
  // As of a time, which a sample has. Valid until the next call.
  const MappedImage& ImageOf(const Process& process, const Mapping& mapping, MonotonicTime time);
  std::shared_ptr<Image> Open(const Process& process, const Mapping& mapping,
                              const std::shared_ptr<const ImageFile>& file);
  std::shared_ptr<Image> Index(std::shared_ptr<const ImageFile> file, std::string path, absl::StatusOr<ElfImage> elf,
                               std::optional<DebugFile> debug);
  void FindLines(const std::shared_ptr<const ImageFile>& file, const ElfImage& elf,
                 const std::optional<DebugFile>& debug, Image& image);
  void NoteUnchecked(const std::string& path);
  std::shared_ptr<Image> Failed(const std::string& path, const absl::Status& status);
  std::shared_ptr<Image> Vdso();
  FrameId NameAt(Image& image, VirtualAddress address);
  Frame NativeFrame(const FunctionSymbol& symbol, const Image& image) const;
  Frame ManagedFrame(const FunctionSymbol& symbol, const Image& image) const;
  FrameId Intern(NameSource source, std::string text, const Image& image);
  FrameId Keep(absl::flat_hash_map<uint64_t, FrameId>& frames, VirtualAddress start, FrameId frame);
  FrameId Nameless(const Image& image);
  FrameId InternStart(const FunctionBounds& function, Image& image);
  const RuntimeFunction* RuntimeFunctionAt(VirtualAddress start, Image& image);
  void TakeFetched(Image& image);
  void DropIdleImages();

  ImageFiles& images_;
  FrameTable& frames_;
  Notices& notices_;
  NameStyle style_;
  SymbolFiles* symbol_files_;
  const bool lines_;
  const size_t idle_bytes_, idle_images_;
  DebugFileFinder debug_files_;
  Counters counters_;
  uint64_t clock_ = 0;  // counts uses, to know which image was used last
  std::shared_ptr<Image> vdso_;
  absl::flat_hash_map<FrameId, FrameId> late_names_;  // of frames by a function's start
  // The sources of names: the image, the debug file that was found for this process (nullptr: none), and the path by
  // which the process knows the image. Each Image holds its files.
  using Sources = std::tuple<const ImageFile*, const ImageFile*, std::string>;
  absl::flat_hash_map<Sources, std::shared_ptr<Image>> by_sources_;
  // No optional: GCC 12 takes its move, by a hash map that grows, for a use of what was never set (-O1).
  struct MappedImage {
    bool tried = false;
    MonotonicTime again = MonotonicTime::Max();  // when it is tried again
    std::shared_ptr<Image> image;                // nullptr: not an ELF image
  };
  ByMapping<MappedImage> known_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_ELF_SYMBOLS_SOURCE_H_
