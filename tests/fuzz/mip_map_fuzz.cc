// Any bytes as a .mipmap: an error with words, or an empty profile that can be written, as a map too.
#include "formats/mip/mip_map.h"

#include "fuzz/mip_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;
  const absl::StatusOr<MipMap> map = ReadMipMap(FuzzBytes(data, size));
  if (!map.ok()) {
    Require(!map.status().message().empty());
    return 0;
  }
  CheckProfile(map->profile, size);
  CheckRewrite(map->profile);
  for (const MipMapShape& shape : {MipMapShape{.raw_section_offset = -4096}, MipMapShape{.is_32_bit = true}}) {
    const absl::StatusOr<std::string> written = MipMapBytes(map->profile, shape);
    if (!written.ok()) continue;
    const absl::StatusOr<MipMap> again = ReadMipMap(AsBytes(*written));
    Require(again.ok());
    // Records before the end of a header of 32 bytes are those of discarded functions to a new map.
    Require(again->discarded > 0 || Same(map->profile, again->profile));
  }
  return 0;
}
