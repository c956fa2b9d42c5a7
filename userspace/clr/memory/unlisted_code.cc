#include "clr/memory/unlisted_code.h"

#include <algorithm>
#include <array>
#include <span>

#include "clr/memory/stub_code.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxBuilds = 64;  // 4 KB each

// The bytes that have to be in memory on either side of an address.
constexpr size_t kAround = std::max(WriteBarriers::kMaxBytes, kMaxStubBytes + kStubHeaderBytes);

}  // namespace

std::optional<UnlistedCode::Found> UnlistedCode::Find(const Process& process, const Mapping& image,
                                                      const std::string& build, RuntimeMemory& runtime,
                                                      const Mapping& mapping, uint64_t address) {
  main_loop_.Check();
  const uint64_t begin = std::max(mapping.start, address - std::min<uint64_t>(address, kAround));
  const uint64_t end = std::min(mapping.end, begin + 2 * kAround);
  if (end <= begin) return std::nullopt;
  std::array<std::byte, 2 * kAround> buffer;
  const std::span<std::byte> bytes = std::span(buffer).first(end - begin);
  if (!runtime.memory().Read(begin, bytes)) return std::nullopt;
  if (const auto stub = StubCodeAround(runtime.layout().machine, address, bytes, begin); stub.has_value()) {
    return Found{.range = stub->range, .kind = stub->kind};
  }
  const WriteBarriers* barriers = BarriersOf(process, image, build);
  if (barriers == nullptr) return std::nullopt;
  const std::optional<AddressRange> copy = barriers->CopyAround(address, bytes, begin);
  if (!copy.has_value()) return std::nullopt;
  return Found{.range = *copy, .kind = "WriteBarrier", .permanent = true};
}

const WriteBarriers* UnlistedCode::BarriersOf(const Process& process, const Mapping& image, const std::string& build) {
  if (const auto known = barriers_.find(build); known != barriers_.end()) return known->second.get();
  const auto file = images_.Get(process, image);
  if (!file.ok()) return nullptr;  // not remembered: another process may be allowed to open it
  auto barriers = std::make_unique<const WriteBarriers>();
  if (const auto parsed = ElfImage::Parse((*file)->bytes()); parsed.ok()) {
    barriers = std::make_unique<const WriteBarriers>(*parsed);
  }
  if (barriers_.size() >= kMaxBuilds) barriers_.clear();
  return (barriers_[build] = std::move(barriers)).get();
}

}  // namespace clrsampler
