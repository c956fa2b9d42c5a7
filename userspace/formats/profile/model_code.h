// Machine code in a profile: of the methods that samples met, each body as it stood in its process.
//
// A method has a body for each tier and each instance of its type arguments. Addresses of the code are those of the
// process. ProfileModelBuilder::Code keeps what is said here, whatever it is given.
#ifndef CLRSAMPLER_FORMATS_PROFILE_MODEL_CODE_H_
#define CLRSAMPLER_FORMATS_PROFILE_MODEL_CODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr size_t kMaxCodeBodyBytes = 1 << 20;     // of one; the largest of the shipped frameworks has 26 KB
inline constexpr size_t kMaxUnwindBytes = 4096;          // of a part; x86-64 codes have 528 at most
inline constexpr size_t kMaxCodeBodiesBytes = 64 << 20;  // of all bodies of a profile

enum class CodeMachine : uint8_t { kX64, kArm64 };
inline constexpr int kCodeMachineCount = 2;
absl::string_view CodeMachineText(CodeMachine machine);  // "x86-64", "arm64"
std::optional<CodeMachine> CodeMachineOf(absl::string_view text);

// The code from `offset` up to the next entry's stands for this line.
struct ModelCodeLine {
  uint32_t offset = 0;  // from the body's first byte
  uint32_t file = 0;    // StringIndex
  uint32_t line = 0;    // from 1; 0: none
  uint32_t column = 0;  // from 1; 0: not known

  friend bool operator==(const ModelCodeLine&, const ModelCodeLine&) = default;
};

// Samples that were taken at the instruction at `offset`.
struct ModelCodeWeight {
  uint32_t offset = 0;
  uint64_t weight = 0;

  friend bool operator==(const ModelCodeWeight&, const ModelCodeWeight&) = default;
};

// The compiler's data for unwinding a part of a body: the method itself, or one of its funclets.
struct ModelUnwind {
  uint32_t begin = 0;  // from the body's first byte
  uint32_t end = 0;    // exclusive
  // x86-64: UNWIND_INFO; where that is chained, with the RUNTIME_FUNCTION behind it, and then what it is chained to.
  // arm64: the .xdata record. Never empty.
  std::string bytes;

  friend bool operator==(const ModelUnwind&, const ModelUnwind&) = default;
};

struct ModelCode {
  uint32_t frame = 0;  // FrameIndex, of the frame without a line
  uint32_t pid = 0;    // 0: not known
  CodeMachine machine = CodeMachine::kX64;
  uint64_t address = 0;               // of the first byte, in the process
  uint64_t time_ns = 0;               // since the start of the recording: when it was first met
  std::string bytes;                  // never empty
  std::vector<ModelCodeLine> lines;   // offsets ascend
  std::vector<ModelCodeWeight> self;  // likewise; no weight is 0
  std::vector<ModelUnwind> unwind;    // parts ascend and do not overlap

  friend bool operator==(const ModelCode&, const ModelCode&) = default;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_MODEL_CODE_H_
