// The entries of .eh_frame and .debug_frame (LSB 5.0 core, "Exception Frames"; DWARF 5, 6.4.1).
//
// The two differ in little. In .eh_frame a CIE has id 0 and an FDE counts back to its CIE, and addresses are encoded as
// the augmentation says. In .debug_frame the id of a CIE is all ones, an FDE gives the CIE's offset in the section,
// 64-bit entries have 64-bit ids, and addresses are absolute.
#ifndef CLRSAMPLER_FORMATS_ELF_FRAME_ENTRY_H_
#define CLRSAMPLER_FORMATS_ELF_FRAME_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/elf/elf_image.h"

namespace clrsampler {

// Common Information Entry: what several FDEs share.
struct CommonEntry {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint64_t return_register = 0;
  uint8_t pointer_encoding = 0;  // DW_EH_PE_* of the addresses in FDEs
  bool has_augmentation_data = false;
  bool signal_frame = false;  // the frame was interrupted, not called: its return address is not to be lowered by one
  std::span<const std::byte> instructions;
  VirtualAddress instructions_at;
};

// Frame Description Entry: one function, or a part of one that the compiler placed elsewhere.
struct FrameDescription {
  VirtualAddress start;
  VirtualAddress end;  // exclusive, above start
  CommonEntry common;
  std::span<const std::byte> instructions;
  VirtualAddress instructions_at;
};

// Where entries lie. For .eh_frame any part of the image that holds the entries will do, such as their segment.
struct FrameSection {
  std::span<const std::byte> bytes;
  VirtualAddress address;  // of the first byte; meaningless for .debug_frame, which is not loaded
  bool debug_frame = false;
};

struct FrameEntry {
  bool is_common = false;
  uint64_t common_at = 0;           // of an FDE: where its CIE is, an offset in the section; not checked yet
  std::span<const std::byte> body;  // behind the id
  VirtualAddress body_at;
  uint64_t end = 0;  // offset of the next entry
};

// nullopt: there is no entry, or its length does not fit. A terminator (length 0) is no entry.
std::optional<FrameEntry> ReadFrameEntry(const FrameSection& section, uint64_t offset);
std::optional<CommonEntry> ReadCommonEntry(const FrameSection& section, uint64_t offset);
// nullopt: damaged, or empty, as the linker leaves those of functions that it dropped.
std::optional<FrameDescription> ReadFrameDescription(const FrameEntry& entry, const CommonEntry& common);

// The file bytes of the segment that holds `address`.
std::optional<FrameSection> SegmentWithFrames(const ElfImage& image, VirtualAddress address);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_FRAME_ENTRY_H_
