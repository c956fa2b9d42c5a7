// Digests of bytes that are there as a whole.
#ifndef CLRSAMPLER_OS_DIGEST_H_
#define CLRSAMPLER_OS_DIGEST_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace clrsampler {

std::array<uint8_t, 20> Sha1(absl::string_view bytes);  // for comparison with what others made; it protects nothing
std::array<uint8_t, 32> Sha256(absl::string_view bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_DIGEST_H_
