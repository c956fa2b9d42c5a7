// Names code addresses of a running process by the same sources as a recording, without sampling: to see what a source
// says, and for tests that compare it with others.
#ifndef CLRSAMPLER_PIPELINE_ADDRESS_SYMBOLIZER_H_
#define CLRSAMPLER_PIPELINE_ADDRESS_SYMBOLIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/lines/assembly_pdbs.h"
#include "formats/names/frame_text.h"
#include "symbols/frame.h"

namespace clrsampler {

class FileBroker;
class LineHelper;

struct AddressSymbolizerOptions {
  NameStyle names = NameStyle::kRaw;
  LineOptions lines = {};
  std::shared_ptr<LineHelper> line_helper = nullptr;  // nullptr: native code has no lines
  bool without_files = false;
  bool without_images = false;
  bool without_memory = false;
  FileBroker* files = nullptr;  // as TargetFiles'; outlives it
};

class AddressSymbolizer {
 public:
  // NotFound: no such process.
  static absl::StatusOr<std::unique_ptr<AddressSymbolizer>> Create(uint32_t pid,
                                                                   const AddressSymbolizerOptions& options);
  virtual ~AddressSymbolizer() = default;

  // One frame for each address.
  virtual std::vector<Frame> Name(std::span<const uint64_t> addresses) = 0;

  // Addresses inside managed code that can run now: half from JIT-compiled methods, half from precompiled ones that
  // the runtime has prepared. Needs the runtime's memory: FailedPrecondition says why it can't be read.
  virtual absl::StatusOr<std::vector<uint64_t>> RandomCode(size_t count, uint64_t seed) = 0;

  virtual std::vector<std::string> notices() const = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_ADDRESS_SYMBOLIZER_H_
