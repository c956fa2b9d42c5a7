#include "formats/nettrace/block_cutter.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kMagic("Nettrace\x14\0\0\0!FastSerialization.1", 32);
constexpr size_t kMagicWordBytes = 8;  // of "Nettrace"
constexpr std::byte kNull{1};
constexpr std::byte kBegin{5};
constexpr std::byte kEnd{6};
constexpr size_t kTypeHeadBytes = 3 + 3 * 4;  // up to the name of the kind
constexpr uint32_t kMaxNameBytes = 32;
constexpr size_t kTraceBytes = 48;

struct KindRow {
  absl::string_view name;
  NettraceBlockKind kind;
  uint32_t version;  // that we read
};

constexpr std::array<KindRow, 5> kKinds{{{"Trace", NettraceBlockKind::kTrace, 4},
                                         {"MetadataBlock", NettraceBlockKind::kMetadata, 2},
                                         {"EventBlock", NettraceBlockKind::kEvents, 2},
                                         {"StackBlock", NettraceBlockKind::kStacks, 2},
                                         {"SPBlock", NettraceBlockKind::kSequencePoint, 2}}};

// Checks the part of the stream's beginning that is there. The bytes behind the first word are judged once it says a
// version.
absl::Status CheckMagic(std::span<const std::byte> bytes) {
  const absl::string_view there = AsText(bytes).substr(0, kMagic.size());
  if (!absl::StartsWith(kMagic, there.substr(0, kMagicWordBytes))) {
    return absl::DataLossError("the bytes are no stream of events");
  }
  const std::optional<uint32_t> length = LoadAt<uint32_t>(bytes, kMagicWordBytes);
  if (!length.has_value() || absl::StartsWith(kMagic, there)) return absl::OkStatus();
  // Since version 6 a 0 and the version follow the first word.
  if (*length == 0) return absl::UnimplementedError("a stream of events of version 6 or newer");
  return absl::DataLossError("the bytes are no stream of events");
}

// The row of a kind, once its type is all there.
absl::StatusOr<const KindRow*> ReadType(std::span<const std::byte> object) {
  const size_t tags = std::min<size_t>(object.size(), 3);
  constexpr std::array<std::byte, 3> kBeginning{kBegin, kBegin, kNull};
  if (!std::equal(object.begin(), object.begin() + static_cast<std::ptrdiff_t>(tags), kBeginning.begin())) {
    return absl::DataLossError("an object in the stream of events does not begin as one");
  }
  if (object.size() < kTypeHeadBytes) return nullptr;
  const uint32_t oldest_reader = *LoadAt<uint32_t>(object, 7);
  const uint32_t name_bytes = *LoadAt<uint32_t>(object, 11);
  if (name_bytes > kMaxNameBytes) return absl::DataLossError("an object in the stream of events has no kind");
  if (object.size() < kTypeHeadBytes + name_bytes + 1) return nullptr;
  const absl::string_view name = AsText(object.subspan(kTypeHeadBytes, name_bytes));
  const auto* row =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const KindRow& known) { return known.name == name; });
  if (row == kKinds.end() || object[kTypeHeadBytes + name_bytes] != kEnd) {
    return absl::DataLossError("an object of unknown kind in the stream of events");
  }
  if (oldest_reader > row->version) {
    return absl::UnimplementedError(absl::StrCat("a ", name, " of version ", oldest_reader));
  }
  return row;
}

}  // namespace

void BlockCutter::Add(std::span<const std::byte> bytes) {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(taken_));
  offset_ += taken_;
  taken_ = 0;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::span<const std::byte> BlockCutter::Rest() const { return std::span(bytes_).subspan(taken_); }

absl::StatusOr<std::optional<NettraceBlock>> BlockCutter::Next() {
  if (!error_.ok()) return error_;
  absl::StatusOr<std::optional<NettraceBlock>> next = NextObject();
  if (!next.ok()) error_ = next.status();
  return next;
}

absl::StatusOr<std::optional<NettraceBlock>> BlockCutter::NextObject() {
  if (!begun_) {
    if (absl::Status status = CheckMagic(Rest()); !status.ok()) return status;
    if (Rest().size() < kMagic.size()) return std::nullopt;
    taken_ += kMagic.size();
    begun_ = true;
  }
  const std::span<const std::byte> object = Rest();
  if (object.empty()) return std::nullopt;
  if (ended_) return absl::DataLossError("bytes behind the end of the stream of events");
  if (object[0] == kNull) {
    if (object.size() > 1) return absl::DataLossError("bytes behind the end of the stream of events");
    ++taken_;
    ended_ = true;
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(const KindRow* const row, ReadType(object));
  if (row == nullptr) return std::nullopt;
  size_t begin = kTypeHeadBytes + row->name.size() + 1;
  size_t size = kTraceBytes;
  if (row->kind != NettraceBlockKind::kTrace) {
    const std::optional<uint32_t> said = LoadAt<uint32_t>(object, begin);
    if (!said.has_value()) return std::nullopt;
    if (*said > kMaxNettraceBlockBytes) {
      return absl::DataLossError(absl::StrCat("a block of ", *said, " bytes in the stream of events"));
    }
    size = *said;
    begin += 4;
    begin += (4 - (offset_ + taken_ + begin) % 4) % 4;
  }
  if (object.size() < begin + size + 1) return std::nullopt;
  if (object[begin + size] != kEnd) return absl::DataLossError("a block in the stream of events ends elsewhere");
  taken_ += begin + size + 1;
  return NettraceBlock{row->kind, object.subspan(begin, size)};
}

}  // namespace clrsampler
