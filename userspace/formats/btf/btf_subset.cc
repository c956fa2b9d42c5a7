#include "formats/btf/btf_subset.h"

#include <bitset>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint16_t kMagic = 0xEB9F;
constexpr uint32_t kHeaderBytes =
    24;                              // magic, version, flags; length of the header; offset and length of both sections
constexpr uint32_t kTypeBytes = 12;  // name, info, size or type
constexpr size_t kMaxNameBytes = 512;  // KSYM_NAME_LEN; names of damaged BTF may overlap

// BTF_KIND_*, include/uapi/linux/btf.h
enum Kind : uint32_t {
  kInt = 1,
  kPointer = 2,
  kArray = 3,
  kStruct = 4,
  kUnion = 5,
  kEnum = 6,
  kForward = 7,
  kTypedef = 8,
  kVolatile = 9,
  kConst = 10,
  kRestrict = 11,
  kFunction = 12,
  kPrototype = 13,
  kVariable = 14,
  kSection = 15,
  kFloat = 16,
  kDeclarationTag = 17,
  kTypeTag = 18,
  kEnum64 = 19,
};

// Bytes behind the three words of a type; nullopt: a kind from the future.
std::optional<uint64_t> TailBytes(uint32_t kind, uint64_t count) {
  switch (kind) {
    case kInt:
    case kVariable:
    case kDeclarationTag:
      return 4;
    case kArray:
      return 12;
    case kStruct:
    case kUnion:
    case kSection:
    case kEnum64:
      return 12 * count;
    case kEnum:
    case kPrototype:
      return 8 * count;
    case kPointer:
    case kForward:
    case kTypedef:
    case kVolatile:
    case kConst:
    case kRestrict:
    case kFunction:
    case kFloat:
    case kTypeTag:
      return 0;
    default:
      return std::nullopt;
  }
}

bool IsStartOfRelocations(uint32_t kind) {
  return kind == kStruct || kind == kUnion || kind == kEnum || kind == kEnum64 || kind == kTypedef;
}

absl::string_view WithoutFlavor(absl::string_view name) { return name.substr(0, name.find("___")); }

// One type: its words in place.
struct Type {
  std::span<const std::byte> bytes;

  // Inside by construction.
  uint32_t Word(size_t index) const {
    uint32_t word;
    std::memcpy(&word, bytes.data() + 4 * index, sizeof word);
    return word;
  }
  uint32_t name() const { return Word(0); }
  uint32_t kind() const { return Word(1) >> 24 & 0x1F; }
  uint32_t count() const { return Word(1) & 0xFFFF; }
};

class Btf {
 public:
  static absl::StatusOr<Btf> Parse(std::span<const std::byte> bytes) {
    const std::optional<uint16_t> magic = LoadAt<uint16_t>(bytes, 0);
    if (!magic || bytes.size() < kHeaderBytes || *magic != kMagic) return absl::DataLossError("no BTF of this machine");
    const uint64_t header = *LoadAt<uint32_t>(bytes, 4);
    Btf btf;
    const auto types = SliceAt(bytes, header + *LoadAt<uint32_t>(bytes, 8), *LoadAt<uint32_t>(bytes, 12));
    const auto names = SliceAt(bytes, header + *LoadAt<uint32_t>(bytes, 16), *LoadAt<uint32_t>(bytes, 20));
    if (!types || !names) return absl::DataLossError("a section of BTF lies outside of it");
    btf.types_ = *types;
    btf.names_ = *names;
    constexpr size_t kUsualBytes = 20;  // of a type
    btf.offsets_.reserve(types->size() / kUsualBytes);
    btf.offsets_.push_back(0);  // void
    for (uint64_t at = 0; at < types->size();) {
      const auto head = SliceAt(*types, at, kTypeBytes);
      if (!head) return absl::DataLossError("a type of BTF is cut off");
      const std::optional<uint64_t> tail = TailBytes(Type{*head}.kind(), Type{*head}.count());
      if (!tail) return absl::UnimplementedError(absl::StrCat("BTF has types of kind ", Type{*head}.kind()));
      if (types->size() - at - kTypeBytes < *tail) return absl::DataLossError("a type of BTF is cut off");
      btf.offsets_.push_back(static_cast<uint32_t>(at));
      at += kTypeBytes + *tail;
    }
    return btf;
  }

  uint32_t size() const { return static_cast<uint32_t>(offsets_.size()); }  // with void

  // `id` is above 0 and below size().
  Type At(uint32_t id) const {
    const uint64_t end = id + 1 < size() ? offsets_[id + 1] : types_.size();
    return Type{types_.subspan(offsets_[id], end - offsets_[id])};
  }

  // Empty: none, or outside.
  absl::string_view Name(uint32_t offset) const { return TextAt(names_, offset, kMaxNameBytes).value_or(""); }
  uint8_t FirstLetter(uint32_t offset) const { return LoadAt<uint8_t>(names_, offset).value_or(0); }

 private:
  std::span<const std::byte> types_, names_;
  std::vector<uint32_t> offsets_;  // by id
};

// Copies types one after the other under new numbers, and with each what it holds.
class Subset {
 public:
  explicit Subset(const Btf& btf) : btf_(btf), names_(1, '\0') {}

