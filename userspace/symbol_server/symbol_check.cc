#include "symbol_server/symbol_check.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/elf/elf_image.h"
#include "formats/jit/r2rmap_parser.h"
#include "formats/pdb/portable_pdb.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::Status CheckElf(const SymbolFileKey& key, std::span<const std::byte> bytes) {
  if (!ElfImage::HasMagic(bytes)) return absl::DataLossError("it is not an ELF file");
  const absl::StatusOr<ElfImage> image = ElfImage::Parse(bytes);
  if (!image.ok()) return absl::DataLossError(image.status().message());
  if (image->build_id().empty()) return absl::FailedPreconditionError("it has no build-id");
  const std::string id = BuildIdText(image->build_id());
  if (id != key.id) return absl::FailedPreconditionError(absl::StrCat("it has build-id ", id));
  if (!image->symtab()) return absl::NotFoundError("it has no symbols");
  return absl::OkStatus();
}

absl::Status CheckR2rMap(const SymbolFileKey& key, std::span<const std::byte> bytes) {
  const absl::StatusOr<R2rMapHeader> header = ParseR2rMapHeader(AsText(bytes));
  if (!header.ok()) return absl::DataLossError(header.status().message());
  const std::string id = absl::AsciiStrToLower(R2rMapSignatureText(*header));
  if (id != key.id || header->version != key.version) {
    return absl::FailedPreconditionError(absl::StrCat("it has signature ", id, " of version ", header->version));
  }
  const absl::StatusOr<R2rMap> map = ParseR2rMap(AsText(bytes));
  return map.ok() ? absl::OkStatus() : absl::DataLossError(map.status().message());
}

absl::Status CheckPdb(const SymbolFileKey& key, std::span<const std::byte> bytes) {
  const absl::StatusOr<PortablePdb> pdb = PortablePdb::Open(bytes);
  if (!pdb.ok()) return absl::DataLossError(pdb.status().message());
  if (PdbServerKey(pdb->id()) != key.id || PdbStamp(pdb->id()) != key.version) {
    return absl::FailedPreconditionError(absl::StrCat("it has id ", PdbIdText(pdb->id())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSymbolFile(const SymbolFileKey& key, std::span<const std::byte> bytes) {
  switch (key.kind) {
    case SymbolFileKind::kElfDebug:
      return CheckElf(key, bytes);
    case SymbolFileKind::kR2rMap:
      return CheckR2rMap(key, bytes);
    case SymbolFileKind::kPortablePdb:
      break;
  }
  return CheckPdb(key, bytes);
}

}  // namespace clrsampler
