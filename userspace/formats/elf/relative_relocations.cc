#include "formats/elf/relative_relocations.h"

#include <elf.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr uint32_t kRelr = 19;  // SHT_RELR, which the oldest elf.h we build with lacks
// Rows looked at, of whatever kind: a hostile image could name one huge table many times.
constexpr uint64_t kWordBytes = sizeof(uint64_t), kSlotsInBitmap = 63;

class Reader {
 public:
  explicit Reader(const ElfImage& image) : image_(image) {}

  bool Read() {
    for (const ElfSection& section : image_.sections()) {
      if ((section.flags & SHF_ALLOC) == 0 || (section.type != SHT_RELA && section.type != kRelr)) continue;
      const auto bytes = image_.SectionBytes(section);
      if (!bytes) continue;
      if (section.type == SHT_RELA ? !ReadRela(*bytes) : !ReadRelr(*bytes)) return false;
    }
    return true;
  }
  std::vector<RelativeRelocation> TakeRows() { return std::move(rows_); }

 private:
  bool ReadRela(std::span<const std::byte> bytes) {
    const uint32_t kind = image_.machine() == ElfMachine::kX64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= bytes.size(); at += sizeof(Elf64_Rela)) {
      if (budget_-- == 0) return false;
      if ((*LoadAt<uint64_t>(bytes, at + 8) & 0xffffffff) != kind) continue;
      if (!Add(*LoadAt<uint64_t>(bytes, at), *LoadAt<uint64_t>(bytes, at + 16))) return false;
    }
    return true;
  }

  // An even word is a slot; an odd one says which of the next 63 slots follow. The addresses stand in the slots.
  bool ReadRelr(std::span<const std::byte> bytes) {
    uint64_t next = 0;
    for (uint64_t at = 0; at + kWordBytes <= bytes.size(); at += kWordBytes) {
      if (budget_-- == 0) return false;
      const uint64_t word = *LoadAt<uint64_t>(bytes, at);
      if ((word & 1) == 0) {
        if (!AddInPlace(word)) return false;
        next = word + kWordBytes;
        continue;
      }
      for (uint64_t i = 0; i < kSlotsInBitmap; ++i) {
        if ((word >> (i + 1) & 1) != 0 && !AddInPlace(next + i * kWordBytes)) return false;
      }
      next += kSlotsInBitmap * kWordBytes;
    }
    return true;
  }

  bool AddInPlace(uint64_t slot) {
    const auto bytes = image_.BytesFrom({slot});
    const auto target = bytes ? LoadAt<uint64_t>(*bytes, 0) : std::nullopt;
    return !target || Add(slot, *target);
  }

  bool Add(uint64_t slot, uint64_t target) {
    if (rows_.size() == RelativeRelocations::kMaxRelocations) return false;
    rows_.push_back({{slot}, {target}});
    return true;
  }

  const ElfImage& image_;
  size_t budget_ = kMaxRelocations;
  std::vector<RelativeRelocation> rows_;
};

bool BySlot(const RelativeRelocation& a, const RelativeRelocation& b) { return a.slot < b.slot; }

}  // namespace

absl::StatusOr<RelativeRelocations> RelativeRelocations::Read(const ElfImage& image) {
  Reader reader(image);
  if (!reader.Read()) {
    return absl::UnimplementedError(absl::StrCat("more than ", kMaxRelocations, " relocations"));
  }
  RelativeRelocations result;
  result.rows_ = reader.TakeRows();
  std::vector<RelativeRelocation>& rows = result.rows_;
  std::stable_sort(rows.begin(), rows.end(), BySlot);
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].slot == rows[i - 1].slot && rows[i].target != rows[i - 1].target) {
      return absl::DataLossError(absl::StrCat("two relocations of 0x", absl::Hex(rows[i].slot.value)));
    }
  }
  const auto same_slot = [](const auto& a, const auto& b) { return a.slot == b.slot; };
  rows.erase(std::unique(rows.begin(), rows.end(), same_slot), rows.end());
  return result;
}

std::span<const RelativeRelocation> RelativeRelocations::Within(VirtualAddress begin, uint64_t bytes) const {
  const auto first = std::lower_bound(rows_.begin(), rows_.end(), RelativeRelocation{begin, {}}, BySlot);
  const auto inside = [&](const RelativeRelocation& row) { return row.slot.value - begin.value < bytes; };
  const auto last = std::partition_point(first, rows_.end(), inside);
  return {first, last};
}

std::optional<VirtualAddress> RelativeRelocations::At(VirtualAddress slot) const {
  const auto row = std::lower_bound(rows_.begin(), rows_.end(), RelativeRelocation{slot, {}}, BySlot);
  if (row == rows_.end() || row->slot != slot) return std::nullopt;
  return row->target;
}

}  // namespace clrsampler
