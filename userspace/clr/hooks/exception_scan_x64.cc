#include "clr/hooks/exception_scan_x64.h"

#include <cstdint>
#include <iterator>

#include "absl/strings/string_view.h"
#include "clrsampler/wire.h"
#include "formats/byte_reader.h"
#include "formats/x64/instruction.h"

namespace clrsampler::x64 {
namespace {

// A literal whose zeros count.
template <size_t kBytes>
constexpr absl::string_view Bytes(const char (&text)[kBytes]) {
  return {text, kBytes - 1};
}

// Keywords of exceptions and of monitoring. The event belongs to both.
constexpr uint64_t kKeywords = 0x2'0000'8000;
constexpr size_t kMaxInstructions = 512;  // the report has 240 in 8.0.34
constexpr uint32_t kCrawlFrameless = WIRE_CRAWL_FRAMELESS, kCrawlDisplay = WIRE_CRAWL_DISPLAY,
                   kThreadTracker = WIRE_THREAD_TRACKER;
constexpr uint8_t kTrackerHandle = WIRE_TRACKER_HANDLE;

// Bytes that follow each other; `number` stands behind `before`.
struct Piece {
  absl::string_view before;
  std::optional<uint64_t> number = std::nullopt;
  size_t number_bytes = 0;
  absl::string_view behind = {};
};

uint64_t NumberAt(std::span<const std::byte> code, size_t at, size_t bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number |= uint64_t{LoadAt<uint8_t>(code, at + i).value_or(0)} << 8 * i;
  return number;
}

// The offset behind it, if it stands at `at`.
std::optional<size_t> EndOf(std::span<const std::byte> code, size_t at, const Piece& piece) {
  const size_t behind = at + piece.before.size() + piece.number_bytes;
  const size_t end = behind + piece.behind.size();
  if (end > code.size()) return std::nullopt;
  const absl::string_view text = AsText(code);
  if (text.substr(at, piece.before.size()) != piece.before) return std::nullopt;
  if (text.substr(behind, piece.behind.size()) != piece.behind) return std::nullopt;
  if (piece.number && NumberAt(code, at + piece.before.size(), piece.number_bytes) != *piece.number) {
    return std::nullopt;
  }
  return end;
}

// The report's own, in this order, with others between them.
constexpr Piece kReport[] = {
    {Bytes("\x09\xf2\x0f\x84")},                                 // or edx, esi; je
    {Bytes("\x48\xb8"), kKeywords, 8},                           // mov rax, keywords
    {Bytes("\x48\xb9"), kKeywords, 8},                           // mov rcx, keywords
    {Bytes("\x49\x81\xc7"), kThreadTracker, 4,                   // add r15, tracker
     Bytes("\x4c\x89\xff\xe8")},                                 // mov rdi, r15; call
    {Bytes("\x80\xbb"), kCrawlFrameless, 4, Bytes("\x00\x74")},  // cmp byte [rbx + frameless], 0; je
    {Bytes("\x48\x8b\x83"), kCrawlDisplay, 4,                    // mov rax, [rbx + display]
     Bytes("\x48\x8b\x00\x48\x8b\x80\xf8\x00\x00\x00")},  // mov rax, [rax]; mov rax, [rax + 0xf8]: the context's rip
};
constexpr size_t kCallPiece = 3;

// push rbp; mov rbp, rsp; mov rax, [rdi]; test rax, rax; je; mov rax, [rax + handle]; test rax, rax; je;
// mov rax, [rax]; pop rbp; ret
constexpr Piece kReader[] = {
    {Bytes("\x55\x48\x89\xe5\x48\x8b\x07\x48\x85\xc0\x74"), std::nullopt, 1, Bytes("\x48\x8b\x40")},
    {"", kTrackerHandle, 1, Bytes("\x48\x85\xc0\x74")},
    {"", std::nullopt, 1, Bytes("\x48\x8b\x00\x5d\xc3")},
};

}  // namespace

std::optional<VirtualAddress> ObjectReaderOfReport(std::span<const std::byte> code, VirtualAddress start) {
  std::optional<VirtualAddress> reader;
  size_t next = 0, at = 0;
  for (size_t i = 0; i < kMaxInstructions && next < std::size(kReport) && at < code.size(); ++i) {
    if (const std::optional<size_t> end = EndOf(code, at, kReport[next])) {
      if (next == kCallPiece) {
        const std::optional<int32_t> distance = LoadAt<int32_t>(code, *end);
        if (!distance) return std::nullopt;
        reader = VirtualAddress{start.value + *end + sizeof(int32_t) + static_cast<uint64_t>(int64_t{*distance})};
      }
      ++next;
    }
    const std::optional<X64Instruction> instruction = DecodeX64(code.subspan(at));
    if (!instruction) return std::nullopt;
    at += instruction->bytes;
  }
  return next == std::size(kReport) ? reader : std::nullopt;
}

bool ReadsObjectOfTracker(std::span<const std::byte> code) {
  size_t at = 0;
  for (const Piece& piece : kReader) {
    const std::optional<size_t> end = EndOf(code, at, piece);
    if (!end) return false;
    at = *end;
  }
  return true;
}

}  // namespace clrsampler::x64
