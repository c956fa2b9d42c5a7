#include "formats/mip/mip_merge.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/mip/mip_reader.h"
#include "formats/mip/saturating.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::Status CheckMergeable(const MipProfile& profile, const MipHeader& other, bool any_module) {
  if (other.module_hash != profile.module_hash && !any_module) {
    return WithHint(
        absl::FailedPreconditionError(absl::StrFormat("its module hash is %#010x, and that of the profile %#010x",
                                                      other.module_hash, profile.module_hash)),
        "profiles of one module are merged; --force merges them whatever module they name");
  }
  if (((other.kinds ^ profile.kinds) & kMipFunctionCoverage) != 0) {
    return WithHint(absl::FailedPreconditionError(absl::StrCat("it holds ", MipKindsText(other.kinds),
                                                               ", and the profile ", MipKindsText(profile.kinds))),
                    "that a function ran and how often can't be added up; keep two profiles");
  }
  return absl::OkStatus();
}

void AddCounts(MipFunction& to, const MipFunction& from, bool coverage) {
  to.merge_count = SaturatingSum(to.merge_count, from.merge_count);
  to.timestamp_sum = SaturatingSum(to.timestamp_sum, from.timestamp_sum);
  to.call_count = coverage ? std::max(to.call_count, from.call_count) : SaturatingSum(to.call_count, from.call_count);
}

// Whether a profile has the order that merging gives, and no function twice.
bool InOrder(const MipProfile& profile) {
  return std::adjacent_find(profile.functions.begin(), profile.functions.end(),
                            [](const MipFunction& a, const MipFunction& b) { return a.raw_offset >= b.raw_offset; }) ==
         profile.functions.end();
}

bool AllNamed(const MipProfile& profile) {
  return std::all_of(profile.functions.begin(), profile.functions.end(),
                     [](const MipFunction& function) { return function.name != kNoMipName; });
}

bool SameFunctions(const MipProfile& profile, const MipView& other) {
  if (other.function_count() != profile.functions.size() || !InOrder(profile)) return false;
  uint64_t offset = other.first_record();
  for (const MipFunction& function : profile.functions) {
    const MipView::Record record = other.Next(offset);
    const auto key = [](const MipFunction& f) {
      return std::tie(f.signature, f.raw_offset, f.start_offset, f.size, f.cfg_signature, f.block_count);
    };
    if (key(function) != key(record.function)) return false;
    for (uint32_t i = 0; i < function.block_count; ++i) {
      if (record.BlockOffset(i) != profile.block_offsets[function.first_block + i]) return false;
    }
  }
  return true;
}

// The usual case of merging, profiles of one map. It is done in place, and without a copy of the other one.
void AddInPlace(MipProfile& profile, const MipView& other) {
  const bool coverage = (profile.kinds & kMipFunctionCoverage) != 0;
  uint64_t offset = other.first_record();
  for (MipFunction& function : profile.functions) {
    const MipView::Record record = other.Next(offset);
    AddCounts(function, record.function, coverage);
    for (uint32_t i = 0; i < function.block_count; ++i) {
      profile.block_covered[function.first_block + i] |= record.BlockCovered(i);
    }
  }
}

// Functions of one profile, sorted so that those of equal identity follow each other, by address.
class SortedFunctions {
 public:
  explicit SortedFunctions(const MipProfile& profile) : profile_(profile), order_(profile.functions.size()) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      const MipFunction &one = profile.functions[a], &two = profile.functions[b];
      const int identity = CompareIdentity(profile, one, profile, two);
      return identity != 0 ? identity < 0 : Address(one) < Address(two);
    });
  }

  static int CompareIdentity(const MipProfile& a, const MipFunction& one, const MipProfile& b, const MipFunction& two) {
    const auto key = [](const MipFunction& f) { return std::tie(f.signature, f.cfg_signature, f.size, f.block_count); };
    if (key(one) != key(two)) return key(one) < key(two) ? -1 : 1;
    const std::span<const uint32_t> x = a.OffsetsOf(one), y = b.OffsetsOf(two);
    const auto [at, other] = std::mismatch(x.begin(), x.end(), y.begin());
    return at == x.end() ? 0 : *at < *other ? -1 : 1;
  }
  static std::pair<int64_t, uint64_t> Address(const MipFunction& function) {
    return {function.start_offset, function.raw_offset};
  }

  bool done() const { return next_ >= order_.size(); }
  const MipProfile& profile() const { return profile_; }
  const MipFunction& front() const { return profile_.functions[order_[next_]]; }

  // The next function, with all that are the same at the same address, as one.
  MipFunction Take(std::vector<uint8_t>& covered, bool coverage) {
    const MipFunction& first = front();
    MipFunction sum = first;
    const std::span<const uint8_t> own = profile_.CoveredOf(first);
    covered.assign(own.begin(), own.end());
    for (++next_;
         !done() && Address(front()) == Address(first) && CompareIdentity(profile_, front(), profile_, first) == 0;
         ++next_) {
      AddCounts(sum, front(), coverage);
      const std::span<const uint8_t> more = profile_.CoveredOf(front());
      for (size_t i = 0; i < covered.size(); ++i) covered[i] |= more[i];
    }
    return sum;
  }

 private:
  const MipProfile& profile_;
  std::vector<uint32_t> order_;
  size_t next_ = 0;
};

