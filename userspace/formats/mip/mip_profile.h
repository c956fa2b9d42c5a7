// A Machine IR Profile in memory: one record for each function of a module, its blocks, and the functions' names.
//
// Made by MipProfileBuilder (from a map, from samples) or by ReadMip; written by WriteMip. A value: no part refers to
// the bytes it was read from. Any thread may read it.
#ifndef CLRSAMPLER_FORMATS_MIP_MIP_PROFILE_H_
#define CLRSAMPLER_FORMATS_MIP_MIP_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/mip/mip_layout.h"

namespace clrsampler {

inline constexpr uint32_t kNoMipName = UINT32_MAX;

struct MipFunction {
  uint64_t signature = 0;      // MipFunctionSignature of its name
  uint64_t raw_offset = 0;     // of its record in a .mipraw file, header counted; the key while raw files are merged
  int64_t start_offset = 0;    // its address minus that of the raw section (of a profile from samples: docs/mip.md)
  uint64_t call_count = 0;     // where only coverage was recorded: 1 if it ever ran
  uint64_t timestamp_sum = 0;  // sum of the ordinals of its first calls, one for each of merge_count
  uint32_t size = 0;           // bytes of code
  uint32_t cfg_signature = 0;
  uint32_t merge_count = 0;    // raw profiles in which it ran
  uint32_t name = kNoMipName;  // index in names; kNoMipName where the file had none with that signature
  uint32_t first_block = 0;    // index in block_offsets and block_covered
  uint32_t block_count = 0;    // without the entry block, whose coverage is the function's

  bool ran() const { return merge_count > 0; }
  // Profiles of other tools may have counts without merges.
  bool entry_ran() const { return merge_count > 0 || call_count > 0; }
};

// Texts without NUL in one piece of memory. At most 4 GiB; Append says no beyond.
class MipNames {
 public:
  // The new name's index, or nullopt: full.
  std::optional<uint32_t> Append(absl::string_view name);
  size_t size() const { return ends_.size(); }
  size_t bytes() const { return text_.size(); }
  absl::string_view operator[](size_t index) const {
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return absl::string_view(text_.data() + begin, ends_[index] - begin);
  }
  void Reserve(size_t names, size_t bytes);

 private:
  std::string text_;
  std::vector<uint32_t> ends_;
};

struct MipProfile {
  uint32_t kinds = 0;
  uint32_t module_hash = 0;
  uint16_t version = kMipVersion;             // of the file that was read
  MipLayout layout = MipLayout::kDocumented;  // the same
  MipNames names;                             // each once
  // False: `names` are those of the functions, but these do not refer to them (MipNaming::kLater).
  bool names_bound = true;
  std::vector<MipFunction> functions;   // in the order of the file
  std::vector<uint32_t> block_offsets;  // of all functions: block start minus function start; 0 if unknown
  std::vector<uint8_t> block_covered;   // 1: it ran

  // Empty where it has none.
  absl::string_view NameOf(const MipFunction& function) const {
    return function.name == kNoMipName ? absl::string_view() : names[function.name];
  }
  // For messages: quoted, nothing in it that a terminal obeys, not long. Searches all names if they are not bound.
  std::string QuotedNameOf(const MipFunction& function) const;
  std::span<const uint32_t> OffsetsOf(const MipFunction& function) const {
    return std::span(block_offsets).subspan(function.first_block, function.block_count);
  }
  std::span<const uint8_t> CoveredOf(const MipFunction& function) const {
    return std::span(block_covered).subspan(function.first_block, function.block_count);
  }
};

// The facts about a function that is added; views are only read during Add.
struct NewMipFunction {
  absl::string_view name;
  uint64_t raw_offset = 0;
  int64_t start_offset = 0;
  uint32_t size = 0;
  uint32_t cfg_signature = 0;
  uint32_t merge_count = 0;
  uint64_t call_count = 0;
  uint64_t timestamp_sum = 0;
  std::span<const uint32_t> block_offsets = {};
  std::span<const uint8_t> block_covered = {};  // empty: none is; otherwise as long as block_offsets
  std::optional<uint64_t> signature = {};       // of a function without a name
};

// Functions that share a name share its text. Names of the same signature are one to the format: the first one stays.
class MipProfileBuilder {
 public:
  MipProfileBuilder(uint32_t kinds, uint32_t module_hash);

  // An error for a name with a NUL, which the format can't hold, and where a limit is reached (4 GiB of names, 2^32
  // blocks): nothing is added then.
  absl::Status Add(const NewMipFunction& function);
  size_t size() const { return profile_.functions.size(); }
  MipProfile Build() &&;

 private:
  MipProfile profile_;
  absl::flat_hash_map<uint64_t, uint32_t> name_by_signature_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_MIP_PROFILE_H_
