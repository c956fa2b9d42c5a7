#include "formats/runtime/contract_descriptor.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kDescriptorMagic("DNCCDAC\0", 8);
constexpr uint32_t kFlagValid = 1, kFlag32Bit = 2;  // bit 0 is always set

// Numbers stand as numbers or as texts ("0xc", "42").
std::optional<uint64_t> Number(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer()) {
    const int64_t number = value.get<int64_t>();
    if (number < 0) return std::nullopt;
    return static_cast<uint64_t>(number);
  }
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  uint64_t number = 0;
  absl::string_view digits = text;
  if (absl::ConsumePrefix(&digits, "0x")) {
    return absl::SimpleHexAtoi(digits, &number) ? std::optional<uint64_t>(number) : std::nullopt;
  }
  return absl::SimpleAtoi(digits, &number) ? std::optional<uint64_t>(number) : std::nullopt;
}

// "Field": 16, or "Field": [16, "type"].
std::optional<uint32_t> FieldOffset(const Json& value) {
  const std::optional<uint64_t> number = Number(value.is_array() && !value.empty() ? value[0] : value);
  if (!number || *number > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

std::optional<ContractVersion> VersionIn(const Json& value) {
  if (value.is_string()) {
    absl::string_view text = value.get_ref<const std::string&>();
    ContractVersion version{.is_text = true};
    if (absl::ConsumePrefix(&text, "c")) {
      return absl::SimpleAtoi(text, &version.number) ? std::optional(version) : std::nullopt;
    }
  }
  const std::optional<uint32_t> number = FieldOffset(value);
  return number ? std::optional(ContractVersion{.is_text = false, .number = *number}) : std::nullopt;
}

// A value, [value, "type"], [index] or [[index], "type"]. An index is one into the table of pointers.
std::optional<uint64_t> GlobalValue(const Json& value, std::span<const uint64_t> pointers) {
  if (!value.is_array()) return Number(value);
  if (value.empty()) return std::nullopt;
  const Json* index = nullptr;
  if (value[0].is_array()) {
    if (value[0].size() != 1) return std::nullopt;
    index = &value[0][0];
  } else if (value.size() == 1) {
    index = &value[0];
  } else {
    return Number(value[0]);
  }
  const std::optional<uint64_t> at = Number(*index);
  if (!at || *at >= pointers.size()) return std::nullopt;
  return pointers[*at];
}

const Json* ObjectAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_object() ? nullptr : &*found;
}

template <typename Map>
auto Find(const Map& map, absl::string_view key) -> std::optional<typename Map::mapped_type> {
  const auto found = map.find(std::string_view(key.data(), key.size()));
  if (found == map.end()) return std::nullopt;
  return found->second;
}

}  // namespace

absl::StatusOr<ContractDescriptorHeader> ContractDescriptorHeader::Parse(std::span<const std::byte> bytes) {
  if (bytes.size() < kBytes || AsText(bytes.first(kDescriptorMagic.size())) != kDescriptorMagic) {
    return absl::DataLossError("no contract descriptor");
  }
  const uint32_t flags = *LoadAt<uint32_t>(bytes, 8);
  if ((flags & kFlagValid) == 0 || (flags & kFlag32Bit) != 0) {
    return absl::DataLossError(absl::StrCat("a contract descriptor with flags ", flags));
  }
  ContractDescriptorHeader header;
  header.json_bytes = *LoadAt<uint32_t>(bytes, 12);
  header.json_address = *LoadAt<uint64_t>(bytes, 16);
  header.pointers = *LoadAt<uint32_t>(bytes, 24);
  header.pointers_address = *LoadAt<uint64_t>(bytes, 32);
  if (header.json_bytes > kMaxJsonBytes || header.pointers > kMaxPointers) {
    return absl::DataLossError("a contract descriptor of an impossible size");
  }
  return header;
}

absl::StatusOr<ContractDescriptor> ContractDescriptor::Parse(absl::string_view json,
                                                             std::span<const uint64_t> pointers) {
  // Comments are allowed: the specification calls the format JSON with comments.
  const Json root =
      Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (!root.is_object()) return absl::DataLossError("the contract descriptor is not JSON");
  if (const auto form = root.find("version"); form != root.end()) {
    const std::optional<uint64_t> number = Number(*form);
    if (!number || *number > kNewestVersion) {
      return absl::UnimplementedError(absl::StrCat("its contract descriptor has version ",
                                                   number ? absl::StrCat(*number) : "that is no number",
                                                   ", the newest that is known is ", kNewestVersion));
    }
  }
  const Json* types = ObjectAt(root, "types");
  if (types == nullptr) return absl::DataLossError("the contract descriptor has no types");
  ContractDescriptor descriptor;
  for (const auto& [name, fields] : types->items()) {
    if (!fields.is_object()) continue;
    auto& offsets = descriptor.types_[name];
    for (const auto& [field, value] : fields.items()) {
      if (const std::optional<uint32_t> offset = FieldOffset(value)) offsets[field] = *offset;
    }
  }
  if (const Json* globals = ObjectAt(root, "globals")) {
    for (const auto& [name, value] : globals->items()) {
      if (const std::optional<uint64_t> number = GlobalValue(value, pointers)) descriptor.globals_[name] = *number;
    }
  }
  if (const Json* contracts = ObjectAt(root, "contracts")) {
    for (const auto& [name, value] : contracts->items()) {
      if (const std::optional<ContractVersion> version = VersionIn(value)) descriptor.contracts_[name] = *version;
    }
  }
  return descriptor;
}

std::optional<uint32_t> ContractDescriptor::Offset(absl::string_view type, absl::string_view field) const {
  const auto found = types_.find(std::string_view(type.data(), type.size()));
  if (found == types_.end()) return std::nullopt;
  return Find(found->second, field);
}

std::optional<uint64_t> ContractDescriptor::Global(absl::string_view name) const { return Find(globals_, name); }

std::string ContractVersion::Text() const { return absl::StrCat(is_text ? "c" : "", number); }

std::optional<ContractVersion> ContractDescriptor::VersionOf(absl::string_view contract) const {
  return Find(contracts_, contract);
}

}  // namespace clrsampler