// Any two profiles: their functions side by side.
class Joiner {
 public:
  Joiner(const MipProfile& a, const MipProfile& b) : a_(a), b_(b) {
    result_.kinds = a.kinds | b.kinds;
    result_.module_hash = a.module_hash;
    result_.layout = a.layout;
    coverage_ = (result_.kinds & kMipFunctionCoverage) != 0;
  }

  absl::StatusOr<MipProfile> Join(MipMerge& merge) {
    SortedFunctions left(a_), right(b_);
    std::vector<uint8_t> covered, more;
    while (!left.done() || !right.done()) {
      const int which = left.done()    ? 1
                        : right.done() ? -1
                                       : SortedFunctions::CompareIdentity(a_, left.front(), b_, right.front());
      const MipProfile& source = which > 0 ? b_ : a_;
      const MipFunction& shape = which > 0 ? right.front() : left.front();
      MipFunction sum = which > 0 ? right.Take(covered, coverage_) : left.Take(covered, coverage_);
      if (which == 0) {
        const MipFunction other = right.Take(more, coverage_);
        AddCounts(sum, other, coverage_);
        std::tie(sum.start_offset, sum.raw_offset) =
            std::min(SortedFunctions::Address(sum), SortedFunctions::Address(other));
        for (size_t i = 0; i < covered.size(); ++i) covered[i] |= more[i];
      }
      merge.matched += which == 0;
      merge.added += which > 0;
      RETURN_IF_ERROR(Append(sum, source.OffsetsOf(shape), covered));
    }
    Sort();
    RETURN_IF_ERROR(BindNames());
    return std::move(result_);
  }

 private:
  absl::Status Append(MipFunction function, std::span<const uint32_t> offsets, const std::vector<uint8_t>& covered) {
    if (result_.block_offsets.size() + offsets.size() > UINT32_MAX) {
      return absl::ResourceExhaustedError("more than 2^32 blocks in one profile");
    }
    function.first_block = static_cast<uint32_t>(result_.block_offsets.size());
    function.name = kNoMipName;
    result_.block_offsets.insert(result_.block_offsets.end(), offsets.begin(), offsets.end());
    result_.block_covered.insert(result_.block_covered.end(), covered.begin(), covered.end());
    result_.functions.push_back(function);
    return absl::OkStatus();
  }

  void Sort() {
    std::sort(result_.functions.begin(), result_.functions.end(), [&](const MipFunction& one, const MipFunction& two) {
      const auto key = [](const MipFunction& f) { return std::tie(f.raw_offset, f.start_offset); };
      if (key(one) != key(two)) return key(one) < key(two);
      return SortedFunctions::CompareIdentity(result_, one, result_, two) < 0;
    });
  }

  // This is done for either profile: a function that is nameless in one has a name if the other knows it.
  absl::Status BindNames() {
    absl::flat_hash_map<uint64_t, absl::string_view> known;
    for (const MipProfile* profile : {&b_, &a_}) {
      for (const MipFunction& function : profile->functions) {
        if (function.name != kNoMipName) known[function.signature] = profile->NameOf(function);
      }
    }
    absl::flat_hash_map<uint64_t, uint32_t> indexes;
    for (MipFunction& function : result_.functions) {
      const auto name = known.find(function.signature);
      if (name == known.end()) continue;
      const auto [index, inserted] = indexes.try_emplace(function.signature, kNoMipName);
      if (inserted) {
        const std::optional<uint32_t> added = result_.names.Append(name->second);
        if (!added) return absl::ResourceExhaustedError("more than 4 GiB of names in one profile");
        index->second = *added;
      }
      function.name = index->second;
    }
    return absl::OkStatus();
  }

  const MipProfile &a_, &b_;
  bool coverage_ = false;
  MipProfile result_;
};

}  // namespace

absl::StatusOr<MipMerge> MergeMip(MipProfile& profile, std::span<const std::byte> other_file, bool any_module) {
  ASSIGN_OR_RETURN(const MipView view, MipView::Parse(other_file));
  RETURN_IF_ERROR(CheckMergeable(profile, view.header(), any_module));
  if (SameFunctions(profile, view) && (profile.names_bound ? AllNamed(profile) : SameMipNames(profile, view))) {
    AddInPlace(profile, view);
    profile.kinds |= view.header().kinds;
    return MipMerge{.matched = profile.functions.size()};
  }
  if (!profile.names_bound) BindMipNames(profile);
  ASSIGN_OR_RETURN(const MipProfile other, ReadMip(other_file));
  MipMerge merge;
  ASSIGN_OR_RETURN(profile, Joiner(profile, other).Join(merge));
  return merge;
}

}  // namespace clrsampler
