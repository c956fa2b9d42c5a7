// Writes .mip files: the counterpart of mip_reader.h. docs/mip.md has the layouts.
#ifndef CLRSAMPLER_FORMATS_MIP_MIP_WRITER_H_
#define CLRSAMPLER_FORMATS_MIP_MIP_WRITER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/mip/mip_profile.h"

namespace clrsampler {

// Takes the next piece of a file; an error ends the writing and is what the writer returns.
using MipSink = std::function<absl::Status(absl::string_view)>;

// The whole file in pieces of some 256 KiB. The names that functions refer to are written sorted, so the same functions
// make the same bytes. kOutOfRange, before anything is written, where an address does not fit into 32 bits.
absl::Status WriteMip(const MipProfile& profile, MipLayout layout, const MipSink& sink);

// The same as a string.
absl::StatusOr<std::string> MipBytes(const MipProfile& profile, MipLayout layout = MipLayout::kDocumented);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_MIP_WRITER_H_
