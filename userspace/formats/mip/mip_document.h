// A profile as a document for people and scripts, in YAML or JSON: the same keys in both, those of the format's
// original tool.
//
//   Header:   {File Type: [.mip], Profile Type: [Function Coverage], Module Hash: 0xDEADBEEF}
//   Profiles: a list of functions; docs/mip.md has the keys
//
// Names that are no UTF-8, which neither syntax can hold, are written under another key, in base64. Reading a document
// and writing it gives the profile again.
#ifndef CLRSAMPLER_FORMATS_MIP_MIP_DOCUMENT_H_
#define CLRSAMPLER_FORMATS_MIP_MIP_DOCUMENT_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/mip/mip_profile.h"
#include "formats/mip/mip_writer.h"

namespace clrsampler {

struct MipDocumentOptions {
  std::function<bool(const MipFunction&)> keep;           // empty: all
  std::function<std::string(const MipFunction&)> source;  // "main.c:12" or ""; empty: for none
};

absl::Status WriteMipYaml(const MipProfile& profile, const MipDocumentOptions& options, const MipSink& sink);
absl::Status WriteMipJson(const MipProfile& profile, const MipDocumentOptions& options, const MipSink& sink);

// Either syntax: JSON begins with '{'. Errors say the line (YAML) and the function. Memory follows the text, not what
// it claims; aliases and unknown keys are errors.
absl::StatusOr<MipProfile> ReadMipDocument(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_MIP_DOCUMENT_H_
