#include "os/digest.h"

#include <sha1.h>
#include <sha256.h>

namespace clrsampler {

std::array<uint8_t, 20> Sha1(absl::string_view bytes) {
  SHA1_CTX context;
  SHA1Init(&context);
  SHA1Update(&context, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  std::array<uint8_t, 20> digest;
  SHA1Final(digest.data(), &context);
  return digest;
}

std::array<uint8_t, 32> Sha256(absl::string_view bytes) {
  SHA2_CTX context;
  SHA256Init(&context);
  SHA256Update(&context, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  std::array<uint8_t, 32> digest;
  SHA256Final(digest.data(), &context);
  return digest;
}

}  // namespace clrsampler
