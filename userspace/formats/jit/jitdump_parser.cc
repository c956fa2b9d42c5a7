#include "formats/jit/jitdump_parser.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

static_assert(std::endian::native == std::endian::little, "the big_endian flag assumes a little-endian reader");

constexpr uint32_t kMagic = 0x4A695444;         // "JiTD"
constexpr uint32_t kMagicSwapped = 0x4454694A;  // the same, written by a machine of the other byte order
constexpr uint32_t kHeaderBytes = 40;
constexpr uint32_t kPrefixBytes = 16;
constexpr uint64_t kArchTimestampFlag = 1;

enum RecordId : uint32_t { kLoad = 0, kMove = 1, kDebugInfo = 2, kClose = 3, kUnwindingInfo = 4 };

constexpr uint32_t kLoadBytes = 56;  // prefix and fixed fields
constexpr uint32_t kMoveBytes = 64;
constexpr uint32_t kDebugInfoBytes = 32;
constexpr uint32_t kUnwindingBytes = 40;
constexpr uint32_t kDebugEntryBytes = 16;  // without its file name

uint32_t LeastBytes(uint32_t id) {
  switch (id) {
    case kLoad:
      return kLoadBytes + 1;  // an empty name still has its NUL
    case kMove:
      return kMoveBytes;
    case kDebugInfo:
      return kDebugInfoBytes;
    case kUnwindingInfo:
      return kUnwindingBytes;
    default:
      return kPrefixBytes;
  }
}

// Fixed fields inside a size that has been checked before.
struct Fields {
  const std::byte* data;
  bool swap;
  uint32_t U32(size_t at) const {
    uint32_t value;
    std::memcpy(&value, data + at, sizeof value);
    return swap ? __builtin_bswap32(value) : value;
  }
  uint64_t U64(size_t at) const {
    uint64_t value;
    std::memcpy(&value, data + at, sizeof value);
    return swap ? __builtin_bswap64(value) : value;
  }
};

}  // namespace

absl::StatusOr<FeedResult> JitdumpParser::Feed(std::span<const std::byte> bytes, JitdumpSink& sink) {
  if (!error_.ok()) return error_;
  absl::StatusOr<FeedResult> result = FeedRecords(bytes, sink);
  if (!result.ok()) {
    error_ = result.status();
  } else {
    offset_ += result->used + result->skip;
  }
  return result;
}

absl::StatusOr<FeedResult> JitdumpParser::FeedRecords(std::span<const std::byte> bytes, JitdumpSink& sink) {
  FeedResult result;
  if (!header_seen_) {
    uint32_t header_bytes = 0;
    ASSIGN_OR_RETURN(const Step step, ParseHeader(bytes, sink, header_bytes));
    if (step == Step::kNeedMore) return result;
    result.used = header_bytes;
  }
  while (bytes.size() - result.used >= kPrefixBytes) {
    const std::span<const std::byte> rest = bytes.subspan(result.used);
    const uint64_t at = offset_ + result.used;
    const Fields fields{rest.data(), swap_};
    const Prefix prefix{fields.U32(0), fields.U32(4), fields.U64(8)};
    RETURN_IF_ERROR(JudgeSize(prefix, at));
    const size_t here = std::min<size_t>(rest.size(), prefix.total_size);
    ASSIGN_OR_RETURN(const Step step, ParseRecord(prefix, rest.first(here), at, sink));
    if (step == Step::kNeedMore) break;
    result.used += here;
    if (here < prefix.total_size) {
      result.skip = prefix.total_size - here;
      break;
    }
  }
  return result;
}

absl::StatusOr<JitdumpParser::Step> JitdumpParser::ParseHeader(std::span<const std::byte> bytes, JitdumpSink& sink,
                                                               uint32_t& header_bytes) {
  if (bytes.size() < sizeof(uint32_t)) return Step::kNeedMore;
  const uint32_t magic = Fields{bytes.data(), false}.U32(0);
  if (magic != kMagic && magic != kMagicSwapped)
    return absl::DataLossError("not a jitdump: the file does not begin with JiTD");
  if (bytes.size() < kHeaderBytes) return Step::kNeedMore;
  swap_ = magic == kMagicSwapped;
  const Fields fields{bytes.data(), swap_};
  JitdumpHeader header;
  header.version = fields.U32(4);
  header.header_bytes = fields.U32(8);
  header.elf_machine = fields.U32(12);
  header.pid = fields.U32(20);
  header.timestamp = fields.U64(24);
  const uint64_t flags = fields.U64(32);
  header.arch_timestamps = (flags & kArchTimestampFlag) != 0;
  header.big_endian = swap_;
  if (header.version != 1) return absl::UnimplementedError(absl::StrCat("jitdump version ", header.version));
  if (header.header_bytes < kHeaderBytes || header.header_bytes > kMaxHeaderBytes) {
    return absl::DataLossError(absl::StrCat("jitdump header of ", header.header_bytes, " bytes"));
  }
  if ((flags & ~kArchTimestampFlag) != 0) {
    return absl::UnimplementedError(absl::StrCat("jitdump flags 0x", absl::Hex(flags), ": meaning unknown"));
  }
  if (bytes.size() < header.header_bytes) return Step::kNeedMore;
  header_seen_ = true;
  header_bytes = header.header_bytes;
  sink.OnHeader(header);
  return Step::kTaken;
}

