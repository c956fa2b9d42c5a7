// What a .NET runtime says of itself to tools: offsets of the fields of its structures, as a symbol of the runtime.
//
// Layout: dotnet/runtime docs/design/datacontracts/contract-descriptor.md and data_descriptor.md ("compact" JSON form);
// seen on 9.0.19, 10.0.12 and 10.0.14. Pure: the caller brings the bytes.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_CONTRACT_DESCRIPTOR_H_
#define CLRSAMPLER_FORMATS_RUNTIME_CONTRACT_DESCRIPTOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// The symbol DotNetRuntimeContractDescriptor: where the JSON text and the pointers are that it refers to.
struct ContractDescriptorHeader {
  static constexpr size_t kBytes = 40;
  static constexpr uint32_t kMaxJsonBytes = 1 << 20;  // 10.0.14 has 10,563
  static constexpr uint32_t kMaxPointers = 1024;      // 10.0.14 has 24

  uint32_t json_bytes = 0;
  uint64_t json_address = 0;
  uint32_t pointers = 0;
  uint64_t pointers_address = 0;

  // DataLoss: not a descriptor of a 64-bit little-endian runtime, or one larger than the limits above.
  static absl::StatusOr<ContractDescriptorHeader> Parse(std::span<const std::byte> bytes);
};

class ContractDescriptor {
 public:
  // DataLoss: not this form of JSON. What is not understood inside (new kinds of values) is left out.
  static absl::StatusOr<ContractDescriptor> Parse(absl::string_view json, std::span<const uint64_t> pointers);

  // In bytes from the start of the structure. nullopt: the runtime does not say.
  std::optional<uint32_t> Offset(absl::string_view type, absl::string_view field) const;
  std::optional<uint32_t> SizeOf(absl::string_view type) const;
  // A number, or the address of the runtime's variable.
  std::optional<uint64_t> Global(absl::string_view name) const;
  std::optional<uint32_t> ContractVersion(absl::string_view name) const;

 private:
  std::map<std::string, std::map<std::string, uint32_t, std::less<>>, std::less<>> types_;  // size under "!"
  std::map<std::string, uint64_t, std::less<>> globals_;
  std::map<std::string, uint32_t, std::less<>> contracts_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_CONTRACT_DESCRIPTOR_H_
