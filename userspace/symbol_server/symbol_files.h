// Symbol files that are not on this machine yet, as the sources of names see them.
#ifndef CLRSAMPLER_SYMBOL_SERVER_SYMBOL_FILES_H_
#define CLRSAMPLER_SYMBOL_SERVER_SYMBOL_FILES_H_

#include <cstdint>
#include <memory>

#include "process/image_files.h"
#include "symbol_server/symbol_keys.h"

namespace clrsampler {

// Main loop only.
class SymbolFiles {
 public:
  enum class State : uint8_t {
    kWaiting,  // being fetched; ask again when generation() has grown
    kNone,     // nobody has it; final for this run
    kHere,
  };
  struct Answer {
    State state = State::kNone;
    std::shared_ptr<const ImageFile> file;  // kHere: proven to have the key's id
  };

  virtual ~SymbolFiles() = default;

  // Never blocks on a network. The first question about a key starts the search.
  virtual Answer Get(const SymbolFileKey& key) = 0;

  // Grows when a file has come.
  virtual uint64_t generation() const = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_SYMBOL_FILES_H_
