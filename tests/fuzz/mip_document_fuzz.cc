// Any text as YAML or JSON: an error with words, or a profile that is written as both and read again the same.
#include "formats/mip/mip_document.h"

#include "fuzz/mip_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;
  const absl::StatusOr<MipProfile> profile = ReadMipDocument(AsText(FuzzBytes(data, size)));
  if (!profile.ok()) {
    Require(!profile.status().message().empty());
    return 0;
  }
  CheckProfile(*profile, size);
  for (const bool json : {false, true}) {
    std::string text;
    const MipSink sink = [&](absl::string_view piece) {
      text.append(piece.data(), piece.size());
      return absl::OkStatus();
    };
    Require((json ? WriteMipJson(*profile, {}, sink) : WriteMipYaml(*profile, {}, sink)).ok());
    const absl::StatusOr<MipProfile> again = ReadMipDocument(text);
    Require(again.ok() && Same(*profile, *again));
  }
  return 0;
}
