#include "clr/lines/pdb_bytes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/pdb/embedded_pdb.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<std::unique_ptr<PdbBytes>> PdbBytes::OfFile(LineMemory& memory, std::shared_ptr<const ImageFile> file,
                                                           const PdbId& id) {
  std::unique_ptr<PdbBytes> made(new PdbBytes(memory, id));
  RETURN_IF_ERROR(made->Open(file->bytes()));
  made->file_ = std::move(file);
  return made;
}

absl::StatusOr<std::unique_ptr<PdbBytes>> PdbBytes::Embedded(LineMemory& memory, std::span<const std::byte> entry,
                                                             std::shared_ptr<const void> keep_alive, const PdbId& id) {
  std::unique_ptr<PdbBytes> made(new PdbBytes(memory, id));
  made->entry_ = entry;
  made->keep_alive_ = std::move(keep_alive);
  RETURN_IF_ERROR(made->Inflate());
  return made;
}

absl::Status PdbBytes::Open(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(PortablePdb pdb, PortablePdb::Open(bytes));
  if (pdb.id() != id_) {
    return absl::FailedPreconditionError(
        absl::StrCat("it belongs to another build: ", PdbIdText(pdb.id()), " instead of ", PdbIdText(id_)));
  }
  pdb_ = std::move(pdb);
  return absl::OkStatus();
}

absl::Status PdbBytes::Inflate() {
  ASSIGN_OR_RETURN(std::vector<std::byte> bytes, InflateEmbeddedPdb(entry_, kMaxInflatedBytes));
  RETURN_IF_ERROR(Open(bytes));
  inflated_ = std::move(bytes);  // which stay where they are
  Used(inflated_.capacity());
  return absl::OkStatus();
}

const PortablePdb* PdbBytes::Get() {
  main_loop_.Check();
  if (file_ != nullptr) return &*pdb_;
  if (pdb_) {
    Used(inflated_.capacity());
  } else if (!lost_) {
    lost_ = !Inflate().ok();
  }
  return pdb_ ? &*pdb_ : nullptr;
}

void PdbBytes::Free() {
  pdb_.reset();
  inflated_ = std::vector<std::byte>();  // `{}` would keep its room
}

}  // namespace clrsampler
