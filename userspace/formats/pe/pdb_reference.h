// The words of an assembly about its portable PDB: which one it is, where it was written, and the PDB itself where it
// is inside.
//
// Layout: dotnet/runtime docs/design/specs/PE-COFF.md. crossgen2 keeps the entries of its input, so the PDB of the
// assembly serves its precompiled image too. All views are of the image's bytes; texts and hashes are what the file
// says.
#ifndef CLRSAMPLER_FORMATS_PE_PDB_REFERENCE_H_
#define CLRSAMPLER_FORMATS_PE_PDB_REFERENCE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/pe/pe_image.h"

namespace clrsampler {

// A GUID and 4 bytes more, as "#Pdb" begins with them. A PDB belongs to an assembly only if all 20 bytes are equal.
struct PdbId {
  std::array<uint8_t, 20> bytes = {};

  friend bool operator==(const PdbId&, const PdbId&) = default;
};

// "8f6cb757-0a1b-4c2d-8e3f-001122334455-1a2b3c4d", for messages: GUID and stamp.
std::string PdbIdText(const PdbId& id);

// The 4 bytes behind the GUID.
uint32_t PdbStamp(const PdbId& id);

// The name of symbol servers (SSQP) for the PDB below its file name: "8f6cb7570a1b4c2d8e3f001122334455ffffffff".
std::string PdbServerKey(const PdbId& id);

// A CodeView entry (type 2) of a portable PDB.
struct PdbReference {
  PdbId id;
  uint32_t age = 0;  // 1 by the specification
  // Where the compiler wrote it, or what a path map made of that: "/_/obj/Release/net8.0/app.pdb", "C:\src\app.pdb".
  // Chosen by the file, and a path of another machine.
  std::string path;
};

// A checksum entry (type 19): the hash of the PDB with an id of zeroes.
struct PdbChecksum {
  absl::string_view algorithm;  // "SHA256"
  std::span<const std::byte> hash;
};

// In the order of the file. Damaged entries, and those of Windows PDBs, are left out.
std::vector<PdbReference> PdbReferences(const PeImage& image);
std::vector<PdbChecksum> PdbChecksums(const PeImage& image);

// The content of the first embedded-PDB entry (type 17), which formats/pdb/embedded_pdb.h unpacks; nullopt: none.
std::optional<std::span<const std::byte>> EmbeddedPdb(const PeImage& image);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_PDB_REFERENCE_H_
