// The bytes of one portable PDB: in a file, or inside an assembly, where they are compressed.
#ifndef CLRSAMPLER_CLR_LINES_PDB_BYTES_H_
#define CLRSAMPLER_CLR_LINES_PDB_BYTES_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/lines/line_memory.h"
#include "formats/pdb/portable_pdb.h"
#include "process/image_files.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only. A file is mapped, so its pages are the kernel's. A PDB inside the assembly is inflated when it is
// asked for, and again when it had to go.
class PdbBytes : public LineMemory::Part {
 public:
  // All: FailedPrecondition: it belongs to another build, whose id is not `id`. Others as PortablePdb::Open and
  // InflateEmbeddedPdb.
  static absl::StatusOr<std::unique_ptr<PdbBytes>> OfFile(LineMemory& memory, std::shared_ptr<const ImageFile> file,
                                                          const PdbId& id);
  // `entry`: for InflateEmbeddedPdb. `keep_alive`: it lives as long as this.
  static absl::StatusOr<std::unique_ptr<PdbBytes>> Embedded(LineMemory& memory, std::span<const std::byte> entry,
                                                            std::shared_ptr<const void> keep_alive, const PdbId& id);

  // Valid until another part of the memory is used. nullptr: what is inside the assembly is damaged by now.
  const PortablePdb* Get();
  // The file was cut off while it was in use: what was read of it counts for nothing.
  bool damaged() const { return file_ != nullptr && file_->content.damaged(); }

 private:
  // A single one, so that it does not drive out all others. The largest of .NET's own has 2.6 MB.
  static constexpr size_t kMaxInflatedBytes = LineMemory::kMaxBytes / 2;

  PdbBytes(LineMemory& memory, const PdbId& id) : Part(memory), id_(id) {}
  absl::Status Open(std::span<const std::byte> bytes);
  absl::Status Inflate();
  void Free() override;

  const PdbId id_;
  std::shared_ptr<const ImageFile> file_;  // nullptr: it is embedded
  std::span<const std::byte> entry_;       // of one that is embedded
  std::shared_ptr<const void> keep_alive_;
  std::vector<std::byte> inflated_;
  std::optional<PortablePdb> pdb_;  // nullopt: it is not inflated
  bool lost_ = false;               // it could not be inflated again
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_LINES_PDB_BYTES_H_
