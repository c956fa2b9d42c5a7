// Assemblies as the target sees them: in the bundle, beside the image, or where the framework is.
#ifndef CLRSAMPLER_CLR_R2R_ASSEMBLIES_H_
#define CLRSAMPLER_CLR_R2R_ASSEMBLIES_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "clr/r2r_files.h"
#include "formats/pe/bundle_manifest.h"
#include "formats/pe/r2r_image.h"
#include "process/image_files.h"
#include "process/process.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only. All that it is made with is borrowed.
class R2rAssemblies : public AssemblyOpener {
 public:
  R2rAssemblies(ImageFiles* images, const R2rFiles& files, const Process& process, R2rFile& file, R2rLoadedImage& image)
      : images_(images), files_(files), process_(process), file_(file), image_(image) {}

  std::optional<OpenedAssembly> Open(absl::string_view simple_name) override;

 private:
  std::optional<OpenedAssembly> OpenPath(const std::string& path);
  // nullptr: damaged, which is remembered, or there is no room for it now.
  std::shared_ptr<const std::vector<std::byte>> Inflate(const BundleEntry& entry);

  ImageFiles* images_;
  const R2rFiles& files_;
  const Process& process_;
  R2rFile& file_;
  R2rLoadedImage& image_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_R2R_ASSEMBLIES_H_
