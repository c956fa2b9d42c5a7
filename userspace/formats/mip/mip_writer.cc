#include "formats/mip/mip_writer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/mip/little_endian.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;

absl::Status CheckAddresses(const MipProfile& profile) {
  for (const MipFunction& function : profile.functions) {
    if (function.raw_offset > std::numeric_limits<uint32_t>::max() ||
        function.start_offset != static_cast<int32_t>(function.start_offset)) {
      return WithHint(absl::OutOfRangeError(absl::StrFormat(
                          "an address of %s does not fit into the 32 bits of the documented layout: counters at %#x, "
                          "code at %d",
                          profile.QuotedNameOf(function), function.raw_offset, function.start_offset)),
                      "--mip-layout=llvm has 64 bits");
    }
  }
  return absl::OkStatus();
}

// The names that functions refer to, sorted. The names of a file that was read mostly are sorted already.
std::vector<uint32_t> SortedNames(const MipProfile& profile) {
  std::vector<bool> used(profile.names.size(), !profile.names_bound);
  for (const MipFunction& function : profile.functions) {
    if (function.name != kNoMipName) used[function.name] = true;
  }
  std::vector<uint32_t> names;
  names.reserve(profile.names.size());
  for (uint32_t i = 0; i < used.size(); ++i) {
    if (used[i]) names.push_back(i);
  }
  const auto less = [&](uint32_t a, uint32_t b) { return profile.names[a] < profile.names[b]; };
  if (!std::is_sorted(names.begin(), names.end(), less)) std::sort(names.begin(), names.end(), less);
  return names;
}

class PieceWriter {
 public:
  explicit PieceWriter(const MipSink& sink) : sink_(sink) { piece_.reserve(kPieceBytes + 4096); }
  // To be appended to, between two calls of Flush.
  std::string& piece() { return piece_; }
  absl::Status FlushIfFull() { return piece_.size() < kPieceBytes ? absl::OkStatus() : Flush(); }
  absl::Status Flush() {
    const absl::Status written = piece_.empty() ? absl::OkStatus() : sink_(piece_);
    piece_.clear();
    return written;
  }

 private:
  const MipSink& sink_;
  std::string piece_;
};

void AppendRecord(const MipProfile& profile, const MipFunction& function, bool wide, std::string& out) {
  AppendLittle<uint64_t>(out, function.signature);
  if (wide) {
    AppendLittle<uint64_t>(out, function.raw_offset);
    AppendLittle<int64_t>(out, function.start_offset);
  } else {
    AppendLittle<uint32_t>(out, static_cast<uint32_t>(function.raw_offset));
    AppendLittle<int32_t>(out, static_cast<int32_t>(function.start_offset));
  }
  AppendLittle<uint32_t>(out, function.size);
  AppendLittle<uint32_t>(out, function.cfg_signature);
  AppendLittle<uint32_t>(out, function.block_count);
  AppendLittle<uint32_t>(out, function.merge_count);
  AppendLittle<uint64_t>(out, function.call_count);
  AppendLittle<uint64_t>(out, function.timestamp_sum);
  const std::span<const uint32_t> offsets = profile.OffsetsOf(function);
  const std::span<const uint8_t> covered = profile.CoveredOf(function);
  for (size_t i = 0; i < offsets.size(); ++i) {
    AppendLittle<uint32_t>(out, offsets[i]);
    AppendLittle<uint8_t>(out, covered[i]);
  }
  AppendLittle<uint32_t>(out, 0);  // CallEdgeCount
}

}  // namespace

absl::Status WriteMip(const MipProfile& profile, MipLayout layout, const MipSink& sink) {
  const MipLayoutTraits& traits = TraitsOf(layout);
  if (!traits.wide_addresses) RETURN_IF_ERROR(CheckAddresses(profile));
  PieceWriter writer(sink);
  AppendMipHeader({.kinds = profile.kinds, .module_hash = profile.module_hash, .layout = layout}, writer.piece());
  AppendLittle<uint64_t>(writer.piece(), profile.functions.size());
  for (const MipFunction& function : profile.functions) {
    AppendRecord(profile, function, traits.wide_addresses, writer.piece());
    RETURN_IF_ERROR(writer.FlushIfFull());
  }
  const std::vector<uint32_t> names = SortedNames(profile);
  uint64_t bytes = 0;
  for (const uint32_t name : names) bytes += profile.names[name].size() + 1;
  AppendLittle<uint64_t>(writer.piece(), traits.names_counted ? names.size() : bytes);
  for (const uint32_t name : names) {
    const absl::string_view text = profile.names[name];
    writer.piece().append(text.data(), text.size());
    writer.piece().push_back('\0');
    RETURN_IF_ERROR(writer.FlushIfFull());
  }
  return writer.Flush();
}

absl::StatusOr<std::string> MipBytes(const MipProfile& profile, MipLayout layout) {
  std::string bytes;
  const absl::Status written = WriteMip(profile, layout, [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  });
  if (!written.ok()) return written;
  return bytes;
}

}  // namespace clrsampler
