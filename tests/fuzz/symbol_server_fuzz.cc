// Any bytes as a message between the two processes, as an address, and as an image's path. Accepted input comes back
// the same. No key leaves its place in a URL or in the cache.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/str_split.h"
#include "formats/byte_reader.h"
#include "symbol_server/fetch_worker.h"
#include "symbol_server/symbol_check.h"
#include "symbol_server/symbol_keys.h"

namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void CheckKey(const clrsampler::SymbolFileKey& key) {
  for (const std::string& path : clrsampler::SsqpPaths(key)) {
    int slashes = 0;
    for (const char c : path) {
      Require(static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f && c != '?' && c != '#');
      slashes += c == '/';
    }
    Require(slashes == 2);
    // "..2" is a name like any other.
    for (const absl::string_view part : absl::StrSplit(path, '/'))
      Require(part != "." && part != ".." && !part.empty());
  }
  Require(clrsampler::CacheFileName(key).find('/') == std::string::npos);
  const auto order = clrsampler::ParseOrder(clrsampler::OrderText(7, key));
  Require(order.has_value() && order->first == 7 && order->second == key);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto order = clrsampler::ParseOrder(text)) clrsampler::CacheFileName(order->second);
  if (const auto reply = clrsampler::ParseReply(text)) {
    const auto again = clrsampler::ParseReply(clrsampler::ReplyText(*reply));
    Require(again.has_value() && again->number == reply->number && again->detail == reply->detail);
  }
  if (const auto server = clrsampler::ParseSymbolServerUrl(text); server.ok()) {
    Require(server->base.rfind("https://", 0) == 0 || server->base.rfind("http://", 0) == 0);
    Require(server->base.find_first_of(" \n@?#") == std::string::npos ||
            server->base.find('/', 8) != std::string::npos);
  }
  constexpr std::array<uint8_t, 16> kSignature = {1, 2, 3};
  if (const auto key = clrsampler::R2rMapKey(kSignature, 1, text)) CheckKey(*key);
  clrsampler::PdbReference reference;
  reference.id.bytes = {1, 2, 3};
  reference.path = std::string(text);
  const clrsampler::PdbChecksum checksum{text, clrsampler::AsBytes(text)};
  if (const auto key = clrsampler::PortablePdbKey(reference, std::span(&checksum, 1))) {
    CheckKey(*key);
    Require(clrsampler::SsqpHeader(*key).find_first_of("\r\n") == std::string::npos);
    (void)clrsampler::CheckSymbolFile(*key, clrsampler::AsBytes(text));
  }
  constexpr std::array<std::byte, 20> kBuildId = {std::byte{1}};
  if (const auto key = clrsampler::ElfDebugKey(kBuildId, text)) {
    CheckKey(*key);
    (void)clrsampler::CheckSymbolFile(*key, clrsampler::AsBytes(text));
  }
  return 0;
}
