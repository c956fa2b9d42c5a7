// The executable sections of an image as one row of bytes, and the instructions in them.
#ifndef CLRSAMPLER_FORMATS_ELF_CODE_AREAS_H_
#define CLRSAMPLER_FORMATS_ELF_CODE_AREAS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/elf/elf_image.h"
#include "formats/x64/instruction.h"

namespace clrsampler {

using CodeIndex = uint32_t;  // of a byte of code

constexpr CodeIndex kNoCode = UINT32_MAX;

struct CodeArea {
  uint64_t address;
  std::span<const std::byte> bytes;
  CodeIndex first;  // of its bytes

  bool Contains(CodeIndex at) const { return at - first < bytes.size(); }
  CodeIndex end() const { return first + static_cast<CodeIndex>(bytes.size()); }
  uint64_t AddressOf(CodeIndex at) const { return address + (at - first); }
  std::optional<X64Instruction> Decode(CodeIndex at) const { return DecodeX64(bytes.subspan(at - first)); }
};

// Borrows the image's bytes.
class CodeAreas {
 public:
  // kNotFound: the image has no code. kResourceExhausted: more than `most_bytes`. kDataLoss: sections overlap.
  static absl::StatusOr<CodeAreas> Of(const ElfImage& image, uint64_t most_bytes);

  const std::vector<CodeArea>& all() const { return areas_; }  // by address
  uint64_t bytes() const { return bytes_; }
  // kNoCode: none is at the address.
  CodeIndex At(uint64_t address) const;
  const CodeArea& AreaOf(CodeIndex at) const;
  // Where an instruction that ends there leads if it goes on `distance` bytes behind its end.
  CodeIndex Target(const CodeArea& area, CodeIndex end, int32_t distance) const {
    return At(area.AddressOf(end) + static_cast<uint64_t>(int64_t{distance}));
  }

 private:
  std::vector<CodeArea> areas_;
  uint64_t bytes_ = 0;
};

// Where instructions end that only fill space, or `end`; kNoCode: not within the area, or there is too much of it.
CodeIndex BehindPadding(const CodeArea& area, CodeIndex at, CodeIndex end = kNoCode);

constexpr size_t kMaxPaddingBytes = 32;  // between functions

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_CODE_AREAS_H_
