// Any bytes as an ELF image. Properties: ranges are sorted and do not overlap, and a look-up agrees with the range that
// it comes from. Conversions are each other's inverse. A function found by its unwind table contains the address asked
// for.
#include <cstddef>
#include <cstdint>

#include "formats/byte_reader.h"
#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_exports.h"
#include "formats/elf/elf_symbols.h"
#include "formats/elf/plt.h"
#include "formats/elf/thread_variable.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void CheckSymbols(const ElfImage& image) {
  const ElfSymbols symbols = ElfSymbols::Build(image, image);
  for (size_t i = 0; i < symbols.size(); ++i) {
    const FunctionSymbol range = symbols.At(i);
    Require(range.start < range.end);
    if (i > 0) Require(symbols.At(i - 1).end <= range.start);
    const auto first = symbols.Find(range.start), last = symbols.Find({range.end.value - 1});
    Require(first && last && first->start == range.start && last->start == range.start);
  }
}

void CheckFunctions(const ElfImage& image) {
  const auto functions = EhFrameTable::Parse(image);
  if (!functions.ok()) return;
  for (size_t i = 0; i < functions->size() && i < 1000; ++i) {
    const VirtualAddress start = functions->FunctionStart(i);
    const auto bounds = functions->Find(start);
    if (bounds) Require(bounds->start <= start && start < bounds->end);
  }
}

// Where the loader's words are anything, a place is one that the sampler can be told of.
void CheckThreadVariable(const ElfImage& image, std::span<const std::byte> bytes) {
  const auto variable = FindThreadVariable(image, "errno");
  if (!variable) return;
  size_t at = 0;
  const auto word = [&](uint64_t) { return LoadAt<uint64_t>(bytes, 8 * at++); };
  for (const bool is_program : {false, true}) {
    const auto place = PlaceOf(*variable, image.machine(), 0, is_program, ThreadVectorKind::kMusl, word);
    if (!place.ok()) continue;
    Require(place->offset % 8 == 0 && place->offset >= -(1 << 20) && place->offset <= 1 << 20);
    Require((place->slot == 0) == (place->module == 0));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto image = ElfImage::Parse(bytes);
  if (!image.ok()) {
    Require(!image.status().message().empty());
    return 0;
  }
  CheckSymbols(*image);
  CheckFunctions(*image);
  CheckThreadVariable(*image, bytes);
  for (const LoadSegment& segment : image->segments()) {
    const auto offset = image->ToOffset(segment.address);
    if (!offset) continue;
    Require(image->ToAddress(*offset).has_value());
    const auto part = image->BytesFrom(segment.address);
    if (part) Require(part->data() >= bytes.data() && part->data() + part->size() <= bytes.data() + bytes.size());
  }
  size_t looked_at = 0;
  clrsampler::PltStubs stubs;
  for (const ElfSection& section : image->sections()) {
    if (++looked_at > 100) break;
    const auto stub = stubs.Find(*image, section.address);
    if (stub) Require(stub->start <= section.address);
  }
  (void)image->debug_link();
  Require(image->interpreter().size() < 4096);
  const ElfExports exports(*image);
  if (const auto table = image->dynsym()) {
    for (size_t i = 0; i < table->size() && i < 100; ++i) {
      const absl::string_view name = table->Name(table->At(i).name);
      const auto found = exports.Find(name);
      if (found) Require(found->section != 0 && table->Name(found->name) == name);
    }
  }
  return 0;
}
