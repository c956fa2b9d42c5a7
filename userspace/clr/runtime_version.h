// Which .NET runtime a process runs, read from the runtime's own image.
//
// Facts (measured on 8.0.0 to 10.0.14, linux-x64; 10.0.9 linux-arm64): libcoreclr.so exports coreclr_initialize, a
// single-file host exports DotNetRuntimeInfo; both hold the text "@(#)Version A.B.CCDD.BUILD @Commit: ..." whose third
// field is patch * 100 + DD (10.0.14: 10.0.1426.52326). 8.0.0 has a third field below 100 (8.0.23.53103).
#ifndef CLRSAMPLER_CLR_RUNTIME_VERSION_H_
#define CLRSAMPLER_CLR_RUNTIME_VERSION_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "process/image_files.h"
#include "process/process.h"

namespace clrsampler {

// "10.0.12" out of "@(#)Version 10.0.1226.45107 @Commit: ..."; empty when the text is not of this form.
std::string RuntimeVersionFromText(absl::string_view version_text);

// Main loop only. Each image is searched once.
class RuntimeVersions {
 public:
  explicit RuntimeVersions(ImageFiles& images) : images_(images) {}

  // Empty: no .NET runtime among the mapped images. A runtime whose version text was not found gives "unknown".
  std::string Of(const Process& process);

 private:
  ImageFiles& images_;
  // By device, inode, size and time of change: an image that is held here would keep its file open for the whole run.
  using Identity = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;
  absl::flat_hash_map<Identity, std::string> by_image_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_RUNTIME_VERSION_H_
