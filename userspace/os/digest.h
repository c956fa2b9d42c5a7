// Digests of bytes that are there as a whole.
#ifndef CLRSAMPLER_OS_DIGEST_H_
#define CLRSAMPLER_OS_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {

std::array<uint8_t, 20> Sha1(absl::string_view bytes);  // for comparison with what others made; it protects nothing
std::array<uint8_t, 32> Sha256(absl::string_view bytes);

// Tells builds of a file apart, also where it has no build id: 32 hexadecimal digits, half of the SHA-256 of the first
// 4096 bytes, the last 4096 bytes and the length. OpenTelemetry calls it process.executable.build_id.htlhash (head,
// tail, length).
std::string HeadTailLengthHash(std::span<const std::byte> file);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_DIGEST_H_
