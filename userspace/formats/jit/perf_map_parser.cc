#include "formats/jit/perf_map_parser.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr uint8_t kNoDigit = 0xff;

constexpr std::array<uint8_t, 256> MakeDigits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (int i = 0; i < 10; ++i) digits['0' + i] = static_cast<uint8_t>(i);
  for (int i = 0; i < 6; ++i) digits['a' + i] = digits['A' + i] = static_cast<uint8_t>(10 + i);
  return digits;
}
constexpr std::array<uint8_t, 256> kDigits = MakeDigits();

// Whether a number of these digits is below 2^64; zeroes in front do not count.
bool FitsIn64Bits(const char* first, const char* end) {
  while (first < end && *first == '0') ++first;
  return end - first <= 16;
}

// Moves `at` over one number with or without "0x" and over the one space behind it. At most 16 digits that count.
bool TakeNumber(const char*& at, const char* end, uint64_t& value) {
  if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x') at += 2;
  const char* const first = at;
  uint64_t result = 0;
  for (; at < end; ++at) {
    const uint8_t digit = kDigits[static_cast<uint8_t>(*at)];
    if (digit == kNoDigit) break;
    result = result << 4 | digit;
  }
  if (at == first || at == end || *at != ' ') return false;
  if (at - first > 16 && !FitsIn64Bits(first, at)) return false;
  ++at;
  value = result;
  return true;
}

absl::string_view CutName(const char* begin, const char* end, bool may_hold_nul) {
  if (end > begin && end[-1] == '\r') --end;
  const size_t length = static_cast<size_t>(end - begin);
  if (!may_hold_nul) return absl::string_view(begin, length);
  const void* nul = std::memchr(begin, 0, length);
  return absl::string_view(begin, nul == nullptr ? length : static_cast<size_t>(static_cast<const char*>(nul) - begin));
}

constexpr uint64_t kHighBits = 0x8080808080808080;

uint64_t Word(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Two words, in one register where the machine has such (a GCC and clang extension).
using Words = uint8_t __attribute__((vector_size(16)));

Words WordsAt(const char* at) {
  Words words;
  std::memcpy(&words, at, sizeof words);
  return words;
}

// Whether a byte is 0 or 0x80 and above. Next to no file holds one, so that this one pass spares two of each line.
bool HoldsOddBytes(absl::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  Words high{}, least = ~Words{};
  for (; end - at >= 64; at += 64) {
    const Words a = WordsAt(at), b = WordsAt(at + 16), c = WordsAt(at + 32), d = WordsAt(at + 48);
    high |= (a | b) | (c | d);
    const Words ab = a < b ? a : b, cd = c < d ? c : d;
    const Words abcd = ab < cd ? ab : cd;
    least = least < abcd ? least : abcd;
  }
  bool odd = false;
  for (size_t i = 0; i < sizeof(Words); ++i) odd |= high[i] >= 0x80 || least[i] == 0;
  for (; at < end; ++at) odd |= *at == 0 || static_cast<uint8_t>(*at) >= 0x80;
  return odd;
}

const char* FirstNotAscii(const char* at, const char* end) {
  while (end - at >= 8 && (Word(at) & kHighBits) == 0) at += 8;
  while (at < end && static_cast<uint8_t>(*at) < 0x80) ++at;
  return at;
}

const char* SkipDigits(const char* at, const char* end) {
  while (at < end && kDigits[static_cast<uint8_t>(*at)] != kNoDigit) ++at;
  return at;
}

// Where the next line begins without an end of line before it; nullptr when it does not. No line's end is in
// [begin, end).
const char* FindGluedLine(const char* begin, const char* end) {
  const char* at = FirstNotAscii(begin, end);
  while (at < end) {
    const char* const x = static_cast<const char*>(std::memchr(at, 'x', static_cast<size_t>(end - at)));
    if (x == nullptr) return nullptr;
    at = x + 1;
    if (x == begin || x[-1] != '0') continue;
    const char* const start_end = SkipDigits(at, end);
    if (start_end - at < 6 || start_end - at > 16 || start_end == end || *start_end != ' ') continue;
    const char* const size_end = SkipDigits(start_end + 1, end);
    const ptrdiff_t size_digits = size_end - (start_end + 1);
    if (size_digits >= 1 && size_digits <= 8 && size_end < end && *size_end == ' ') return x - 1;
  }
  return nullptr;
}

}  // namespace

