#include "clr/memory/write_barriers.h"

#include <algorithm>
#include <array>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr std::byte operator""_b(unsigned long long value) { return static_cast<std::byte>(value); }

constexpr std::array kStore = {0x48_b, 0x89_b, 0x37_b};  // mov [rdi], rsi
constexpr std::array kPlaceholder = {0xf0_b, 0xf0_b, 0xf0_b, 0xf0_b, 0xf0_b, 0xf0_b, 0xf0_b, 0xf0_b};
constexpr std::byte kRegionShift = 0x16_b;
constexpr size_t kMaxBarriers = 64;
constexpr size_t kMaxPlaceholders = 1024;  // libcoreclr.so has 58

// shr r64, imm8: REX.W, C1, a ModRM byte that names a register and /5.
bool IsShift(std::span<const std::byte> code) {
  return (code[0] & 0xfe_b) == 0x48_b && code[1] == 0xc1_b && (code[2] & 0xf8_b) == 0xe8_b && code[3] == kRegionShift;
}

// The stores of references in barriers of arm64, whose operands have registers of their own: stlr x15, [x14];
// str x15, [x14], #8; str x15, [x14]; and the load ldr x15, [x13], #8.
constexpr uint32_t kArm64Stores[] = {0xc89ffdcf, 0xf80085cf, 0xf90001cf, 0xf84085af};

// Whether a function of arm64 calls nothing and keeps no frame. Compiled functions use these registers, too.
bool IsLeafThatLoads(std::span<const std::byte> code) {
  for (size_t at = 0; at + 4 <= code.size(); at += 4) {
    const uint32_t instruction = *LoadAt<uint32_t>(code, at);
    const bool call = (instruction & 0xfc000000) == 0x94000000, frame = (instruction & 0xfe407fff) == 0xa8007bfd;
    if (call || frame) return false;
  }
  return true;
}

std::vector<std::byte> MaskOf(std::span<const std::byte> code) {
  std::vector<std::byte> mask(code.size(), 0xff_b);
  for (size_t i = 0; i < code.size(); ++i) {
    const auto rest = code.subspan(i);
    if (rest.size() >= kPlaceholder.size() && std::ranges::equal(rest.first<kPlaceholder.size()>(), kPlaceholder)) {
      std::fill_n(mask.begin() + static_cast<ptrdiff_t>(i), kPlaceholder.size(), 0_b);
    }
    if (rest.size() >= 4 && IsShift(rest)) mask[i + 3] = 0_b;
  }
  return mask;
}

// The functions around rising addresses, each once.
class FunctionOnce {
 public:
  FunctionOnce(const ElfImage& image, const EhFrameTable& functions) : image_(image), functions_(functions) {}

  // Empty: there is none that was not there before, with a known size that a barrier may have.
  std::span<const std::byte> CodeAround(VirtualAddress address) {
    if (address < searched_) return {};
    const auto bounds = functions_.Find(address);
    if (!bounds.has_value() || !bounds->end_known) return {};
    searched_ = bounds->end;
    const uint64_t size = bounds->end.value - bounds->start.value;
    const auto code = image_.BytesFrom(bounds->start);
    if (size > WriteBarriers::kMaxBytes || !code.has_value() || code->size() < size) return {};
    return code->first(size);
  }

 private:
  const ElfImage& image_;
  const EhFrameTable& functions_;
  VirtualAddress searched_;  // up to here
};

struct BarrierCode {
  VirtualAddress start;
  std::span<const std::byte> bytes;
};
std::vector<BarrierCode> ExecutableBytes(const ElfImage& image) {
  std::vector<BarrierCode> code;
  for (const LoadSegment& segment : image.segments()) {
    if (!image.IsExecutable(segment.address)) continue;
    if (const auto bytes = image.BytesFrom(segment.address)) code.push_back({segment.address, *bytes});
  }
  return code;
}

}  // namespace

WriteBarriers::WriteBarriers(const ElfImage& image) {
  const auto functions = EhFrameTable::Parse(image);
  if (!functions.ok()) return;
  if (image.machine() == ElfMachine::kX64) FindX64(image, *functions);
  if (image.machine() == ElfMachine::kArm64) FindArm64(image, *functions);
}

void WriteBarriers::FindX64(const ElfImage& image, const EhFrameTable& functions) {
  size_t seen = 0;
  FunctionOnce next(image, functions);
  for (const auto& [start, bytes] : ExecutableBytes(image)) {
    auto at = bytes.begin();
    while ((at = std::search(at, bytes.end(), kPlaceholder.begin(), kPlaceholder.end())) != bytes.end()) {
      if (++seen > kMaxPlaceholders || barriers_.size() >= kMaxBarriers) return;
      const VirtualAddress address{start.value + static_cast<uint64_t>(at - bytes.begin())};
      at += kPlaceholder.size();
      const auto code = next.CodeAround(address);
      if (code.size() < kStore.size() || !std::ranges::equal(code.first<kStore.size()>(), kStore)) continue;
      barriers_.push_back({.code = {code.begin(), code.end()}, .mask = MaskOf(code)});
    }
  }
}

void WriteBarriers::FindArm64(const ElfImage& image, const EhFrameTable& functions) {
  constexpr uint32_t kInstructionBytes = 4;
  size_t seen = 0;
  FunctionOnce next(image, functions);
  for (const auto& [start, bytes] : ExecutableBytes(image)) {
    for (size_t at = 0; at + kInstructionBytes <= bytes.size(); at += kInstructionBytes) {
      if (std::ranges::find(kArm64Stores, *LoadAt<uint32_t>(bytes, at)) == std::end(kArm64Stores)) continue;
      if (++seen > kMaxPlaceholders || barriers_.size() >= kMaxBarriers) return;
      const VirtualAddress address{start.value + at};
      const auto code = next.CodeAround(address);
      if (code.empty() || !IsLeafThatLoads(code)) continue;
      barriers_.push_back({.code = {code.begin(), code.end()}, .mask = std::vector(code.size(), 0xff_b)});
    }
  }
}

std::optional<AddressRange> WriteBarriers::CopyAround(uint64_t address, std::span<const std::byte> memory,
                                                      uint64_t begin) const {
  if (address < begin || address - begin >= memory.size()) return std::nullopt;
  const size_t inside = address - begin;
  for (size_t start = inside - std::min(inside, kMaxBytes - 1); start <= inside; ++start) {
    const auto there = memory.subspan(start);
    for (const Barrier& barrier : barriers_) {
      const size_t size = barrier.code.size();
      if (inside - start >= size || there.size() < size) continue;
      size_t same = 0;
      while (same < size && (there[same] & barrier.mask[same]) == (barrier.code[same] & barrier.mask[same])) ++same;
      if (same == size) return AddressRange{begin + start, begin + start + size};
    }
  }
  return std::nullopt;
}

}  // namespace clrsampler
