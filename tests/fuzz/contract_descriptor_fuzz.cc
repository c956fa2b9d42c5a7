// A runtime's own description: the header of the descriptor, and its JSON.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/runtime/contract_descriptor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto require = [](bool condition) {
    if (!condition) __builtin_trap();
  };
  if (const auto header = clrsampler::ContractDescriptorHeader::Parse(bytes); header.ok()) {
    require(header->json_bytes <= clrsampler::ContractDescriptorHeader::kMaxJsonBytes);
    require(header->pointers <= clrsampler::ContractDescriptorHeader::kMaxPointers);
  }
  const std::vector<uint64_t> pointers(size % 30, 0x7F0000000000);
  const auto descriptor = clrsampler::ContractDescriptor::Parse(clrsampler::AsText(bytes), pointers);
  if (!descriptor.ok()) return 0;
  for (const char* type : {"MethodTable", "MethodDesc", "Module", "RangeSection", ""}) {
    descriptor->Offset(type, "!");
    descriptor->Offset(type, "Module");
  }
  descriptor->Global("ExecutionManagerCodeRangeMapAddress");
  descriptor->VersionOf("Loader");
  return 0;
}
