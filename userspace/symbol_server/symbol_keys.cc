#include "symbol_server/symbol_keys.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMinBuildIdBytes = 8;   // as SSQP demands; the shortest that a linker writes (lld's --build-id=fast)
constexpr size_t kMaxBuildIdBytes = 64;  // what formats/elf keeps
constexpr size_t kSsqpBuildIdBytes = 20;
constexpr size_t kMaxFileNameBytes = 200;
constexpr size_t kMaxUrlBytes = 1024;

// "" for what names no file or could be misread by anyone on the way.
std::string SafeFileName(absl::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  if (slash != absl::string_view::npos) path.remove_prefix(slash + 1);
  if (path.empty() || path == "." || path == ".." || path.size() > kMaxFileNameBytes) return "";
  const bool has_control =
      std::any_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  return has_control ? "" : absl::AsciiStrToLower(path);
}

// RFC 3986, 2.3: everything else is written as its bytes.
std::string PercentEncoded(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~", c)) {
      out += c;
    } else {
      absl::StrAppendFormat(&out, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string Hex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

absl::Status BadUrl(absl::string_view text, absl::string_view why) {
  return WithHint(absl::InvalidArgumentError(absl::StrCat("--symbol-server ", text, ": ", why)),
                  "write it as https://debuginfod.debian.net or ssqp+https://msdl.microsoft.com/download/symbols");
}

}  // namespace

std::optional<SymbolFileKey> ElfDebugKey(std::span<const std::byte> build_id, absl::string_view path) {
  if (build_id.size() < kMinBuildIdBytes || build_id.size() > kMaxBuildIdBytes) return std::nullopt;
  // Some linkers write zeroes that a later step should fill in: every such image would have the same symbols.
  if (std::all_of(build_id.begin(), build_id.end(), [](std::byte b) { return b == std::byte{0}; })) return std::nullopt;
  return SymbolFileKey{SymbolFileKind::kElfDebug, Hex(build_id), 0, SafeFileName(path)};
}

std::optional<SymbolFileKey> R2rMapKey(std::span<const uint8_t, 16> signature, uint32_t version,
                                       absl::string_view path) {
  std::string name = SafeFileName(path);
  if (name.empty()) return std::nullopt;
  return SymbolFileKey{SymbolFileKind::kR2rMap, Hex(std::as_bytes(signature)), version, std::move(name)};
}

std::string CacheFileName(const SymbolFileKey& key) {
  if (key.kind == SymbolFileKind::kElfDebug) return absl::StrCat("elf-", key.id, ".debug");
  return absl::StrCat("r2rmap-v", key.version, "-", key.id, ".r2rmap");
}

std::vector<std::string> SsqpPaths(const SymbolFileKey& key) {
  const std::string name = PercentEncoded(key.file_name);
  if (key.kind == SymbolFileKind::kR2rMap)
    return {absl::StrCat(name, "/r2rmap-v", key.version, "-", key.id, "/", name)};
  if (key.id.size() > 2 * kSsqpBuildIdBytes) return {};
  const std::string id = key.id + std::string(2 * kSsqpBuildIdBytes - key.id.size(), '0');
  std::vector<std::string> paths{absl::StrCat("_.debug/elf-buildid-sym-", id, "/_.debug")};
  if (!name.empty()) paths.push_back(absl::StrCat(name, "/elf-buildid-", id, "/", name));
  return paths;
}

std::vector<std::string> DebuginfodPaths(const SymbolFileKey& key) {
  if (key.kind != SymbolFileKind::kElfDebug) return {};
  return {absl::StrCat("buildid/", key.id, "/debuginfo")};
}

absl::StatusOr<SymbolServerUrl> ParseSymbolServerUrl(absl::string_view text) {
  if (text == "microsoft") return SymbolServerUrl{"https://msdl.microsoft.com/download/symbols", false, true};
  if (text.empty() || text.size() > kMaxUrlBytes) return BadUrl(text, "not an address");
  for (const char c : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) return BadUrl(text, "a character that no address has");
  }
  SymbolServerUrl server;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "debuginfod+")) {
    server.ssqp = false;
  } else if (absl::ConsumePrefix(&rest, "ssqp+")) {
    server.debuginfod = false;
  }
  absl::string_view scheme = "https://";
  if (absl::StartsWithIgnoreCase(rest, "https://")) {
    rest.remove_prefix(8);
  } else if (absl::StartsWithIgnoreCase(rest, "http://")) {
    rest.remove_prefix(7);
    scheme = "http://";
  } else if (absl::StrContains(rest, "://")) {
    return BadUrl(text, "only https and http are spoken");
  }
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  const absl::string_view authority = rest.substr(0, rest.find('/'));
  if (absl::StrContains(authority, '@')) return BadUrl(text, "a user name or password can't be given here");
  if (rest.find_first_of("?#\\") != absl::string_view::npos)
    return BadUrl(text, "an address without ? and # is needed");
  if (authority.empty() || authority.front() == ':') return BadUrl(text, "no host");
  server.base = absl::StrCat(scheme, rest);
  return server;
}

}  // namespace clrsampler
