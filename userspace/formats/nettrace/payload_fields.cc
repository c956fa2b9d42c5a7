#include "formats/nettrace/payload_fields.h"

#include <algorithm>
#include <utility>

#include "formats/utf16.h"

namespace clrsampler {

std::span<const std::byte> PayloadFields::Bytes(uint64_t count) {
  if (count > rest_.size()) ok_ = false;
  if (!ok_) return {};
  return std::exchange(rest_, rest_.subspan(count)).first(count);
}

std::string PayloadFields::Text(size_t max_units) {
  size_t units = 0;
  while (LoadAt<uint16_t>(rest_, 2 * units).value_or(0) != 0) ++units;
  const std::span<const std::byte> text = Bytes(2 * units);
  Number<uint16_t>();
  if (!ok_) return "";
  if (units <= max_units) return Utf8OfUtf16(text);
  constexpr char kEllipsis[] = "\xE2\x80\xA6";
  return Utf8OfUtf16(text.first(2 * max_units)) + kEllipsis;
}

}  // namespace clrsampler