void PerfMapParser::TakeLine(absl::string_view text, const char* line, const char* line_end, bool odd,
                             PerfMapSink& sink) {
  if (static_cast<size_t>(line_end - line) > kMaxLineBytes) {
    ++counters_.long_lines;
    return;
  }
  PerfMapLine parsed;
  const char* field = line;
  if (!TakeNumber(field, line_end, parsed.start) || !TakeNumber(field, line_end, parsed.size)) {
    ++counters_.bad_lines;
    return;
  }
  parsed.name = CutName(field, line_end, odd);
  if (parsed.name.empty()) {
    ++counters_.bad_lines;
    return;
  }
  parsed.name_offset = offset_ + static_cast<uint64_t>(field - text.data());
  ++counters_.lines;
  sink.OnLine(parsed);
}

absl::StatusOr<size_t> PerfMapParser::Feed(std::span<const std::byte> bytes, PerfMapSink& sink) {
  if (!error_.ok()) return error_;
  const absl::string_view text = AsText(bytes);
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool odd = HoldsOddBytes(text);
  while (at < end) {
    const char* const newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    if (odd && gap_bytes_ == 0) {
      const char* const line_end = newline == nullptr ? end : newline;
      while (const char* const next = FindGluedLine(at, line_end)) {
        TakeLine(text, at, next, odd, sink);
        ++counters_.glued_lines;
        at = next;
        behind_glue_ = true;
      }
    }
    if (newline == nullptr) break;
    if (gap_bytes_ > 0) {
      gap_bytes_ = 0;  // the end of a line whose begin was thrown away
    } else {
      TakeLine(text, at, newline, odd, sink);
    }
    at = newline + 1;
    behind_glue_ = false;
  }
  size_t used = static_cast<size_t>(at - text.data());
  const size_t rest = text.size() - used;
  if (gap_bytes_ > 0 || rest > kMaxLineBytes) {
    if (gap_bytes_ == 0) ++counters_.long_lines;
    gap_bytes_ += rest;
    used += rest;
  }
  offset_ += used;
  if (gap_bytes_ > kMaxGapBytes) {
    error_ = absl::DataLossError(absl::StrCat("not a perf map: no end of line in ", kMaxGapBytes >> 20, " MiB"));
    return error_;
  }
  return used;
}

bool PerfMapParser::TakeUnended(std::span<const std::byte> bytes, PerfMapSink& sink) {
  const absl::string_view text = AsText(bytes);
  const char* const end = text.data() + text.size();
  if (!error_.ok() || gap_bytes_ > 0 || text.size() > kMaxLineBytes || absl::StrContains(text, '\n')) return false;
  uint64_t start = 0, size = 0;
  const char* name = text.data();
  if (!TakeNumber(name, end, start) || !TakeNumber(name, end, size)) return false;
  if (FirstNotAscii(name, end) == end || CutName(name, end, true).empty()) return false;
  TakeLine(text, text.data(), end, true, sink);
  ++counters_.glued_lines;
  offset_ += text.size();
  behind_glue_ = true;
  return true;
}

absl::string_view PerfMapParser::NameAt(absl::string_view bytes, bool& ended) {
  ended = false;
  if (bytes.empty()) return bytes;
  const char* const begin = bytes.data();
  const char* end = begin + bytes.size();
  const void* const newline = std::memchr(begin, '\n', bytes.size());
  if (newline != nullptr) end = static_cast<const char*>(newline);
  const char* const glued = FindGluedLine(begin, end);
  if (glued != nullptr) end = glued;
  ended = newline != nullptr || glued != nullptr;
  return CutName(begin, end, true);
}

}  // namespace clrsampler
