// Source lines of an ELF image's code, from its DWARF.
//
// elfutils' libdw does the reading, with separate debug files (by build-id or debug link) as it finds them on this
// host. It is opened at run time: only `clrsampler mip show --debug` and `clrsampler mip covered --debug` need it, and
// its own libraries would be looked up at each start.
#ifndef CLRSAMPLER_SYMBOLS_SOURCE_LINES_H_
#define CLRSAMPLER_SYMBOLS_SOURCE_LINES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "formats/elf/address_conversion.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct SourceLine {
  std::string file;  // as the compiler wrote it: absolute, or relative to its directory
  uint32_t line = 0;
};

// Main loop only. Move-only.
class SourceLines {
 public:
  // Unavailable: libdw is not installed, or the program is static and can open no library.
  static absl::StatusOr<SourceLines> Open(const std::string& path);

  SourceLines(SourceLines&&) noexcept;
  SourceLines& operator=(SourceLines&&) noexcept;
  ~SourceLines();

  // The line of the instruction at `address`, as linked; nullopt: the image does not say.
  std::optional<SourceLine> At(VirtualAddress address) const;

 private:
  struct State;
  explicit SourceLines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_SOURCE_LINES_H_
