#include "formats/mip/mip_profile.h"

#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace clrsampler {

std::optional<uint32_t> MipNames::Append(absl::string_view name) {
  if (text_.size() + name.size() > std::numeric_limits<uint32_t>::max() || ends_.size() >= kNoMipName) {
    return std::nullopt;
  }
  text_.append(name.data(), name.size());
  ends_.push_back(static_cast<uint32_t>(text_.size()));
  return static_cast<uint32_t>(ends_.size() - 1);
}

void MipNames::Reserve(size_t names, size_t bytes) {
  ends_.reserve(names);
  text_.reserve(bytes);
}

std::string MipProfile::QuotedNameOf(const MipFunction& function) const {
  absl::string_view name = NameOf(function);
  for (size_t i = 0; !names_bound && name.empty() && i < names.size(); ++i) {
    if (MipFunctionSignature(names[i]) == function.signature) name = names[i];
  }
  return absl::StrCat("\"", absl::Utf8SafeCEscape(name.substr(0, 200)), "\"");
}

MipProfileBuilder::MipProfileBuilder(uint32_t kinds, uint32_t module_hash) {
  profile_.kinds = kinds;
  profile_.module_hash = module_hash;
}

absl::Status MipProfileBuilder::Add(const NewMipFunction& added) {
  if (added.name.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError("a function's name holds a NUL, which ends names in a .mip file");
  }
  const size_t first_block = profile_.block_offsets.size();
  if (first_block + added.block_offsets.size() > std::numeric_limits<uint32_t>::max()) {
    return absl::ResourceExhaustedError("more than 2^32 blocks in one profile");
  }
  MipFunction function{
      .signature = added.name.empty() && added.signature ? *added.signature : MipFunctionSignature(added.name),
      .raw_offset = added.raw_offset,
      .start_offset = added.start_offset,
      .call_count = added.call_count,
      .timestamp_sum = added.timestamp_sum,
      .size = added.size,
      .cfg_signature = added.cfg_signature,
      .merge_count = added.merge_count,
      .first_block = static_cast<uint32_t>(first_block),
      .block_count = static_cast<uint32_t>(added.block_offsets.size()),
  };
  if (const auto known = name_by_signature_.find(function.signature); known != name_by_signature_.end()) {
    function.name = known->second;
  } else if (!added.name.empty()) {
    const std::optional<uint32_t> index = profile_.names.Append(added.name);
    if (!index) return absl::ResourceExhaustedError("more than 4 GiB of names in one profile");
    function.name = *index;
    name_by_signature_.emplace(function.signature, *index);
  }
  profile_.block_offsets.insert(profile_.block_offsets.end(), added.block_offsets.begin(), added.block_offsets.end());
  profile_.block_covered.insert(profile_.block_covered.end(), added.block_covered.begin(), added.block_covered.end());
  profile_.block_covered.resize(profile_.block_offsets.size());
  profile_.functions.push_back(function);
  return absl::OkStatus();
}

MipProfile MipProfileBuilder::Build() && { return std::move(profile_); }

}  // namespace clrsampler
