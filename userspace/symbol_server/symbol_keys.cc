#include "symbol_server/symbol_keys.h"

#include <algorithm>
#include <utility>

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
constexpr size_t kMaxChecksumBytes = 64;  // SHA512 has as many
constexpr size_t kMaxAlgorithmBytes = 32;

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

// "" for what can be no checksum: the text of its algorithm is the assembly's, and gets into a request.
std::string ChecksumText(const PdbChecksum& checksum) {
  const bool is_word = !checksum.algorithm.empty() &&
                       std::all_of(checksum.algorithm.begin(), checksum.algorithm.end(),
                                   [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); });
  if (!is_word || checksum.algorithm.size() > kMaxAlgorithmBytes) return "";
  if (checksum.hash.empty() || checksum.hash.size() > kMaxChecksumBytes) return "";
  return absl::StrCat(checksum.algorithm, ":", Hex(checksum.hash));
}

// How the names of a kind's files in the cache begin and end.
struct CacheNameForm {
  absl::string_view begin, end;
};

CacheNameForm FormOf(SymbolFileKind kind) {
  switch (kind) {
    case SymbolFileKind::kElfDebug:
      return {"elf-", ".debug"};
    case SymbolFileKind::kR2rMap:
      return {"r2rmap-v", ".r2rmap"};
    case SymbolFileKind::kPortablePdb:
      break;
  }
  return {"pdb-", ".pdb"};
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

std::optional<SymbolFileKey> PortablePdbKey(const PdbReference& reference, std::span<const PdbChecksum> checksums) {
  std::string name = SafeFileName(reference.path);
  if (name.empty() || reference.id == PdbId{}) return std::nullopt;
  SymbolFileKey key{SymbolFileKind::kPortablePdb, PdbServerKey(reference.id), PdbStamp(reference.id), std::move(name)};
  for (const PdbChecksum& checksum : checksums) {
    if (key.checksum.empty()) key.checksum = ChecksumText(checksum);
  }
  return key;
}

std::string CacheFileName(const SymbolFileKey& key) {
  const CacheNameForm form = FormOf(key.kind);
  switch (key.kind) {
    case SymbolFileKind::kElfDebug:
      return absl::StrCat(form.begin, key.id, form.end);
    case SymbolFileKind::kR2rMap:
      return absl::StrCat(form.begin, key.version, "-", key.id, form.end);
    case SymbolFileKind::kPortablePdb:
      break;
  }
  return absl::StrCat(form.begin, key.id, "-", absl::Hex(key.version, absl::kZeroPad8), form.end);
}

bool IsCacheFileName(absl::string_view name) {
  for (const SymbolFileKind kind : kSymbolFileKinds) {
    const CacheNameForm form = FormOf(kind);
    if (absl::StartsWith(name, form.begin) && absl::EndsWith(name, form.end)) return true;
  }
  return false;
}

std::string RequestText(const SymbolFileKey& key) {
  return absl::StrCat(CacheFileName(key), "\n", key.file_name, "\n", key.checksum);
}

std::vector<std::string> SsqpPaths(const SymbolFileKey& key) {
  const std::string name = PercentEncoded(key.file_name);
  if (key.kind == SymbolFileKind::kR2rMap)
    return {absl::StrCat(name, "/r2rmap-v", key.version, "-", key.id, "/", name)};
  if (key.kind == SymbolFileKind::kPortablePdb) return {absl::StrCat(name, "/", key.id, "/", name)};
  if (key.id.size() > 2 * kSsqpBuildIdBytes) return {};
  const std::string id = key.id + std::string(2 * kSsqpBuildIdBytes - key.id.size(), '0');
  std::vector<std::string> paths{absl::StrCat("_.debug/elf-buildid-sym-", id, "/_.debug")};
  if (!name.empty()) paths.push_back(absl::StrCat(name, "/elf-buildid-", id, "/", name));
  return paths;
}

std::string SsqpHeader(const SymbolFileKey& key) {
  return key.checksum.empty() ? "" : absl::StrCat("SymbolChecksum: ", key.checksum);
}

std::vector<std::string> DebuginfodPaths(const SymbolFileKey& key) {
  if (key.kind != SymbolFileKind::kElfDebug) return {};
  return {absl::StrCat("buildid/", key.id, "/debuginfo")};
}

absl::StatusOr<SymbolServerUrl> ParseSymbolServerUrl(absl::string_view text) {
  if (text == "microsoft") return SymbolServerUrl{"https://msdl.microsoft.com/download/symbols", false, true};
  if (text == "nuget")
    return SymbolServerUrl{absl::StrCat("https://symbols.", text, ".org/download/symbols"), false, true};
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
