#include "os/digest.h"

#include <sha1.h>
#include <sha256.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

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

std::string HeadTailLengthHash(std::span<const std::byte> file) {
  constexpr size_t kPartBytes = 4096;
  const auto text = [](std::span<const std::byte> bytes) {
    return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const size_t part = std::min(kPartBytes, file.size());
  std::string length;  // big-endian
  for (int shift = 56; shift >= 0; shift -= 8) length.push_back(static_cast<char>(uint64_t{file.size()} >> shift));
  const auto digest = Sha256(absl::StrCat(text(file.first(part)), text(file.last(part)), length));
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size() / 2});
}

}  // namespace clrsampler
