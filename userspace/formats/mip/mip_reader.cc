#include "formats/mip/mip_reader.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kBlockBytes = 5;

// Calls `name` with each text of a table; the last NUL may be missing.
template <typename Name>
void ForEachName(std::span<const std::byte> table, Name&& name) {
  absl::string_view rest = AsText(table);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    name(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

uint64_t CountNames(std::span<const std::byte> table) {
  uint64_t names = 0;
  ForEachName(table, [&](absl::string_view) { ++names; });
  return names;
}

}  // namespace

// How far one way to read the file led: to its end, or to bytes that do not fit.
struct MipView::Walked {
  bool ok = false;
  uint64_t functions = 0;
  uint64_t blocks = 0;
  std::span<const std::byte> names;
  uint64_t names_at = 0, names_number = 0;
  bool names_as_usual = false;  // the number is of bytes or of names, as the layout has it
  uint64_t error_offset = 0;
  std::string error;

  Walked Fail(uint64_t offset, std::string what) && {
    error_offset = offset;
    error = std::move(what);
    ok = false;
    return std::move(*this);
  }
  Walked FailAtNames() && {
    return std::move(*this).Fail(
        names_at, absl::StrCat("FunctionNamesLength ", names_number, " is neither the number of the ", names.size(),
                               " bytes that follow nor that of the names of functions in them"));
  }
};

uint32_t MipView::Record::BlockOffset(uint32_t index) const { return *LoadAt<uint32_t>(blocks, index * kBlockBytes); }

MipView::Walked MipView::Walk(std::span<const std::byte> bytes, uint64_t data_offset, MipLayout layout) {
  Walked walked;
  const bool wide = TraitsOf(layout).wide_addresses, counted = TraitsOf(layout).names_counted;
  const uint64_t fixed = TraitsOf(layout).fixed_record_bytes;
  const uint64_t block_count_at = wide ? 32 : 24;
  const std::optional<uint64_t> count = LoadAt<uint64_t>(bytes, data_offset);
  if (!count) return std::move(walked).Fail(data_offset, "the file ends before ProfileCount");
  uint64_t offset = data_offset + 8;
  if (*count > (bytes.size() - offset) / fixed) {
    return std::move(walked).Fail(data_offset, absl::StrCat("ProfileCount is ", *count, ", and the file has room for ",
                                                            (bytes.size() - offset) / fixed));
  }
  for (uint64_t i = 0; i < *count; ++i) {
    if (bytes.size() - offset < fixed) {
      return std::move(walked).Fail(offset, absl::StrCat("the file ends in function ", i, " of ", *count));
    }
    const uint32_t blocks = *LoadAt<uint32_t>(bytes, offset + block_count_at);
    if (blocks > (bytes.size() - offset - fixed) / kBlockBytes) {
      return std::move(walked).Fail(
          offset + block_count_at,
          absl::StrCat("NonEntryBlockCount of function ", i, " is ", blocks, ", and the file has room for ",
                       (bytes.size() - offset - fixed) / kBlockBytes));
    }
    const uint64_t edges_at = offset + fixed - 4 + uint64_t{blocks} * kBlockBytes;
    for (uint64_t at = offset + fixed - 4; at < edges_at; at += kBlockBytes) {
      if (static_cast<uint8_t>(bytes[at + 4]) > 1) {
        return std::move(walked).Fail(at + 4, absl::StrCat("IsCovered of a block of function ", i, " is ",
                                                           static_cast<int>(bytes[at + 4]), ", not 0 or 1"));
      }
    }
    if (*LoadAt<uint32_t>(bytes, edges_at) != 0) {
      return std::move(walked).Fail(edges_at, absl::StrCat("function ", i, " has call edges, which are reserved"));
    }
    walked.blocks += blocks;
    walked.functions = i + 1;
    offset = edges_at + 4;
  }
  const std::optional<uint64_t> names = LoadAt<uint64_t>(bytes, offset);
  if (!names) return std::move(walked).Fail(offset, "the file ends before FunctionNamesLength");
  walked.names = bytes.subspan(offset + 8);
  // The text says that this is a number of bytes, and every implementation wrote the number of names.
  const bool by_bytes = *names == walked.names.size();
  const bool by_count = (counted || !by_bytes) && (walked.names.empty() || walked.names.back() == std::byte{0}) &&
                        *names == CountNames(walked.names);
  walked.names_as_usual = counted ? by_count : by_bytes;
  walked.names_number = *names;
  walked.names_at = offset;
  if (!by_bytes && !by_count) return std::move(walked).FailAtNames();
  if (walked.blocks > std::numeric_limits<uint32_t>::max() ||
      walked.names.size() > std::numeric_limits<uint32_t>::max()) {
    return std::move(walked).Fail(offset, "more than 2^32 blocks or 4 GiB of names");
  }
  walked.ok = true;
  // A file that was cut in its names may by chance end where the other number would have it end.
  if (!walked.names_as_usual &&
      CountNames(walked.names) != CountNamed(bytes, data_offset + 8, *count, wide, walked.names)) {
    return std::move(walked).FailAtNames();
  }
  return walked;
}

MipView::Record MipView::Decode(std::span<const std::byte> bytes, uint64_t& offset, bool wide) {
  Record record;
  MipFunction& function = record.function;
  const auto u32 = [&] {
    offset += 4;
    return *LoadAt<uint32_t>(bytes, offset - 4);
  };
  const auto u64 = [&] {
    offset += 8;
    return *LoadAt<uint64_t>(bytes, offset - 8);
  };
  function.signature = u64();
  function.raw_offset = wide ? u64() : u32();
  function.start_offset = wide ? static_cast<int64_t>(u64()) : static_cast<int32_t>(u32());
  function.size = u32();
  function.cfg_signature = u32();
  function.block_count = u32();
  function.merge_count = u32();
  function.call_count = u64();
  function.timestamp_sum = u64();
  const size_t block_bytes = size_t{function.block_count} * kBlockBytes;
  record.blocks = bytes.subspan(offset, block_bytes);
  offset += block_bytes + 4;  // CallEdgeCount, which is 0
  return record;
}

MipView::Record MipView::Next(uint64_t& offset) const {
  return Decode(bytes_, offset, TraitsOf(layout_).wide_addresses);
}

// How many of the names are those of functions, by their signatures.
uint64_t MipView::CountNamed(std::span<const std::byte> bytes, uint64_t first, uint64_t count, bool wide,
                             std::span<const std::byte> names) {
  absl::flat_hash_set<uint64_t> signatures;
  for (uint64_t i = 0; i < count; ++i) signatures.insert(Decode(bytes, first, wide).function.signature);
  uint64_t named = 0;
  ForEachName(names, [&](absl::string_view name) { named += signatures.contains(MipFunctionSignature(name)); });
  return named;
}

absl::StatusOr<MipView> MipView::Parse(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const MipHeader header, ParseMipHeader(bytes, MipFileType::kProfile));
  MipView view;
  view.bytes_ = bytes;
  view.header_ = header;
  view.layout_ = header.layout;
  Walked walked = Walk(bytes, header.data_offset, header.layout);
  if (header.layout != MipLayout::kOld) {
    Walked wide = Walk(bytes, header.data_offset, MipLayout::kLlvm);
    // Where neither is right, the error is that of the reading that made sense for longer.
    bool take_wide = !walked.ok && (wide.ok || wide.functions > walked.functions);
    if (walked.ok && wide.ok && walked.functions > 0) {
      const uint64_t first = view.first_record();
      take_wide = CountNamed(bytes, first, wide.functions, true, wide.names) >
                  CountNamed(bytes, first, walked.functions, false, walked.names);
    }
    if (take_wide) {
      view.layout_ = MipLayout::kLlvm;
      walked = std::move(wide);
    }
  }
  if (!walked.ok) {
    return WithHint(absl::DataLossError(
                        absl::StrFormat("the profile is damaged at byte %d: %s", walked.error_offset, walked.error)),
                    kMipCutHint);
  }
  view.function_count_ = walked.functions;
  view.block_count_ = walked.blocks;
  view.name_bytes_ = walked.names;
  return view;
}