// The only place where a size from the file is judged. Everything below trusts: the record's kind has its fixed fields
// inside total_size, and total_size is below the limit.
absl::Status JitdumpParser::JudgeSize(const Prefix& prefix, uint64_t at) const {
  if (prefix.total_size >= LeastBytes(prefix.id) && prefix.total_size <= kMaxRecordBytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("jitdump record of kind ", prefix.id, " with a size of ", prefix.total_size,
                                          " bytes at offset ", at));
}

// `record` is the part of the record that is there, at least its prefix. kTaken: the rest need not be seen.
absl::StatusOr<JitdumpParser::Step> JitdumpParser::ParseRecord(const Prefix& prefix, std::span<const std::byte> record,
                                                               uint64_t at, JitdumpSink& sink) {
  switch (prefix.id) {
    case kLoad:
      return ParseLoad(prefix, record, at, sink);
    case kMove:
      return ParseMove(prefix, record, sink);
    case kDebugInfo:
      return ParseDebugInfo(prefix, record, sink);
    case kUnwindingInfo:
      return ParseUnwinding(prefix, record, at, sink);
    case kClose:
      sink.OnClose(prefix.timestamp);
      return Step::kTaken;
    default:
      sink.OnUnknown(prefix.id, prefix.total_size);
      return Step::kTaken;
  }
}

absl::StatusOr<JitdumpParser::Step> JitdumpParser::ParseLoad(const Prefix& prefix, std::span<const std::byte> record,
                                                             uint64_t at, JitdumpSink& sink) const {
  if (record.size() <= kLoadBytes) return Step::kNeedMore;
  const std::span<const std::byte> after = record.subspan(kLoadBytes);
  const std::span<const std::byte> searched = after.first(std::min<size_t>(after.size(), kMaxNameBytes + 1));
  const void* nul = std::memchr(searched.data(), 0, searched.size());
  if (nul == nullptr) {
    if (searched.size() <= kMaxNameBytes && record.size() < prefix.total_size) return Step::kNeedMore;
    return absl::DataLossError(absl::StrCat("jitdump record at offset ", at, ": its name has no end"));
  }
  const Fields fields{record.data(), swap_};
  JitdumpLoad load;
  load.timestamp = prefix.timestamp;
  load.pid = fields.U32(16);
  load.tid = fields.U32(20);
  load.vma = fields.U64(24);
  load.code_address = fields.U64(32);
  load.code_size = fields.U64(40);
  load.code_index = fields.U64(48);
  const size_t name_bytes = static_cast<size_t>(static_cast<const std::byte*>(nul) - after.data());
  load.name = AsText(after.first(name_bytes));
  load.name_offset = at + kLoadBytes;
  load.body_offset = load.name_offset + name_bytes + 1;
  load.body_bytes = at + prefix.total_size - load.body_offset;
  sink.OnLoad(load);
  return Step::kTaken;
}

JitdumpParser::Step JitdumpParser::ParseMove(const Prefix& prefix, std::span<const std::byte> record,
                                             JitdumpSink& sink) const {
  if (record.size() < kMoveBytes) return Step::kNeedMore;
  const Fields fields{record.data(), swap_};
  JitdumpMove move;
  move.timestamp = prefix.timestamp;
  move.pid = fields.U32(16);
  move.tid = fields.U32(20);
  move.vma = fields.U64(24);
  move.old_code_address = fields.U64(32);
  move.new_code_address = fields.U64(40);
  move.code_size = fields.U64(48);
  move.code_index = fields.U64(56);
  sink.OnMove(move);
  return Step::kTaken;
}

JitdumpParser::Step JitdumpParser::ParseDebugInfo(const Prefix& prefix, std::span<const std::byte> record,
                                                  JitdumpSink& sink) {
  if (!sink.WantsDebugInfo()) return Step::kTaken;
  if (record.size() < prefix.total_size) return Step::kNeedMore;
  const Fields fields{record.data(), swap_};
  JitdumpDebugInfo info;
  info.timestamp = prefix.timestamp;
  info.code_address = fields.U64(16);
  info.announced_entries = fields.U64(24);
  debug_entries_.clear();
  uint64_t at = kDebugInfoBytes;
  // Bounded by the record: each turn takes 17 bytes or more of it.
  while (debug_entries_.size() < info.announced_entries && record.size() - at > kDebugEntryBytes) {
    const std::optional<absl::string_view> file = TextAt(record, at + kDebugEntryBytes);
    if (!file.has_value()) break;
    const Fields entry{record.data() + at, swap_};
    const bool as_before = *file == "\xff" && !debug_entries_.empty();
    debug_entries_.push_back(
        {entry.U64(0), entry.U32(8), entry.U32(12), as_before ? debug_entries_.back().file : *file});
    at += kDebugEntryBytes + file->size() + 1;
  }
  info.entries = debug_entries_;
  sink.OnDebugInfo(info);
  return Step::kTaken;
}

JitdumpParser::Step JitdumpParser::ParseUnwinding(const Prefix& prefix, std::span<const std::byte> record, uint64_t at,
                                                  JitdumpSink& sink) const {
  if (record.size() < kUnwindingBytes) return Step::kNeedMore;
  const Fields fields{record.data(), swap_};
  JitdumpUnwinding unwinding;
  unwinding.timestamp = prefix.timestamp;
  unwinding.unwind_data_size = fields.U64(16);
  unwinding.eh_frame_header_size = fields.U64(24);
  unwinding.mapped_size = fields.U64(32);
  unwinding.data_offset = at + kUnwindingBytes;
  unwinding.data_bytes = prefix.total_size - kUnwindingBytes;
  sink.OnUnwinding(unwinding);
  return Step::kTaken;
}

}  // namespace clrsampler
