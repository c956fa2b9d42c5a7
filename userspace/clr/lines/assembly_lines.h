// The lines of one assembly's methods, out of its portable PDB.
#ifndef CLRSAMPLER_CLR_LINES_ASSEMBLY_LINES_H_
#define CLRSAMPLER_CLR_LINES_ASSEMBLY_LINES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "clr/lines/line_memory.h"
#include "clr/lines/pdb_bytes.h"
#include "formats/pdb/portable_pdb.h"
#include "formats/pdb/source_link.h"
#include "status/thread_checker.h"
#include "symbols/source_files.h"
#include "symbols/source_place.h"

namespace clrsampler {

// Main loop only: it decodes methods when they are asked for, and keeps what it decoded while there is room.
class AssemblyLines : public LineMemory::Part {
 public:
  AssemblyLines(LineMemory& memory, std::unique_ptr<PdbBytes> pdb) : Part(memory), pdb_(std::move(pdb)) {}

  // `method_rid`: row of the MethodDef table. nullopt: the method has no line there, or what says so is damaged. The
  // kind is kNone: that is the code's to say.
  std::optional<SourcePlace> At(uint32_t method_rid, uint32_t il_offset);

  // The first line of the method; nullopt as above.
  std::optional<SourcePlace> BeginOf(uint32_t method_rid);

  // Gives the files that the method's lines are in, each once. `read_text`: the text of a document, empty where it is
  // not to be had; called only if texts are wanted.
  using ReadText = absl::FunctionRef<std::string(const PdbDocument&)>;
  void NoteSources(uint32_t method_rid, SourceFiles& files, ReadText read_text);

 private:
  // The bound of one assembly, so that it does not drive out all others.
  static constexpr size_t kMaxHeldBytes = LineMemory::kMaxBytes / 4;

  // Valid until anything else is called here.
  const std::vector<SequencePoint>& PointsOf(uint32_t method_rid);
  std::optional<SourcePlace> PlaceOf(const SequencePoint& point);
  std::string NameOf(uint32_t document);
  std::string UrlOf(absl::string_view document);
  // So much more is about to be held.
  void Hold(size_t bytes);
  void Free() override;

  const std::unique_ptr<PdbBytes> pdb_;
  absl::flat_hash_map<uint32_t, std::vector<SequencePoint>> points_;  // by method; empty: it has none
  absl::flat_hash_map<uint32_t, std::string> documents_;
  absl::flat_hash_set<uint32_t> noted_;       // documents
  std::optional<SourceLinkMap> source_link_;  // read when a document is noted; empty where the PDB has none
  size_t held_bytes_ = 0;                     // by all of these
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_LINES_ASSEMBLY_LINES_H_