  // The new number of a type. 0, which is void, stands for types that are never a part of another type.
  uint32_t Take(uint32_t id) {
    if (id == 0 || id >= btf_.size()) return 0;
    const uint32_t kind = btf_.At(id).kind();
    if (kind == kForward || kind == kFunction || kind == kPrototype || kind == kVariable || kind == kSection ||
        kind == kDeclarationTag) {
      return 0;
    }
    const auto [known, fresh] = numbers_.try_emplace(id, static_cast<uint32_t>(taken_.size() + 1));
    if (fresh) taken_.push_back(id);
    return known->second;
  }

  std::vector<std::byte> Finish() {
    for (size_t i = 0; i < taken_.size(); ++i) Copy(btf_.At(taken_[i]));  // which takes more
    std::vector<uint32_t> header = {kMagic | 1u << 16,
                                    kHeaderBytes,
                                    0,
                                    static_cast<uint32_t>(types_.size() * 4),
                                    static_cast<uint32_t>(types_.size() * 4),
                                    static_cast<uint32_t>(names_.size())};
    std::vector<std::byte> out(kHeaderBytes + types_.size() * 4 + names_.size());
    std::memcpy(out.data(), header.data(), kHeaderBytes);
    if (!types_.empty()) std::memcpy(out.data() + kHeaderBytes, types_.data(), types_.size() * 4);
    std::memcpy(out.data() + kHeaderBytes + types_.size() * 4, names_.data(), names_.size());
    return out;
  }

 private:
  void Copy(Type type) {
    const uint32_t kind = type.kind();
    types_.push_back(CopyName(type.name()));
    types_.push_back(type.Word(1));
    switch (kind) {
      case kPointer:
        types_.push_back(0);
        return;
      case kTypedef:
      case kVolatile:
      case kConst:
      case kRestrict:
      case kTypeTag:
        types_.push_back(Take(type.Word(2)));
        return;
      default:
        types_.push_back(type.Word(2));  // a size
    }
    switch (kind) {
      case kArray:
        types_.insert(types_.end(), {Take(type.Word(3)), Take(type.Word(4)), type.Word(5)});
        return;
      case kStruct:
      case kUnion:
        for (uint32_t i = 0; i < type.count(); ++i) {
          types_.insert(types_.end(),
                        {CopyName(type.Word(3 + 3 * i)), Take(type.Word(4 + 3 * i)), type.Word(5 + 3 * i)});
        }
        return;
      case kEnum:
        for (uint32_t i = 0; i < type.count(); ++i) {
          types_.insert(types_.end(), {CopyName(type.Word(3 + 2 * i)), type.Word(4 + 2 * i)});
        }
        return;
      case kEnum64:
        for (uint32_t i = 0; i < type.count(); ++i) {
          types_.insert(types_.end(), {CopyName(type.Word(3 + 3 * i)), type.Word(4 + 3 * i), type.Word(5 + 3 * i)});
        }
        return;
      case kInt:
        types_.push_back(type.Word(3));
        return;
      default:  // a float
        return;
    }
  }

  uint32_t CopyName(uint32_t offset) {
    const absl::string_view name = btf_.Name(offset);
    if (name.empty()) return 0;
    const auto [known, fresh] = name_offsets_.try_emplace(offset, static_cast<uint32_t>(names_.size()));
    if (fresh) absl::StrAppend(&names_, name, absl::string_view("\0", 1));
    return known->second;
  }

  const Btf& btf_;
  std::vector<uint32_t> taken_;                           // old numbers in the order of the new ones
  absl::flat_hash_map<uint32_t, uint32_t> numbers_;       // new by old
  absl::flat_hash_map<uint32_t, uint32_t> name_offsets_;  // new by old
  std::vector<uint32_t> types_;
  std::string names_;
};

}  // namespace

absl::StatusOr<absl::flat_hash_set<std::string>> BtfTypeNames(std::span<const std::byte> btf) {
  ASSIGN_OR_RETURN(const Btf types, Btf::Parse(btf));
  absl::flat_hash_set<std::string> names;
  for (uint32_t id = 1; id < types.size(); ++id) {
    const Type type = types.At(id);
    if (!IsStartOfRelocations(type.kind())) continue;
    if (const absl::string_view name = WithoutFlavor(types.Name(type.name())); !name.empty()) names.emplace(name);
  }
  return names;
}

absl::StatusOr<std::vector<std::byte>> BtfSubset(std::span<const std::byte> btf,
                                                 const absl::flat_hash_set<std::string>& names) {
  ASSIGN_OR_RETURN(const Btf types, Btf::Parse(btf));
  std::bitset<256> beginnings;  // the first letter tells most of the kernel's names from ours
  for (const std::string& name : names) beginnings.set(static_cast<unsigned char>(name[0]));
  Subset subset(types);
  for (uint32_t id = 1; id < types.size(); ++id) {
    const Type type = types.At(id);
    if (!IsStartOfRelocations(type.kind())) continue;
    if (!beginnings[types.FirstLetter(type.name())]) continue;
    const absl::string_view name = types.Name(type.name());
    if (names.contains(WithoutFlavor(name))) subset.Take(id);
  }
  return subset.Finish();
}

}  // namespace clrsampler
