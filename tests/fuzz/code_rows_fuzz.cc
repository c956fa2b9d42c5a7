// Any bytes as x86-64 code: as the code of a library with one exported function at its first byte, or, where the first
// bit is set, as a whole ELF image. Properties: rows are in order, inside the code and apart; no row says that the
// return address lies below sp; instructions have a length; all of it takes a time that the size bounds.
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/elf/cfi_table.h"
#include "formats/elf/code_rows.h"
#include "formats/elf/elf_symbols.h"
#include "formats/x64/instruction.h"
#include "unit/formats/elf/linked_image.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

constexpr uint64_t kCode = 0x1000;

void CheckImage(std::span<const std::byte> bytes) {
  const auto image = ElfImage::Parse(bytes);
  if (!image.ok()) return;
  (void)ElfSymbols::Build(*image, *image);
  const auto rows = RowsOfCode(*image);
  if (!rows.ok()) return Require(!rows.status().message().empty());
  Require(rows->row_bytes <= rows->code_bytes && rows->code_bytes <= CodeRows::kMaxCodeBytes);
  uint64_t end = 0, sum = 0;
  for (const CodeRow& row : rows->rows) {
    Require(row.start.value >= end && row.start < row.end);
    end = row.end.value;
    sum += row.end.value - row.start.value;
    if (row.row.ra == RegisterRule::kUndefined) continue;
    Require(row.row.ra_offset == -8);
    Require(row.row.cfa == CfaRule::kSpOffset || row.row.cfa == CfaRule::kFpOffset);
    if (row.row.cfa == CfaRule::kSpOffset) Require(row.row.cfa_offset >= 8 && row.row.cfa_offset % 8 == 0);
  }
  Require(sum == rows->row_bytes);
  for (const CodeFunction& function : rows->bounds) Require(function.start < function.end);
  const auto compiled = CompiledCfi::FromCode(*rows);
  if (!compiled.ok()) return;
  for (size_t i = 0; i < rows->rows.size() && i < 64; ++i) {
    Require(compiled->At(rows->rows[i].start).row == rows->rows[i].row);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const auto instruction = DecodeX64(bytes);
  if (instruction)
    Require(instruction->bytes > 0 && instruction->bytes <= std::min(bytes.size(), kMaxX64InstructionBytes));
  Require(X64PaddingBytes(bytes) <= bytes.size());
  if ((data[0] & 1) != 0) {
    CheckImage(bytes);
    return 0;
  }
  LinkedImage image(EM_X86_64);
  image.Add({.name = ".text",
             .flags = SHF_ALLOC | SHF_EXECINSTR,
             .address = kCode,
             .bytes = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
  image.AddSymbols(".dynsym", ".dynstr", {{"f", kCode, 0}});
  const std::string built = image.Build();
  CheckImage({reinterpret_cast<const std::byte*>(built.data()), built.size()});
  return 0;
}
