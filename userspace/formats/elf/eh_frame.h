// Function bounds from the unwind tables, which even a stripped image has (LSB 5.0 core, "Exception Frames"; DWARF
// 5, 6.4).
//
// .eh_frame_hdr is a table of (function start, FDE), sorted for binary search; the FDE in .eh_frame says where the
// function ends. The rows inside an FDE (Call Frame Instructions) are handed out as bytes and are not interpreted here.
#ifndef CLRSAMPLER_FORMATS_ELF_EH_FRAME_H_
#define CLRSAMPLER_FORMATS_ELF_EH_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "formats/elf/elf_image.h"
#include "formats/elf/frame_entry.h"

namespace clrsampler {

struct FunctionBounds {
  VirtualAddress start;
  VirtualAddress end;  // exclusive
  bool end_known;      // false: the FDE was unreadable, `end` is the next function's start or the end of the segment
};

// Borrows the image's bytes. Immutable; any thread.
class EhFrameTable {
 public:
  // Browsers have a million functions. Some who ask go through all of them, and a table may lie in a hole of a file,
  // which takes no space on the disk.
  static constexpr size_t kMaxRows = 4'000'000;

  // kNotFound: the image has no such table. kUnimplemented: not the encoding that GNU ld, gold and lld write
  // (version 1, table of sdata4 relative to the header). kDataLoss: damaged. kResourceExhausted: more than kMaxRows.
  static absl::StatusOr<EhFrameTable> Parse(const ElfImage& image);

  size_t size() const { return count_; }
  // Precondition of these three: index < size().
  VirtualAddress FunctionStart(size_t index) const;
  VirtualAddress DescriptionAddress(size_t index) const;  // of the FDE
  absl::StatusOr<FrameDescription> Description(size_t index) const;

  // The function that contains `address`; nullopt: none, the address lies between functions. In a table that is not
  // sorted an entry may be missed but never a wrong one found, since its bounds are checked.
  std::optional<FunctionBounds> Find(VirtualAddress address) const;

  // Index of the last entry that starts at or below `address`.
  std::optional<size_t> IndexBelow(VirtualAddress address) const;
  // The first function start above `address`.
  std::optional<VirtualAddress> NextStart(VirtualAddress address) const;

 private:
  EhFrameTable(const ElfImage& image, VirtualAddress header, std::span<const std::byte> rows)
      : image_(image), header_(header), rows_(rows), count_(rows.size() / kRowBytes) {}
  static constexpr size_t kRowBytes = 8;

  ElfImage image_;
  VirtualAddress header_;
  std::span<const std::byte> rows_;
  size_t count_ = 0;
};

// The FDE at this address of the image.
absl::StatusOr<FrameDescription> ParseFrameDescription(const ElfImage& image, VirtualAddress at);

// The same for many: FDEs that follow each other share a CIE as a rule, which is read once then. Borrows the
// image; one thread.
class FrameDescriptions {
 public:
  explicit FrameDescriptions(const ElfImage& image) : image_(image) {}
  absl::StatusOr<FrameDescription> At(VirtualAddress at);

 private:
  const ElfImage& image_;
  std::optional<FrameSection> section_;  // of the last one
  uint64_t common_at_ = 0;               // offset in the section
  std::optional<CommonEntry> common_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_EH_FRAME_H_
