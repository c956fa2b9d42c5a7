// The names of a symbol file: on symbol servers, in the cache, and the servers' addresses. Pure.
//
// Sources: dotnet/symstore docs/specs/SSQP_Key_Conventions.md (ELF-buildid, ELF-buildid-sym, Portable-Pdb), the key
// that dotnet/diagnostics' PerfMapFileKeyGenerator makes for an r2rmap, debuginfod(8) of elfutils
// (/buildid/ID/debuginfo), and dotnet/symstore's HttpSymbolStore (the header SymbolChecksum).
#ifndef CLRSAMPLER_SYMBOL_SERVER_SYMBOL_KEYS_H_
#define CLRSAMPLER_SYMBOL_SERVER_SYMBOL_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/pe/pdb_reference.h"

namespace clrsampler {

enum class SymbolFileKind : uint8_t {
  kElfDebug,  // an ELF file with .symtab: separate debug file, or the image before it was stripped
  kR2rMap,
  kPortablePdb,
};
inline constexpr SymbolFileKind kSymbolFileKinds[] = {SymbolFileKind::kElfDebug, SymbolFileKind::kR2rMap,
                                                      SymbolFileKind::kPortablePdb};

// The file that is meant: only texts that are safe as a component of a path and of a URL get into a key.
struct SymbolFileKey {
  SymbolFileKind kind = SymbolFileKind::kElfDebug;
  std::string id;             // lower-case hex: build-id, the r2rmap's signature, or PdbServerKey
  uint32_t version = 0;       // of the r2rmap format; of a portable PDB: the stamp of its id
  std::string file_name;      // lower-case, without a folder; of the image, of the r2rmap, or of the PDB
  std::string checksum = {};  // of a portable PDB, as the assembly has it: "SHA256:0123"; empty: it has none

  friend bool operator==(const SymbolFileKey&, const SymbolFileKey&) = default;
};

// nullopt: without a build-id, or with one that is too short to tell builds apart or longer than any linker writes.
// `path` is the image's and is hostile; a name that no server can have leaves the file without its keys by name.
std::optional<SymbolFileKey> ElfDebugKey(std::span<const std::byte> build_id, absl::string_view path);

// nullopt: `path`, taken from the image, names no file.
std::optional<SymbolFileKey> R2rMapKey(std::span<const uint8_t, 16> signature, uint32_t version,
                                       absl::string_view path);

// nullopt: an id of zeroes, or a path that names no file. A checksum that no server could read is left out.
std::optional<SymbolFileKey> PortablePdbKey(const PdbReference& reference, std::span<const PdbChecksum> checksums);

// The key's file in the cache: no two keys share it.
std::string CacheFileName(const SymbolFileKey& key);
// Whether a file of the cache has such a name.
bool IsCacheFileName(absl::string_view name);

// All that the answers of servers depend on: the key's file, its name and its checksum, a line each. Two programs may
// give one file two names, and the servers know it by one of them.
std::string RequestText(const SymbolFileKey& key);

// The paths that an SSQP server is asked for below its address, best first; empty: it can't have the file.
std::vector<std::string> SsqpPaths(const SymbolFileKey& key);
// The header of that request, "NAME: VALUE"; empty: it has none. NuGet's server answers no question about a PDB
// without.
std::string SsqpHeader(const SymbolFileKey& key);
// The paths of a debuginfod server.
std::vector<std::string> DebuginfodPaths(const SymbolFileKey& key);

struct SymbolServerUrl {
  std::string base;  // "https://host/path", no slash at the end
  bool debuginfod = true;
  bool ssqp = true;

  friend bool operator==(const SymbolServerUrl&, const SymbolServerUrl&) = default;
};

// "[debuginfod+|ssqp+][https://]HOST[:PORT][/PATH]", or a word for a server with the one protocol that it speaks:
// "microsoft" has the symbols of what Microsoft built, "nuget" the PDBs of packages. Without the first both protocols
// are tried. Plain http only where it is written out; no user names or passwords, which would stand in the process
// list.
absl::StatusOr<SymbolServerUrl> ParseSymbolServerUrl(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_SYMBOL_KEYS_H_
