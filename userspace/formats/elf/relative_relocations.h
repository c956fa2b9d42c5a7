// Where an image holds addresses of itself: relocations of kind RELATIVE (x86-64 psABI 4.4, arm64 ELF ABI 5.7.13), also
// the packed ones of SHT_RELR.
//
// Vtables and other tables of pointers are zeroes in the files of most linkers: what they hold stands here.
#ifndef CLRSAMPLER_FORMATS_ELF_RELATIVE_RELOCATIONS_H_
#define CLRSAMPLER_FORMATS_ELF_RELATIVE_RELOCATIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

inline constexpr size_t kMaxRelocations = 4'000'000;  // looked at in an image

struct RelativeRelocation {
  VirtualAddress slot;    // eight bytes that will hold
  VirtualAddress target;  // this address
};

// Owns what it holds; 16 bytes a relocation. Immutable; any thread.
class RelativeRelocations {
 public:
  // libLLVM-14 has 355,000, the .NET runtimes 26,000.
  static constexpr size_t kMaxRelocations = 1'000'000;

  // By section headers. An image without such relocations gives an empty table. kDataLoss: two of them say different
  // things of one slot. kUnimplemented: there are too many.
  static absl::StatusOr<RelativeRelocations> Read(const ElfImage& image);

  std::span<const RelativeRelocation> all() const { return rows_; }  // by slot, each slot once
  // Those with slots from `begin` on, up to but not including begin + bytes.
  std::span<const RelativeRelocation> Within(VirtualAddress begin, uint64_t bytes) const;
  std::optional<VirtualAddress> At(VirtualAddress slot) const;

 private:
  std::vector<RelativeRelocation> rows_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_RELATIVE_RELOCATIONS_H_
