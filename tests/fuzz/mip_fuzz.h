// The common part of the targets of Machine IR Profiles.
#ifndef CLRSAMPLER_FUZZ_MIP_FUZZ_H_
#define CLRSAMPLER_FUZZ_MIP_FUZZ_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/mip/mip_order.h"
#include "formats/mip/mip_profile.h"
#include "formats/mip/mip_reader.h"
#include "formats/mip/mip_writer.h"
#include "status/status.h"

namespace clrsampler {

inline void Require(bool condition) {
  if (!condition) __builtin_trap();
}

inline std::span<const std::byte> FuzzBytes(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

// Whether all that functions refer to is there, and nothing that the file had no room for.
inline void CheckProfile(const MipProfile& profile, size_t file_bytes) {
  Require(profile.functions.size() <= file_bytes && profile.block_offsets.size() <= file_bytes);
  Require(profile.block_offsets.size() == profile.block_covered.size());
  for (const MipFunction& function : profile.functions) {
    Require(function.name == kNoMipName || function.name < profile.names.size());
    Require(uint64_t{function.first_block} + function.block_count <= profile.block_offsets.size());
  }
  const std::vector<uint32_t> order = MipFunctionOrder(profile);
  Require(order.size() == TotalsOf(profile).functions_ran);
}

inline bool Same(const MipProfile& a, const MipProfile& b) {
  if (a.kinds != b.kinds || a.module_hash != b.module_hash || a.functions.size() != b.functions.size()) return false;
  for (size_t i = 0; i < a.functions.size(); ++i) {
    const MipFunction &one = a.functions[i], &two = b.functions[i];
    const std::span<const uint32_t> offsets = a.OffsetsOf(one), others = b.OffsetsOf(two);
    const std::span<const uint8_t> covered = a.CoveredOf(one), other_covered = b.CoveredOf(two);
    if (one.signature != two.signature || one.raw_offset != two.raw_offset || one.start_offset != two.start_offset ||
        one.size != two.size || one.cfg_signature != two.cfg_signature || one.merge_count != two.merge_count ||
        one.call_count != two.call_count || one.timestamp_sum != two.timestamp_sum || a.NameOf(one) != b.NameOf(two) ||
        !std::equal(offsets.begin(), offsets.end(), others.begin(), others.end()) ||
        !std::equal(covered.begin(), covered.end(), other_covered.begin(), other_covered.end())) {
      return false;
    }
  }
  return true;
}

// A profile that was read can be written, in every layout that can hold it, and read again. Where no function has a
// name, nothing but luck tells the two layouts with one header apart (docs/mip.md): the documented one is taken.
inline void CheckRewrite(const MipProfile& profile) {
  const bool named = std::any_of(profile.functions.begin(), profile.functions.end(),
                                 [](const MipFunction& function) { return function.name != kNoMipName; });
  for (const MipLayout layout : {MipLayout::kDocumented, MipLayout::kLlvm, MipLayout::kOld}) {
    const absl::StatusOr<std::string> written = MipBytes(profile, layout);
    Require(written.ok() || layout != MipLayout::kLlvm);
    if (!written.ok()) continue;
    const absl::StatusOr<MipProfile> again = ReadMip(AsBytes(*written));
    Require(again.ok() && (Same(profile, *again) || (!named && again->layout != layout)));
  }
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FUZZ_MIP_FUZZ_H_
