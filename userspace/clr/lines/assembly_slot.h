// Where the lines of one assembly are, or will be: its PDB may still be on the way from a symbol server.
#ifndef CLRSAMPLER_CLR_LINES_ASSEMBLY_SLOT_H_
#define CLRSAMPLER_CLR_LINES_ASSEMBLY_SLOT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "clr/lines/assembly_lines.h"
#include "status/thread_checker.h"
#include "symbol_server/symbol_files.h"

namespace clrsampler {

// Main loop only. Methods that were looked at before the PDB came share the slot, and so have lines when it is here.
class AssemblySlot {
 public:
  // Told how the search ended, once. `file`: what came; nullptr: nobody has it. The result: nullptr where there are no
  // lines in it.
  using Open = std::function<std::shared_ptr<AssemblyLines>(const std::shared_ptr<const ImageFile>& file)>;

  explicit AssemblySlot(std::shared_ptr<AssemblyLines> lines) : lines_(std::move(lines)) {}
  // The slot of a PDB that is asked for. Borrows `files`, and what `open` refers to.
  AssemblySlot(SymbolFiles& files, SymbolFileKey key, Open open)
      : files_(&files), key_(std::move(key)), open_(std::move(open)) {}

  // nullptr: there are none, or not yet. Asks the server's files only when one has come since the last question.
  AssemblyLines* lines();
  bool waiting() const { return files_ != nullptr; }

 private:
  std::shared_ptr<AssemblyLines> lines_;
  SymbolFiles* files_ = nullptr;  // nullptr: nothing is awaited
  SymbolFileKey key_;
  Open open_;
  std::optional<uint64_t> asked_at_;  // generation of `files_`
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_LINES_ASSEMBLY_SLOT_H_
