// Appends numbers to a byte string, little-endian: what the writers of MIP files share.
#ifndef CLRSAMPLER_FORMATS_MIP_LITTLE_ENDIAN_H_
#define CLRSAMPLER_FORMATS_MIP_LITTLE_ENDIAN_H_

#include <bit>
#include <string>
#include <type_traits>

namespace clrsampler {

template <typename T>
void AppendLittle(std::string& out, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T> && std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_LITTLE_ENDIAN_H_
