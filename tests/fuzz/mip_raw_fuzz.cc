// A .mip and a .mipraw in one input, the length of the first in two bytes before them. A raw file that is refused
// changes nothing; one that is not adds at most one run to each function.
#include "formats/mip/mip_merge.h"
#include "fuzz/mip_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;
  if (size < 2) return 0;
  const size_t profile_bytes = std::min<size_t>(data[0] + 256 * data[1], size - 2);
  const absl::StatusOr<MipProfile> profile = ReadMip(FuzzBytes(data + 2, profile_bytes));
  if (!profile.ok()) return 0;
  const std::span<const std::byte> raw = FuzzBytes(data + 2 + profile_bytes, size - 2 - profile_bytes);
  for (const bool strict : {false, true}) {
    MipProfile changed = *profile;
    const absl::StatusOr<MipRawMerge> merged = MipRawMerger(changed, strict).Merge(raw);
    if (!merged.ok()) {
      Require(!merged.status().message().empty() && Same(changed, *profile));
      continue;
    }
    Require(!strict || merged->odd_bytes == 0);
    CheckProfile(changed, size);
    uint64_t ran = 0;
    for (size_t i = 0; i < changed.functions.size(); ++i) {
      const uint64_t more = uint64_t{changed.functions[i].merge_count} - profile->functions[i].merge_count;
      Require(more <= 1 && changed.functions[i].call_count >= profile->functions[i].call_count);
      ran += more;
    }
    Require(ran <= merged->functions_ran);
  }
  return 0;
}
