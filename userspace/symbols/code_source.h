// A source of machine code: what a FrameSource is for names.
#ifndef CLRSAMPLER_SYMBOLS_CODE_SOURCE_H_
#define CLRSAMPLER_SYMBOLS_CODE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/elf/elf_image.h"
#include "symbols/frame_source.h"
#include "symbols/source_place.h"

namespace clrsampler {

inline constexpr uint64_t kMaxBodyBytes = 1 << 20;  // larger ones are not read
inline constexpr size_t kMaxUnwindParts = 256;      // of a body; those behind are not read

// The code from `offset` up to the next entry's stands for this line, or for none.
struct CodeLine {
  uint32_t offset = 0;  // from the body's first byte
  std::optional<SourcePlace> place;
};

// The compiler's data for unwinding a part of a body: the method itself, or one of its funclets.
struct CodeUnwind {
  uint32_t begin = 0;  // from the body's first byte
  uint32_t end = 0;    // exclusive
  std::string bytes;   // as UnwindBytes or Arm64UnwindBytes (formats/unwind/unwind_bytes.h) give them; never empty

  friend bool operator==(const CodeUnwind&, const CodeUnwind&) = default;
};

// The code of one method that lies in one piece.
struct CodeBody {
  uint64_t start = 0;                        // of its first byte, in the process
  std::shared_ptr<const std::string> bytes;  // never nullptr
  ElfMachine machine = ElfMachine::kX64;
  // Its lines, ascending; may be empty. They may be more when it is called later: a PDB may have come.
  std::function<std::vector<CodeLine>()> lines;
  // The parts ascend, do not overlap, and lie in the body. Empty: it is not known.
  std::vector<CodeUnwind> unwind;
};

// The bytes that `parts` take in memory.
inline size_t BytesOf(const std::vector<CodeUnwind>& parts) {
  size_t bytes = parts.size() * sizeof(CodeUnwind);
  for (const CodeUnwind& part : parts) bytes += part.bytes.size();
  return bytes;
}

// Main loop only.
class CodeSource {
 public:
  virtual ~CodeSource() = default;

  // The code that holds `lookup_address` at that time. Asked after Resolve has named the frame, with the same question.
  // nullopt: it is not known, or could not be read while it was there.
  virtual std::optional<CodeBody> BodyOf(const FrameQuery& query) = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_CODE_SOURCE_H_
