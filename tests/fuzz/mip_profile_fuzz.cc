// Any bytes as a .mip: an error with words, or a profile that is written and read again the same, and that doubles when
// it is merged with itself.
#include "fuzz/mip_fuzz.h"

#include "formats/mip/mip_merge.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;
  const absl::StatusOr<MipProfile> profile = ReadMip(FuzzBytes(data, size));
  if (!profile.ok()) {
    Require(!profile.status().message().empty());
    return 0;
  }
  CheckProfile(*profile, size);
  CheckRewrite(*profile);
  MipProfile sum = *profile;
  const absl::StatusOr<MipMerge> merged = MergeMip(sum, FuzzBytes(data, size));
  Require(merged.ok() && merged->added == 0 && sum.functions.size() <= profile->functions.size());
  CheckProfile(sum, 2 * size);
  return 0;
}
