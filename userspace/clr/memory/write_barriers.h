// The write barriers of a CoreCLR's image, and their copies in memory.
//
// Compiled code stores references through a write barrier. The image has one for each way in which the collector keeps
// its books. The runtime copies the right one into memory of its own, and does so anew when the heap grows. No table of
// ranges tells of the copies, so they are known by their instructions.
//
// x64: a barrier begins with the store, mov [rdi], rsi. It has 0xf0f0f0f0f0f0f0f0 where addresses belong and 22 where
// the shift of regions does; the runtime puts the values in. Source:
// src/coreclr/vm/amd64/jithelpers_fastwritebarriers.S and jitinterfaceamd64.cpp; the same 11 functions in
// .NET 8.0.30, 9.0.19, 10.0.14 and 11.0.0.
//
// arm64: the values stand behind all barriers, so a copy is the image's code to the byte. Source:
// src/coreclr/vm/arm64/patchedcode.S; measured on 9.0.23, 10.0.15 and 11.0.0.
#ifndef CLRSAMPLER_CLR_MEMORY_WRITE_BARRIERS_H_
#define CLRSAMPLER_CLR_MEMORY_WRITE_BARRIERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "clr/memory/code_ranges.h"
#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

// Owns what it holds. Immutable; any thread.
class WriteBarriers {
 public:
  static constexpr size_t kMaxBytes = 512;  // of one; the largest has 193

  WriteBarriers() = default;
  // Those of the image; none where it has no sorted unwind table.
  explicit WriteBarriers(const ElfImage& image);

  size_t size() const { return barriers_.size(); }

  // The copy that holds `address`. `memory` is what stands at `begin` and behind; kMaxBytes to either side of the
  // address will do. nullopt: there is none, or not all of it is in `memory`.
  std::optional<AddressRange> CopyAround(uint64_t address, std::span<const std::byte> memory, uint64_t begin) const;

 private:
  void FindX64(const ElfImage& image, const EhFrameTable& functions);
  void FindArm64(const ElfImage& image, const EhFrameTable& functions);

  struct Barrier {
    std::vector<std::byte> code;
    std::vector<std::byte> mask;  // 0 where the runtime puts values in
  };
  std::vector<Barrier> barriers_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_WRITE_BARRIERS_H_
