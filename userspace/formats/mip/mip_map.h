// .mipmap: what each counter of an instrumented program belongs to; its section __llvm_mipmap, which is not loaded.
//
// An empty profile is made from it, to which the counters of runs are added. docs/mip.md has the layout and the
// arithmetic of its addresses.
#ifndef CLRSAMPLER_FORMATS_MIP_MIP_MAP_H_
#define CLRSAMPLER_FORMATS_MIP_MIP_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/mip/mip_profile.h"

namespace clrsampler {

inline constexpr absl::string_view kMipMapSection = "__llvm_mipmap";
inline constexpr absl::string_view kMipRawSection = "__llvm_mipraw";

struct MipMap {
  MipProfile profile;      // without counts; its layout is kDocumented, or kOld if the map is
  uint64_t discarded = 0;  // functions that the linker threw away: their counters are nowhere. Not in the profile.
  uint64_t repeated = 0;   // entries of a function that is there already, from inline functions. The same.
};

// Errors say the offset: kDataLoss for a map that ends inside an entry, or whose records overlap.
absl::StatusOr<MipMap> ReadMipMap(std::span<const std::byte> bytes);

// How MipMapBytes writes the map of a profile.
struct MipMapShape {
  MipLayout layout = MipLayout::kDocumented;  // or kOld
  bool is_32_bit = false;
  int64_t raw_section_offset = 0;  // address of the raw section minus that of the map
};
// The map that ReadMipMap makes `profile` of, without its counts. kOutOfRange where an address does not fit.
absl::StatusOr<std::string> MipMapBytes(const MipProfile& profile, const MipMapShape& shape);

// Functions whose records in a raw file overlap: indexes in profile.functions, or nullopt. Functions may share a whole
// record: the linker made one of them. `order` receives the indexes by raw_offset.
struct MipOverlap {
  uint32_t first, second;
};
std::optional<MipOverlap> FindMipOverlap(const MipProfile& profile, std::vector<uint32_t>& order);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_MIP_MAP_H_
