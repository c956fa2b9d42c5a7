// Finds the portable PDBs of assemblies. A PDB counts only if its id is the one that the assembly names.
//
// It is looked for inside the assembly, beside it, where the compiler wrote it, in the folders of --pdb-path, and then
// on symbol servers. Paths are those of the process, and lead through its own root. A file of a server is asked for by
// its id, so it may count for every process.
#ifndef CLRSAMPLER_CLR_LINES_ASSEMBLY_PDBS_H_
#define CLRSAMPLER_CLR_LINES_ASSEMBLY_PDBS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "clr/lines/assembly_lines.h"
#include "clr/lines/assembly_slot.h"
#include "clr/lines/line_memory.h"
#include "formats/pe/pdb_reference.h"
#include "formats/pe/pe_image.h"
#include "process/image_files.h"
#include "process/per_process.h"
#include "process/process.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbol_server/symbol_files.h"

namespace clrsampler {

struct AssemblyPdbsCounters {
  uint64_t found = 0;
  uint64_t embedded = 0;  // of these: inside the assembly
  uint64_t fetched = 0;   // of these: from a symbol server
  uint64_t awaited = 0;   // asked for, and not here yet
  uint64_t without = 0;   // names of assemblies whose PDB is nowhere
  uint64_t refused = 0;   // PDBs that are damaged or belong to another build

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them
};

struct LineOptions {
  bool wanted = false;
  std::vector<std::string> pdb_folders;  // of this host, in order
  bool source_texts = false;             // of the files that lines are in
};

// Main loop only. Borrows everything it is given, and outlives the slots that it gives out.
class AssemblyPdbs {
 public:
  // `symbol_files`: asked for PDBs that are not on this machine; nullptr: nobody is.
  AssemblyPdbs(LineOptions options, ImageFiles& images, Notices& notices, SymbolFiles* symbol_files = nullptr)
      : folders_(std::move(options.pdb_folders)),
        images_(images),
        notices_(notices),
        symbol_files_(symbol_files),
        source_files_(options.source_texts),
        used_by_([this](ProcessKey, Used& used) { Release(used); }) {}

  // `image`: the assembly. `keep_alive`: its bytes live as long as this; nullptr: they are gone after the call. `path`:
  // its file as the process sees it, or the program that it is bundled into; empty: it is in no file. `name`: of the
  // assembly. nullptr: it has no PDB, and none is awaited. The result is shared by processes that see the same files.
  std::shared_ptr<AssemblySlot> Find(const Process& process, const PeImage& image,
                                     const std::shared_ptr<const void>& keep_alive, absl::string_view path,
                                     absl::string_view name);
  // The process has ended, or runs another program. Files that no other one uses are given back.

  // Grows when lines that were awaited may have come.
  uint64_t generation() const { return symbol_files_ == nullptr ? 0 : symbol_files_->generation(); }

  // The process runs a method of the assembly: notes the files that its lines are in, while they can be read. A text
  // counts only if it is the one that was compiled, by its hash.
  void NoteSources(const Process& process, AssemblySlot& assembly, uint32_t method_rid);
  const SourceFiles& source_files() const { return source_files_; }

  AssemblyPdbsCounters counters() const;
  size_t heap_bytes() const { return memory_.bytes(); }  // of what is decoded
  // Names of assemblies without a PDB, the first few.
  const std::vector<std::string>& without() const { return without_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::array<uint8_t, 20>>;
  using Used = absl::flat_hash_set<std::shared_ptr<AssemblySlot>>;

  static constexpr size_t kMaxAssemblies = 4096;
  static constexpr size_t kMaxNames = 64;
  static constexpr size_t kMaxNamesCounted = 64 * 1024;  // from there on a name may count again

  std::shared_ptr<AssemblyLines> Search(const Process& process, const PeImage& image,
                                        const std::shared_ptr<const void>& keep_alive, absl::string_view path,
                                        absl::string_view name, const std::vector<PdbReference>& references);
  absl::StatusOr<std::shared_ptr<AssemblyLines>> OpenEmbedded(std::span<const std::byte> entry,
                                                              std::shared_ptr<const void> keep_alive, const PdbId& id);
  // nullptr: no such file, or it is no PDB of that build, which is told.
  std::shared_ptr<AssemblyLines> Open(absl::StatusOr<std::shared_ptr<const ImageFile>> file, absl::string_view path,
                                      const PdbId& id);
  // Has no lines, and awaits none, where nobody is asked.
  std::shared_ptr<AssemblySlot> Ask(const PeImage& image, absl::string_view name, const PdbReference& reference);
  std::shared_ptr<AssemblyLines> OpenFetched(const std::shared_ptr<const ImageFile>& file, const std::string& name,
                                             const PdbId& id);
  std::string ReadText(const Process& process, const PdbDocument& document);
  // The program that used these is over.
  void Release(Used& used);
  void NoteWithout(absl::string_view name);
  void Refuse(absl::string_view path, const absl::Status& status);

  std::vector<std::string> folders_;
  ImageFiles& images_;
  Notices& notices_;
  SymbolFiles* const symbol_files_;
  SourceFiles source_files_;
  LineMemory memory_;  // before all that is in it
  // By mounts, path, name and id: what one process sees names nothing of another one that sees other files. Slots
  // without lines are there too: a search costs several files that are opened.
  absl::flat_hash_map<Key, std::weak_ptr<AssemblySlot>> known_;
  PerProcess<Used> used_by_;
  absl::flat_hash_set<uint64_t> named_without_;  // hashes of names that `without` counts
  std::vector<std::string> without_;
  AssemblyPdbsCounters counters_;  // without `awaited`
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_LINES_ASSEMBLY_PDBS_H_
