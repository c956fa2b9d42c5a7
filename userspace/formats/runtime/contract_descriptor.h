// The description of a .NET runtime for tools: offsets of the fields of its structures, as a symbol of the runtime.
//
// Layout: dotnet/runtime docs/design/datacontracts/contract-descriptor.md and data_descriptor.md ("compact" JSON form);
// seen on 9.0.19, 10.0.12, 10.0.14 and 11.0.0. Pure: the caller brings the bytes.
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
  static constexpr uint32_t kMaxJsonBytes = 1 << 20;  // 11.0.0 has 17,396
  static constexpr uint32_t kMaxPointers = 1024;      // 11.0.0 has 46

  uint32_t json_bytes = 0;
  uint64_t json_address = 0;
  uint32_t pointers = 0;
  uint64_t pointers_address = 0;

  // DataLoss: not a descriptor of a 64-bit little-endian runtime, or one larger than the limits above.
  static absl::StatusOr<ContractDescriptorHeader> Parse(std::span<const std::byte> bytes);
};

// 9 and 10 number the versions of a contract: 1, 2. 11 began anew with texts: "c1", which is another one than 1.
struct ContractVersion {
  bool is_text = false;
  uint32_t number = 0;
  friend bool operator==(const ContractVersion&, const ContractVersion&) = default;
  std::string Text() const;  // as the runtime writes it
};

class ContractDescriptor {
 public:
  // The newest form of the whole text that is read here: 0 on 9 and 10, 2 on 11.
  static constexpr uint32_t kNewestVersion = 2;

  // DataLoss: not this form of JSON. Unimplemented: newer than kNewestVersion. A part inside that is not understood
  // (new kinds of values) is left out.
  static absl::StatusOr<ContractDescriptor> Parse(absl::string_view json, std::span<const uint64_t> pointers);

  // In bytes from the start of the structure; of the field "!", its size. nullopt: the runtime does not say.
  std::optional<uint32_t> Offset(absl::string_view type, absl::string_view field) const;
  // A number, or the address of the runtime's variable.
  std::optional<uint64_t> Global(absl::string_view name) const;
  // nullopt: the runtime has no such contract, or its version is written in another way.
  std::optional<ContractVersion> VersionOf(absl::string_view contract) const;

 private:
  std::map<std::string, std::map<std::string, uint32_t, std::less<>>, std::less<>> types_;  // size under "!"
  std::map<std::string, uint64_t, std::less<>> globals_;
  std::map<std::string, ContractVersion, std::less<>> contracts_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_CONTRACT_DESCRIPTOR_H_
