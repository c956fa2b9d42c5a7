#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/mip/mip_map.h"
#include "formats/mip/mip_merge.h"
#include "formats/mip/mip_raw.h"
#include "formats/mip/saturating.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::Status CheckSameProgram(const MipProfile& profile, const MipHeader& raw) {
  if (raw.module_hash != profile.module_hash) {
    return WithHint(
        absl::FailedPreconditionError(absl::StrFormat("its module hash is %#010x, and that of the profile %#010x",
                                                      raw.module_hash, profile.module_hash)),
        "counters belong to the profile that was made of their own program's map");
  }
  if (raw.kinds != profile.kinds) {
    return WithHint(absl::FailedPreconditionError(absl::StrCat("it holds ", MipKindsText(raw.kinds),
                                                               ", and the profile ", MipKindsText(profile.kinds),
                                                               ": their records do not lie at the same offsets")),
                    "make the profile anew from the map of the program that wrote the counters: clrsampler mip create");
  }
  return absl::OkStatus();
}

absl::Status CheckRecords(const MipProfile& profile) {
  std::vector<uint32_t> order;
  const std::optional<MipOverlap> overlap = FindMipOverlap(profile, order);
  if (!overlap) return absl::OkStatus();
  const MipFunction &first = profile.functions[overlap->first], &second = profile.functions[overlap->second];
  return WithHint(absl::FailedPreconditionError(absl::StrFormat(
                      "the profile can take no counters: the records of %s at byte %#x and of %s at byte %#x "
                      "overlap",
                      profile.QuotedNameOf(first), first.raw_offset, profile.QuotedNameOf(second), second.raw_offset)),
                  "is it a merge of different builds? add the counters to the profile of their own build first, and "
                  "merge the profiles then");
}

}  // namespace

absl::StatusOr<MipRawMerge> MipRawMerger::Merge(std::span<const std::byte> raw_file) {
  ASSIGN_OR_RETURN(const MipRaw raw, MipRaw::Parse(raw_file));
  RETURN_IF_ERROR(CheckSameProgram(profile_, raw.header()));
  if (!records_) records_ = CheckRecords(profile_);
  RETURN_IF_ERROR(*records_);

  MipRawMerge result;
  for (const MipFunction& function : profile_.functions) {
    const absl::StatusOr<MipRaw::Record> record = raw.At(function.raw_offset, function.block_count);
    if (!record.ok()) {
      return WithHint(Annotate(record.status(), profile_.QuotedNameOf(function)),
                      "was the program killed while it wrote the file, or built anew after the profile was made?");
    }
    if (record->odd_bytes > 0 && strict_) {
      return absl::DataLossError(absl::StrFormat("the record of %s at byte %#x has coverage that is neither 00 nor FF",
                                                 profile_.QuotedNameOf(function), function.raw_offset));
    }
    result.odd_bytes += record->odd_bytes;
  }

  const bool coverage = (profile_.kinds & kMipFunctionCoverage) != 0;
  for (MipFunction& function : profile_.functions) {
    const MipRaw::Record record = *raw.At(function.raw_offset, function.block_count);
    for (size_t i = 0; i < record.blocks.size(); ++i) {
      if (record.BlockRan(i)) profile_.block_covered[function.first_block + i] = 1;
    }
    if (!record.counters.ran) continue;
    ++result.functions_ran;
    function.merge_count = SaturatingSum(function.merge_count, uint32_t{1});
    if (coverage) {
      function.call_count = std::max<uint64_t>(function.call_count, 1);
    } else {
      function.call_count = SaturatingSum(function.call_count, uint64_t{record.counters.call_count});
      function.timestamp_sum = SaturatingSum(function.timestamp_sum, uint64_t{record.counters.timestamp});
    }
  }
  return result;
}

}  // namespace clrsampler