absl::StatusOr<MipProfile> ReadMip(std::span<const std::byte> bytes, MipNaming naming) {
  ASSIGN_OR_RETURN(const MipView view, MipView::Parse(bytes));
  MipProfile profile{.kinds = view.header().kinds,
                     .module_hash = view.header().module_hash,
                     .version = view.header().version,
                     .layout = view.layout(),
                     .names_bound = false};
  // All three are the sizes that the file has, and not those that it claims.
  profile.names.Reserve(CountNames(view.name_bytes()), view.name_bytes().size());
  profile.functions.reserve(view.function_count());
  profile.block_offsets.reserve(view.block_count());
  profile.block_covered.reserve(view.block_count());
  // Parse has seen to it that they fit.
  ForEachName(view.name_bytes(), [&](absl::string_view name) { profile.names.Append(name); });
  uint64_t offset = view.first_record();
  for (uint64_t i = 0; i < view.function_count(); ++i) {
    const MipView::Record record = view.Next(offset);
    MipFunction& function = profile.functions.emplace_back(record.function);
    function.first_block = static_cast<uint32_t>(profile.block_offsets.size());
    for (uint32_t block = 0; block < function.block_count; ++block) {
      profile.block_offsets.push_back(record.BlockOffset(block));
      profile.block_covered.push_back(record.BlockCovered(block) ? 1 : 0);
    }
  }
  if (naming == MipNaming::kNow) BindMipNames(profile);
  return profile;
}

void BindMipNames(MipProfile& profile) {
  absl::flat_hash_map<uint64_t, uint32_t> by_signature;
  by_signature.reserve(profile.names.size());
  for (uint32_t i = 0; i < profile.names.size(); ++i)
    by_signature.try_emplace(MipFunctionSignature(profile.names[i]), i);
  for (MipFunction& function : profile.functions) {
    const auto name = by_signature.find(function.signature);
    if (name != by_signature.end()) function.name = name->second;
  }
  profile.names_bound = true;
}

bool SameMipNames(const MipProfile& profile, const MipView& view) {
  size_t next = 0;
  bool same = true;
  ForEachName(view.name_bytes(), [&](absl::string_view name) {
    same = same && next < profile.names.size() && profile.names[next] == name;
    ++next;
  });
  return same && next == profile.names.size();
}

}  // namespace clrsampler
