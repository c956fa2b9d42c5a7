// Makes the r2rmap of a ready-to-run image from the image itself: a map for images whose own one is not at hand. Its
// rows are those of crossgen2: a row for each method, without cold parts and stubs that resume async methods. x64 maps
// are equal byte for byte. On arm64 crossgen2's lengths include the constants behind the code; these do not.
#ifndef CLRSAMPLER_CLR_R2R_MAP_CONTENT_H_
#define CLRSAMPLER_CLR_R2R_MAP_CONTENT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/jit/r2rmap_parser.h"
#include "formats/pe/r2r_image.h"
#include "os/mapped_file.h"

namespace clrsampler {

// An image in a file, with the assemblies that its names need: those beside it, then those of other folders.
class R2rImageFile {
 public:
  // Errors name the file. FailedPrecondition: no precompiled code is in it.
  static absl::StatusOr<R2rImageFile> Open(const std::string& path, const std::vector<std::string>& folders);

  const R2rImage& image() const { return *image_; }
  R2rImage& image() { return *image_; }
  AssemblyOpener& assemblies() { return *assemblies_; }
  bool damaged() const { return file_->damaged(); }  // it was truncated while it was read

 private:
  R2rImageFile() = default;
  std::shared_ptr<MappedFile> file_;
  std::unique_ptr<R2rImage> image_;  // borrows the file
  std::unique_ptr<AssemblyOpener> assemblies_;
};

// FailedPrecondition: the image names no map of our version, so no map could be proven to belong to it.
absl::StatusOr<R2rMapHeader> R2rMapHeaderOf(const PeImage& pe);

// The name that the image gives its map, "System.Linq.ni.r2rmap": a file name without folders; "": none.
std::string R2rMapFileNameOf(const PeImage& pe);

struct R2rMapContent {
  R2rMap map;                     // by address; its names lie in `names`
  std::deque<std::string> names;  // references stay good
  uint64_t nameless = 0;          // methods that are left out, since a part of their name is not known
};

// Errors are those of R2rMapHeaderOf. The program takes 0.2 s and 41 MB for
// System.Private.CoreLib of 11.0.0.
absl::StatusOr<R2rMapContent> R2rMapContentOf(R2rImage& image, AssemblyOpener& assemblies);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_R2R_MAP_CONTENT_H_
