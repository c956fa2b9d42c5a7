// Small images of code: functions one behind the other, with unwind tables. For tests of what is told by instructions.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_CODE_IMAGE_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_CODE_IMAGE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "formats/byte_reader.h"
#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_image.h"
#include "unit/formats/elf/linked_image.h"

namespace clrsampler {

// "48 89 e5"
inline std::string CodeOf(absl::string_view hexadecimal) {
  return absl::HexStringToBytes(absl::StrReplaceAll(hexadecimal, {{" ", ""}}));
}

// "a9b57bfd 910003fd": instructions of arm64 as numbers.
inline std::string Arm64CodeOf(absl::string_view instructions) {
  std::string code;
  for (const absl::string_view one : absl::StrSplit(instructions, ' ')) {
    const std::string bytes = absl::HexStringToBytes(one);
    code.append(bytes.rbegin(), bytes.rend());
  }
  return code;
}

class CodeImage {
 public:
  static constexpr uint64_t kStart = 0x100000;

  explicit CodeImage(uint16_t machine = EM_X86_64) : machine_(machine) {}

  uint64_t next() const { return kStart + code_.size(); }
  // Appends a function, and returns where it begins.
  uint64_t Add(const std::string& code) {
    const uint64_t start = next();
    functions_.emplace_back(start, code.size());
    code_ += code;
    return start;
  }
  // Four bytes: the distance to `target` from the end of these, where they stand at `at`.
  static std::string Distance(uint64_t at, uint64_t target) { return RawBytes(static_cast<int32_t>(target - at - 4)); }
  // Puts such a distance into code that was added.
  void Lead(uint64_t at, uint64_t target) { code_.replace(at - kStart, 4, Distance(at, target)); }
  // The same on arm64: the instruction at `at`, b or bl of any distance, then leads to `target`.
  void LeadArm64(uint64_t at, uint64_t target) {
    const uint32_t kind = *LoadAt<uint32_t>(AsBytes(code_), at - kStart) & 0xfc000000;
    const uint32_t distance = static_cast<uint32_t>((target - at) / 4) & 0x03ffffff;
    code_.replace(at - kStart, 4, RawBytes(kind | distance));
  }
  void Change(uint64_t at) { code_[at - kStart] = static_cast<char>(code_[at - kStart] ^ 0x55); }

  template <typename Use>
  auto With(const Use& use) const {
    LinkedImage image(machine_);
    image.AddUnwindTables(0x200000, functions_);
    image.Add({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = kStart, .bytes = code_});
    const std::string bytes = image.Build();
    const auto parsed = ElfImage::Parse(AsBytes(bytes));
    const auto unwind = EhFrameTable::Parse(*parsed);
    return use(*parsed, *unwind);
  }

 private:
  uint16_t machine_;
  std::string code_;
  std::vector<std::pair<uint64_t, uint64_t>> functions_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_CODE_IMAGE_H_
