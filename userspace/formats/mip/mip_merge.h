// Adds runs to a profile (.mipraw into .mip), and profiles to each other (.mip into .mip).
//
// A profile is not changed by a file that is refused. Numbers that would overflow stay at their largest value.
#ifndef CLRSAMPLER_FORMATS_MIP_MIP_MERGE_H_
#define CLRSAMPLER_FORMATS_MIP_MIP_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/mip/mip_profile.h"

namespace clrsampler {

struct MipRawMerge {
  uint64_t functions_ran = 0;
  uint64_t odd_bytes = 0;  // coverage bytes that are neither 00 nor FF; counted as not run
};

// Adds raw files to one profile, which it borrows and which nobody else changes meanwhile.
class MipRawMerger {
 public:
  // Strict: a file with odd bytes is refused.
  MipRawMerger(MipProfile& profile, bool strict) : profile_(profile), strict_(strict) {}

  // Refused are: a raw file of another module (kFailedPrecondition), of a program that was instrumented otherwise (the
  // same), one whose records do not lie in it or are damaged (kDataLoss, with the offset).
  absl::StatusOr<MipRawMerge> Merge(std::span<const std::byte> raw_file);

 private:
  MipProfile& profile_;
  bool strict_;
  std::optional<absl::Status> records_;  // whether the profile's records can be those of one raw file
};

struct MipMerge {
  uint64_t matched = 0;  // functions that both have
  uint64_t added = 0;    // functions that only the other one has
};

// Adds the profile in the bytes of a .mip file. Functions are the same if name, graph, size and blocks are; of several
// such the first belongs to the first, by address. Those that only one has stay. Where addresses differ the smaller one
// stays: they are of different builds. Associative and commutative, the order of the functions included.
//
// Refused are: another module, unless `any_module`; coverage into counts and the reverse (kFailedPrecondition).
absl::StatusOr<MipMerge> MergeMip(MipProfile& profile, std::span<const std::byte> other_file, bool any_module = false);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_MIP_MERGE_H_
