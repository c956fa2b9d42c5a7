// Names are any bytes; most formats want UTF-8 (RFC 3629).
#ifndef CLRSAMPLER_FORMATS_NAMES_UTF8_H_
#define CLRSAMPLER_FORMATS_NAMES_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  char32_t value;
  size_t bytes;  // 0: not valid UTF-8
};

// The first one of `text`, which is not empty. Shortest form only, no surrogates, at most U+10FFFF.
CodePoint DecodeUtf8(absl::string_view text);

// The text with U+FFFD for each byte that is no part of a code point.
std::string WellFormedUtf8(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_UTF8_H_
