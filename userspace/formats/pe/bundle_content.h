// The content of a compressed file of a single-file bundle.
//
// Layout: one raw deflate stream (dotnet/runtime src/installer/managed/Microsoft.NET.HostModel/Bundle/Bundler.cs;
// manifest version 6, EnableCompressionInSingleFile).
#ifndef CLRSAMPLER_FORMATS_PE_BUNDLE_CONTENT_H_
#define CLRSAMPLER_FORMATS_PE_BUNDLE_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/pe/bundle_manifest.h"

namespace clrsampler {

// `host`: the whole host file. ResourceExhausted: larger than `max_bytes`. DataLoss: the stream is damaged, or gives
// more or fewer bytes than the manifest says. 150 MB/s.
absl::StatusOr<std::vector<std::byte>> InflateBundleEntry(std::span<const std::byte> host, const BundleEntry& entry,
                                                          uint64_t max_bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_BUNDLE_CONTENT_H_
