#include "formats/unwind/unwind_bytes.h"

#include <algorithm>

#include "formats/byte_reader.h"
#include "formats/unwind/arm64_unwind.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kInfoHeaderBytes = 4;
constexpr uint8_t kChained = 4;

}  // namespace

std::span<const std::byte> ReadUnwindInfoBytes(ReadBytes read, uint64_t address, UnwindInfoBytes& bytes) {
  // The bytes that tell the size are read first.
  if (!read(address, std::span(bytes).first(kInfoHeaderBytes))) return {};
  const size_t slots = (static_cast<size_t>(bytes[2]) + 1) & ~size_t{1};
  const bool chained = (static_cast<uint8_t>(bytes[0]) >> 3 & kChained) != 0;
  const auto all = std::span(bytes).first(kInfoHeaderBytes + 2 * slots + (chained ? kRuntimeFunctionBytes : 0));
  // The size was read a moment before. The parser notices the size of other data.
  if (all.size() > kInfoHeaderBytes && !read(address + kInfoHeaderBytes, all.subspan(kInfoHeaderBytes))) return {};
  return all;
}

absl::StatusOr<std::string> UnwindBytes(UnwindInfo::Reader read, uint32_t rva) {
  std::string bytes;
  const absl::StatusOr<UnwindInfo> info = UnwindInfo::ParseWithChain(
      [&](uint32_t at) {
        const std::span<const std::byte> part = read(at);
        if (const absl::StatusOr<UnwindInfo> parsed = UnwindInfo::Parse(part); parsed.ok()) {
          const size_t size = parsed->bytes + (parsed->chained ? kRuntimeFunctionBytes : 0);
          bytes.append(reinterpret_cast<const char*>(part.data()), std::min(size, part.size()));
        }
        return part;
      },
      rva);
  RETURN_IF_ERROR(info.status());
  if (bytes.size() > kMaxUnwindPartBytes) return absl::DataLossError("unwind info: a chain of too many bytes");
  return bytes;
}

absl::StatusOr<std::string> Arm64UnwindBytes(ReadBytes read, uint64_t address) {
  const auto unreadable = [] { return absl::DataLossError("arm64 unwind info: it can't be read"); };
  std::string bytes(kInfoHeaderBytes, '\0');
  if (!read(address, std::as_writable_bytes(std::span(bytes)))) return unreadable();
  absl::StatusOr<size_t> size = Arm64UnwindInfo::RecordBytes(AsBytes(bytes));
  if (!size.ok()) {  // the first word may say that a second one follows
    bytes.resize(Arm64UnwindInfo::kHeaderBytes);
    if (!read(address, std::as_writable_bytes(std::span(bytes)))) return unreadable();
    size = Arm64UnwindInfo::RecordBytes(AsBytes(bytes));
    RETURN_IF_ERROR(size.status());
  }
  if (*size > kMaxUnwindPartBytes) return absl::DataLossError("arm64 unwind info: a record of too many bytes");
  bytes.resize(*size);
  if (!read(address, std::as_writable_bytes(std::span(bytes)))) return unreadable();
  // The size was read a moment before. The size of other data is noticed here.
  ASSIGN_OR_RETURN(const Arm64UnwindInfo info, Arm64UnwindInfo::Parse(AsBytes(bytes)));
  if (info.bytes != bytes.size()) return absl::DataLossError("arm64 unwind info: it changed while it was read");
  return bytes;
}

}  // namespace clrsampler
