// Any bytes as a runtime, its debug file and its JIT at once. The first byte says which of these three they are.
// Properties: it ends, and every refusal says why. Every address that is given is the first of a function, which begins
// with a known prologue. The function is one of the unwind table, or of a symbol with a size. Its offset leads to these
// very bytes, and no other segment does. Two hooks never share an address. Inside a function there is one place only,
// and only in compileMethod.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "clr/hooks/hook_locator.h"
#include "formats/byte_reader.h"
#include "formats/elf/eh_frame.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

// Said in another way than by the code under test.
bool IsFunctionStart(const ElfImage& image, const ElfImage& debug, VirtualAddress address) {
  if (const auto table = EhFrameTable::Parse(image); table.ok()) {
    const auto bounds = table->Find(address);
    if (bounds && bounds->end_known) return bounds->start == address;
  }
  for (const ElfImage* names : {&image, &debug}) {
    const auto symbols = names->symtab();
    for (size_t i = 0; symbols && i < symbols->size(); ++i) {
      const ElfSymbol symbol = symbols->At(i);
      if (symbol.address == address && symbol.type == 2 && symbol.size != 0) return true;  // STT_FUNC
    }
  }
  return false;
}

bool HasPrologue(ElfMachine machine, std::span<const std::byte> code) {
  if (machine == ElfMachine::kX64) return LoadAt<uint32_t>(code, 0) == 0xe5894855;  // push rbp; mov rbp, rsp
  for (size_t i = 0; i < 8; ++i) {
    const uint32_t word = LoadAt<uint32_t>(code, 4 * i).value_or(0);
    if ((word & 0xfe407fff) == 0xa8007bfd) return true;  // stp x29, x30, [sp, ...]
  }
  return false;
}

void CheckPlace(const ElfImage& image, VirtualAddress address, FileOffset offset) {
  Require(image.IsExecutable(address) && image.ToOffset(address) == offset && image.ToAddress(offset) == address);
  size_t loads = 0;
  for (const LoadSegment& segment : image.segments()) {
    loads += offset >= segment.offset && offset.value - segment.offset.value < segment.file_bytes ? 1 : 0;
  }
  Require(loads == 1 && offset.value < image.bytes().size());
}

void Check(const ElfImage& image, const ElfImage& debug, const RuntimeHooks& hooks) {
  std::vector<FileOffset> offsets;
  for (size_t i = 0; i < kHookKinds; ++i) {
    const HookPoints& points = hooks[static_cast<HookKind>(i)];
    if (!points.ok()) {
      Require(!points.status().message().empty());
      continue;
    }
    Require(!points->empty() && points->size() <= 2);
    for (const HookPoint& point : *points) {
      Require(static_cast<size_t>(point.kind) == i && !point.evidence.empty());
      CheckPlace(image, point.address, point.offset);
      Require(IsFunctionStart(image, debug, point.address));
      Require(HasPrologue(image.machine(), image.bytes().subspan(point.offset.value)));
      offsets.push_back(point.offset);
    }
  }
  std::sort(offsets.begin(), offsets.end());
  Require(std::adjacent_find(offsets.begin(), offsets.end()) == offsets.end());
  if (hooks.jit_return.ok()) {
    const bool x64 = image.machine() == ElfMachine::kX64;
    const HookPoint& method = hooks[HookKind::kCompileMethod]->front();
    Require(hooks.jit_return->offset.value - method.offset.value == (x64 ? 0xa0 : 0xa8));
    CheckPlace(image, hooks.jit_return->address, hooks.jit_return->offset);
    const auto code = image.bytes().subspan(hooks.jit_return->offset.value);
    Require(x64 ? LoadAt<uint16_t>(code, 0) == 0x0d75 : LoadAt<uint32_t>(code, 0) == 0x540000c1);
  } else {
    Require(!hooks.jit_return.status().message().empty());
  }
  if (hooks.gc_settings.ok()) Require(!hooks.gc_settings->empty() && hooks.gc_settings->size() <= 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto image = ElfImage::Parse({reinterpret_cast<const std::byte*>(data) + 1, size - 1});
  if (!image.ok()) return 0;
  HookImages images;
  if ((data[0] & 1) == 0) images.runtime = &*image;
  if ((data[0] & 2) != 0) images.runtime_debug = &*image;
  if ((data[0] & 5) != 0) images.jit = images.jit_debug = &*image;
  Check(*image, *image, LocateHooks(images));
  return 0;
}
