// Any bytes as unwind tables. The first byte says how: bit 0 a .debug_frame, bit 1 AArch64, bit 2 the bytes are a whole
// ELF image. Properties: rows of a function follow each other without gaps inside its bounds, a look-up finds the row
// that the walk gave, and a compiled table agrees with the walk wherever no other function interferes.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/elf/cfi_program.h"
#include "formats/elf/cfi_table.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void CheckFunction(const CfiProgram& program, const FrameDescription& function) {
  uint64_t expected = function.start.value;
  size_t rows = 0;
  const bool complete = program.ForEachRow(function, [&](VirtualAddress start, VirtualAddress end, const CfiRow& row) {
    Require(start.value == expected && start < end && end <= function.end);
    expected = end.value;
    if (rows++ < 64) {
      for (const uint64_t at : {start.value, end.value - 1}) Require(program.RowAt(function, {at}) == row);
    }
    if (row.cfa == CfaRule::kSpOffset) Require(row.cfa_offset >= 0);
    return true;
  });
  if (complete) Require(expected == function.end.value);
}

void CheckSection(const FrameSection& section, ElfMachine machine) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (uint64_t at = 0; at < section.bytes.size();) {
    const auto entry = ReadFrameEntry(section, at);
    if (!entry) {
      at += 4;
      continue;
    }
    Require(entry->end > at && entry->end <= section.bytes.size());
    const auto common = entry->is_common ? std::nullopt : ReadCommonEntry(section, entry->common_at);
    const auto function = common ? ReadFrameDescription(*entry, *common) : std::nullopt;
    if (function) {
      Require(function->start < function->end);
      CheckFunction(CfiProgram(machine, *common), *function);
      ranges.emplace_back(function->start.value, function->end.value);
    }
    at = entry->end;
  }
  const auto compiled = CompiledCfi::Compile(machine, section);
  if (!compiled.ok()) return Require(!compiled.status().message().empty());
  Require(compiled->functions() <= ranges.size());
  Require(compiled->memory_bytes() <= 16 * section.bytes.size() + 4096);
  for (const auto& [start, end] : ranges) {
    for (const uint64_t at : {start, start + (end - start) / 2, end - 1, end, start - 1}) (void)compiled->At({at});
  }
}

void CheckImage(std::span<const std::byte> bytes) {
  const auto image = ElfImage::Parse(bytes);
  if (!image.ok()) return;
  const auto table = CfiTable::Open(*image), compiled = CfiTable::OpenCompiled(*image);
  if (!table.ok()) return Require(!table.status().message().empty());
  const auto index = EhFrameTable::Parse(*image);
  for (size_t i = 0; index.ok() && i < index->size() && i < 1000; ++i) {
    const VirtualAddress start = index->FunctionStart(i);
    (void)table->At(start);
    (void)table->At({start.value - 1});
    if (compiled.ok()) (void)compiled->At(start);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  if ((data[0] & 4) != 0) {
    CheckImage(bytes);
  } else {
    CheckSection({bytes, {0x10000}, (data[0] & 1) != 0}, (data[0] & 2) != 0 ? ElfMachine::kArm64 : ElfMachine::kX64);
  }
  return 0;
}
