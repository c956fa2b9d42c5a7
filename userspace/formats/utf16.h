// Text of .NET runtimes: UTF-16, little-endian.
#ifndef CLRSAMPLER_FORMATS_UTF16_H_
#define CLRSAMPLER_FORMATS_UTF16_H_

#include <cstddef>
#include <span>
#include <string>

namespace clrsampler {

// The units as UTF-8; a lone surrogate becomes U+FFFD, and an odd last byte is left out. At most three bytes a unit.
std::string Utf8OfUtf16(std::span<const std::byte> units);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_UTF16_H_
