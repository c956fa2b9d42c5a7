// Numbers at the front of a text, for the parsers of this folder.
#ifndef CLRSAMPLER_FORMATS_PROC_FIELDS_H_
#define CLRSAMPLER_FORMATS_PROC_FIELDS_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/string_view.h"

namespace clrsampler {

// Takes an unsigned number off the front; nullopt and nothing taken when there is none or it does not fit.
template <unsigned kBase>
std::optional<uint64_t> TakeNumber(absl::string_view& text) {
  uint64_t value = 0;
  size_t used = 0;
  for (; used < text.size(); ++used) {
    const char c = text[used];
    unsigned digit = 99;
    if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
    if (kBase == 16 && c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a') + 10;
    if (digit >= kBase) break;
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / kBase) return std::nullopt;
    value = value * kBase + digit;
  }
  if (used == 0) return std::nullopt;
  text.remove_prefix(used);
  return value;
}

inline std::optional<uint64_t> TakeDecimal(absl::string_view& text) { return TakeNumber<10>(text); }
inline std::optional<uint64_t> TakeHex(absl::string_view& text) { return TakeNumber<16>(text); }

inline std::optional<uint32_t> TakeDecimal32(absl::string_view& text) {
  const std::optional<uint64_t> value = TakeDecimal(text);
  if (!value || *value > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

inline bool TakeChar(absl::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

inline void TakeBlanks(absl::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

// Takes a line off the front, without its newline. Precondition: text is not empty.
inline absl::string_view TakeLine(absl::string_view& text) {
  const size_t end = text.find('\n');
  const absl::string_view line = text.substr(0, end);
  text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_FIELDS_H_
