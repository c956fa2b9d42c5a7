// The manifest of a .NET single-file host: which files are inside, and where.
//
// Layout: dotnet/runtime src/installer/managed/Microsoft.NET.HostModel/Bundle/Manifest.cs and
// src/native/corehost/bundle/{header,file_entry}.h (manifest versions 1, 2 and 6). Images are appended as they are,
// aligned to 64 bytes and not to pages, and mapped from the host file; with compression they are not (the runtime
// copies them). Pure: `host` must outlive the manifest.
#ifndef CLRSAMPLER_FORMATS_PE_BUNDLE_MANIFEST_H_
#define CLRSAMPLER_FORMATS_PE_BUNDLE_MANIFEST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

struct BundleEntry {
  uint64_t offset = 0;            // in the host file
  uint64_t bytes = 0;             // uncompressed
  uint64_t compressed_bytes = 0;  // in the host file; 0: not compressed
  uint8_t type = 0;               // 1 assembly, 2 native, 3 deps.json, 4 runtimeconfig.json, 5 symbols; 0 unknown
  absl::string_view path;         // relative, '/' between parts
};

class BundleManifest {
 public:
  // NotFound: the file is no bundle. DataLoss: it says it is one, but the manifest does not hold together.
  static absl::StatusOr<BundleManifest> Find(std::span<const std::byte> host);

  uint32_t major_version() const { return major_version_; }
  const std::vector<BundleEntry>& entries() const { return entries_; }

  // The entry whose uncompressed bytes are at this offset of the host; nullptr: none.
  const BundleEntry* At(uint64_t file_offset) const;
  // By path, letter case as it is; nullptr: none.
  const BundleEntry* Named(absl::string_view path) const;

 private:
  uint32_t major_version_ = 0;
  std::vector<BundleEntry> entries_;  // sorted by offset
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_BUNDLE_MANIFEST_H_
