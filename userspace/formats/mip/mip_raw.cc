#include "formats/mip/mip_raw.h"

#include "absl/strings/str_format.h"
#include "formats/byte_reader.h"
#include "formats/mip/little_endian.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr std::byte kRan{0x00}, kNotRun{0xFF};
constexpr uint32_t kNeverCalled = 0xFFFFFFFF;  // in both words: as the section starts

}  // namespace

absl::StatusOr<MipRaw> MipRaw::Parse(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const MipHeader header, ParseMipHeader(bytes, MipFileType::kRaw));
  MipRaw raw;
  raw.bytes_ = bytes;
  raw.header_ = header;
  return raw;
}

absl::StatusOr<MipRaw::Record> MipRaw::At(uint64_t offset, uint32_t block_count) const {
  const uint64_t length = MipRawRecordBytes(header_.kinds, block_count);
  const std::optional<std::span<const std::byte>> bytes = SliceAt(bytes_, offset, length);
  if (!bytes || offset < header_.data_offset) {
    return absl::DataLossError(absl::StrFormat("a record of %d bytes at byte %#x lies outside the counters, %#x to %#x",
                                               length, offset, header_.data_offset, bytes_.size()));
  }
  Record record;
  if ((header_.kinds & kMipFunctionCoverage) != 0) {
    record.counters.ran = bytes->front() == kRan;
    record.counters.call_count = record.counters.ran ? 1 : 0;
    record.odd_bytes += bytes->front() != kRan && bytes->front() != kNotRun;
  } else {
    const uint32_t calls = *LoadAt<uint32_t>(*bytes, 0), timestamp = *LoadAt<uint32_t>(*bytes, 4);
    if ((calls == kNeverCalled) != (timestamp == kNeverCalled)) {
      return absl::DataLossError(absl::StrFormat(
          "the record at byte %#x is damaged: call count %#x and time %#x, only one of which says that it never ran",
          offset, calls, timestamp));
    }
    if (calls != kNeverCalled && calls != 0) record.counters = {true, calls, timestamp};
  }
  if ((header_.kinds & kMipBlockCoverage) != 0) {
    record.blocks = bytes->subspan(MipRawFixedBytes(header_.kinds));
    for (const std::byte block : record.blocks) record.odd_bytes += block != kRan && block != kNotRun;
  }
  return record;
}

MipRawWriter::MipRawWriter(MipHeader header) : kinds_(header.kinds) {
  header.type = MipFileType::kRaw;
  header.raw_section_offset = 0;
  AppendMipHeader(header, bytes_);
}

uint64_t MipRawWriter::Add(const MipRawCounters& counters, std::span<const uint8_t> covered) {
  const bool coverage = (kinds_ & kMipFunctionCoverage) != 0;
  while (!coverage && bytes_.size() % 4 != 0) bytes_.push_back(static_cast<char>(kNotRun));
  const uint64_t offset = bytes_.size();
  if (coverage) {
    AppendLittle<uint8_t>(bytes_, static_cast<uint8_t>(counters.ran ? kRan : kNotRun));
  } else {
    AppendLittle<uint32_t>(bytes_, counters.ran ? counters.call_count : kNeverCalled);
    AppendLittle<uint32_t>(bytes_, counters.ran ? counters.timestamp : kNeverCalled);
  }
  if ((kinds_ & kMipBlockCoverage) != 0) {
    for (const uint8_t block : covered) {
      AppendLittle<uint8_t>(bytes_, static_cast<uint8_t>(block != 0 ? kRan : kNotRun));
    }
  }
  return offset;
}

}  // namespace clrsampler
