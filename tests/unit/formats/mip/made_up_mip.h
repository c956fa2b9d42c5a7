// Profiles, maps and counters with random contents: the same for the same seed.
#ifndef CLRSAMPLER_UNIT_FORMATS_MIP_MADE_UP_MIP_H_
#define CLRSAMPLER_UNIT_FORMATS_MIP_MADE_UP_MIP_H_

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/mip/mip_profile.h"
#include "formats/mip/mip_raw.h"

namespace clrsampler::test_support {

inline constexpr uint32_t kCoverage = kMipFunctionCoverage,
                          kCoverageAndBlocks = kMipFunctionCoverage | kMipBlockCoverage, kCounts = kMipCounts,
                          kCountsAndBlocks = kMipCounts | kMipBlockCoverage;
inline constexpr uint32_t kModule = 0xDEADBEEF;

struct MadeUpMip {
  uint32_t seed = 1;
  size_t functions = 50;
  uint32_t kinds = kCountsAndBlocks;
  uint32_t max_blocks = 5;
  bool counted = false;        // with counts, as after merging
  bool odd_names = true;       // of one letter, of other bytes than UTF-8, several functions of one name
  size_t name_bytes = 20;      // about, of the others
  uint32_t header_bytes = 32;  // of the raw file
  double keep = 1.0;           // the part of the functions that is there
};

// Functions as a map has them: one record after the other. Profiles of one seed and kinds have the same functions,
// whatever is counted or kept, and the counts of `count_seed`.
inline MipProfile MadeUpProfile(const MadeUpMip& shape, uint32_t count_seed = 1) {
  std::mt19937 random(shape.seed), counts(count_seed);
  MipProfileBuilder builder(shape.kinds, kModule);
  uint64_t raw_offset = shape.header_bytes;
  int64_t start = -int64_t{1} << 20;
  for (size_t i = 0; i < shape.functions; ++i) {
    std::string name = absl::StrCat("_ZN", i * 7919 % 100003, "function", i);
    name.resize(std::max(name.size(), shape.name_bytes), 'x');
    if (shape.odd_names) {
      const auto kind = random() % 16;
      if (kind == 0) name = "static_duplicate";
      if (kind == 1) name = absl::StrCat("\xff\xfe", i);
      if (kind == 2) name = absl::StrCat("Ns.Type`1[System.__Canon]::\xC3\xA4: \"'#\n\t", i);
      if (kind == 3) name = std::string(1, static_cast<char>('a' + i % 26));
      if (kind == 4) name = "true";
    }
    std::vector<uint32_t> offsets(shape.max_blocks == 0 ? 0 : random() % (shape.max_blocks + 1));
    std::vector<uint8_t> covered(offsets.size());
    for (size_t block = 0; block < offsets.size(); ++block) offsets[block] = 4 + 8 * static_cast<uint32_t>(block);
    NewMipFunction function{.name = name,
                            .raw_offset = raw_offset,
                            .start_offset = start,
                            .size = static_cast<uint32_t>(1 + random() % 4096),
                            .cfg_signature = offsets.empty() ? 0 : static_cast<uint32_t>(random())};
    if (shape.counted && counts() % 3 != 0) {
      const bool coverage = (shape.kinds & kMipFunctionCoverage) != 0;
      function.merge_count = 1 + counts() % 5;
      function.call_count = coverage ? 1 : function.merge_count * (1 + counts() % 1000);
      function.timestamp_sum = coverage ? 0 : function.merge_count * (1 + counts() % 100);
      for (uint8_t& block : covered) block = counts() % 2;
    }
    function.block_offsets = offsets;
    function.block_covered = covered;
    raw_offset += MipRawRecordBytes(shape.kinds, function.block_offsets.size());
    if ((shape.kinds & kMipCounts) != 0) raw_offset = (raw_offset + 3) / 4 * 4;
    start += function.size;
    if (static_cast<double>(counts() % 1000) < shape.keep * 1000) (void)builder.Add(function);
  }
  return std::move(builder).Build();
}

// The counters of a run. Functions of one raw file must follow each other without gaps (keep = 1).
inline std::string MadeUpRaw(const MipProfile& profile, uint32_t seed, MipHeader header = {}) {
  std::mt19937 random(seed);
  header.kinds = profile.kinds;
  header.module_hash = profile.module_hash;
  MipRawWriter writer(header);
  uint32_t timestamp = 0;
  for (const MipFunction& function : profile.functions) {
    std::vector<uint8_t> covered(function.block_count);
    const bool ran = random() % 3 != 0;
    for (uint8_t& block : covered) block = ran && random() % 2 == 0;
    writer.Add({ran, static_cast<uint32_t>(1 + random() % 1000), ++timestamp}, covered);
  }
  return writer.bytes();
}

// All that a .mip holds, function by function, as text: for comparing.
inline std::vector<std::string> Contents(const MipProfile& profile) {
  std::vector<std::string> lines = {absl::StrCat("kinds ", profile.kinds, " module ", profile.module_hash)};
  for (const MipFunction& function : profile.functions) {
    std::string line = absl::StrCat(absl::CHexEscape(profile.NameOf(function)), " ", function.signature, " raw ",
                                    function.raw_offset, " at ", function.start_offset, " size ", function.size,
                                    " cfg ", function.cfg_signature, " merged ", function.merge_count, " calls ",
                                    function.call_count, " order ", function.timestamp_sum);
    const std::span<const uint32_t> offsets = profile.OffsetsOf(function);
    const std::span<const uint8_t> covered = profile.CoveredOf(function);
    for (size_t i = 0; i < offsets.size(); ++i) absl::StrAppend(&line, " ", offsets[i], covered[i] != 0 ? "+" : "-");
    lines.push_back(line);
  }
  return lines;
}

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_UNIT_FORMATS_MIP_MADE_UP_MIP_H_
