// The lines of one assembly's methods, out of its portable PDB.
#ifndef CLRSAMPLER_CLR_LINES_ASSEMBLY_LINES_H_
#define CLRSAMPLER_CLR_LINES_ASSEMBLY_LINES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "formats/pdb/portable_pdb.h"
#include "formats/pdb/source_link.h"
#include "process/image_files.h"
#include "symbols/source_files.h"
#include "symbols/source_place.h"

namespace clrsampler {

// Main loop only: it decodes methods when they are asked for, and keeps what it decoded.
class AssemblyLines {
 public:
  // Of a PDB in a file of its own.
  static absl::StatusOr<std::shared_ptr<AssemblyLines>> OfFile(std::shared_ptr<const ImageFile> file, const PdbId& id);
  // Of a PDB that was inside an assembly. Both: FailedPrecondition: it belongs to another build, whose id is not `id`.
  // Others as PortablePdb::Open.
  static absl::StatusOr<std::shared_ptr<AssemblyLines>> OfBytes(std::vector<std::byte> bytes, const PdbId& id);

  // `method_rid`: row of the MethodDef table. nullopt: the method has no line there, or what says so is damaged. The
  // kind is kNone: that is the code's to say.
  std::optional<SourcePlace> At(uint32_t method_rid, uint32_t il_offset);

  // The first line of the method; nullopt as above.
  std::optional<SourcePlace> BeginOf(uint32_t method_rid);

  // Gives the files that the method's lines are in, each once. `read_text`: the text of a document, empty where it is
  // not to be had; called only if texts are wanted.
  using ReadText = absl::FunctionRef<std::string(const PdbDocument&)>;
  void NoteSources(uint32_t method_rid, SourceFiles& files, ReadText read_text);

  size_t heap_bytes() const;

 private:
  // Of all decoded methods: 3 MB. A program of 30,000 methods that all run has some 300,000.
  static constexpr size_t kMaxPoints = 128 * 1024;

  explicit AssemblyLines(const PortablePdb& pdb) : pdb_(pdb) {}
  const std::vector<SequencePoint>& PointsOf(uint32_t method_rid);
  std::optional<SourcePlace> PlaceOf(const SequencePoint& point);
  const std::string& NameOf(uint32_t document);
  std::string UrlOf(absl::string_view document);
  bool damaged() const { return file_ != nullptr && file_->content.damaged(); }

  std::shared_ptr<const ImageFile> file_;  // one of these has the bytes
  std::vector<std::byte> bytes_;
  PortablePdb pdb_;
  absl::flat_hash_map<uint32_t, std::vector<SequencePoint>> points_;  // by method; empty: it has none
  size_t point_count_ = 0;
  absl::flat_hash_map<uint32_t, std::string> documents_;
  absl::flat_hash_set<uint32_t> noted_;       // documents
  std::optional<SourceLinkMap> source_link_;  // read when a document is noted first; empty where the PDB has none
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_LINES_ASSEMBLY_LINES_H_
