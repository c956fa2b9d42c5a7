#include "inprocess/names.h"

#include <cstring>

namespace clrsampler {
namespace {

// Longer names are cut, and types that are nested deeper lose their outer ones.
constexpr uint32_t kNameUnits = 256;
constexpr int kMaxNesting = 8;
constexpr int kMaxArrayRanks = 4;
constexpr uint32_t kVisibilityMask = 0x7;  // of a type's attributes (ECMA-335 II.23.1.15); 2 and more are nested
constexpr uint32_t kFirstNested = 2;

// Counts of the metadata interface include the closing NUL, and are those of the whole name.
size_t UnitsOfName(uint32_t count) { return count == 0 ? 0 : (count > kNameUnits ? kNameUnits : count) - 1; }

// The metadata of a module, given back at the end.
class Metadata {
 public:
  Metadata(void* info, RuntimeId module) {
    constexpr uint32_t kRead = 0;
    if (CallSlot(info, kGetModuleMetaData, module, kRead, &kMetadataInterface, &import_) != kOk) import_ = nullptr;
  }
  ~Metadata() {
    if (import_ != nullptr) CallSlot(import_, kRelease);
  }
  Metadata(const Metadata&) = delete;
  Metadata& operator=(const Metadata&) = delete;

  bool valid() const { return import_ != nullptr; }

  void NameType(MetadataToken type, NameBuffer& name) const {
    MetadataToken chain[kMaxNesting];
    int depth = 0;
    for (; depth < kMaxNesting; ++depth) {
      chain[depth] = type;
      uint32_t attributes = 0;
      char16_t units[1];
      uint32_t count = 0;
      MetadataToken base = 0;
      if (!Succeeded(CallSlot(import_, kGetTypeDefProps, type, units, uint32_t{1}, &count, &attributes, &base))) break;
      if ((attributes & kVisibilityMask) < kFirstNested) break;
      if (!Succeeded(CallSlot(import_, kGetNestedClassProps, type, &type))) break;
    }
    if (depth == kMaxNesting) --depth;
    for (; depth >= 0; --depth) {
      AppendType(chain[depth], name);
      if (depth > 0) name.Append("+");
    }
  }

  void NameMethod(MetadataToken method, FunctionName& name) const {
    MetadataToken type = 0;
    char16_t units[kNameUnits];
    uint32_t count = 0, attributes = 0, signature_bytes = 0, address = 0, flags = 0;
    const void* signature = nullptr;
    if (!Succeeded(CallSlot(import_, kGetMethodProps, method, &type, units, kNameUnits, &count, &attributes, &signature,
                            &signature_bytes, &address, &flags))) {
      return;
    }
    NameType(type, name.type);
    name.method.Append(units, UnitsOfName(count));
  }

 private:
  void AppendType(MetadataToken type, NameBuffer& name) const {
    char16_t units[kNameUnits];
    uint32_t count = 0, attributes = 0;
    MetadataToken base = 0;
    if (Succeeded(CallSlot(import_, kGetTypeDefProps, type, units, kNameUnits, &count, &attributes, &base))) {
      name.Append(units, UnitsOfName(count));
    }
  }

  void* import_ = nullptr;
};

// CorElementType (ECMA-335 II.23.1.16): those that an array can have of itself.
const char* PrimitiveName(uint32_t element) {
  switch (element) {
    case 0x02:
      return "System.Boolean";
    case 0x03:
      return "System.Char";
    case 0x04:
      return "System.SByte";
    case 0x05:
      return "System.Byte";
    case 0x06:
      return "System.Int16";
    case 0x07:
      return "System.UInt16";
    case 0x08:
      return "System.Int32";
    case 0x09:
      return "System.UInt32";
    case 0x0a:
      return "System.Int64";
    case 0x0b:
      return "System.UInt64";
    case 0x0c:
      return "System.Single";
    case 0x0d:
      return "System.Double";
    case 0x18:
      return "System.IntPtr";
    case 0x19:
      return "System.UIntPtr";
    default:
      return "";
  }
}

}  // namespace

void NameBuffer::Append(const char16_t* units, size_t count) {
  const size_t room = kMaxInprocessTextUnits - count_;
  if (count > room) count = room;
  if (count != 0) std::memcpy(units_ + count_, units, count * sizeof *units);
  count_ = static_cast<uint16_t>(count_ + count);
}

void NameBuffer::Append(const char* ascii) {
  for (; *ascii != '\0' && count_ < kMaxInprocessTextUnits; ++ascii) {
    units_[count_++] = static_cast<unsigned char>(*ascii);
  }
}

void NameFunction(void* info, RuntimeId function, FunctionName& name) {
  RuntimeId type = 0;
  uint32_t arguments = 0;
  const Hresult found = CallSlot(info, kGetFunctionInfo2, function, RuntimeId{0}, &type, &name.module, &name.token,
                                 uint32_t{0}, &arguments, static_cast<RuntimeId*>(nullptr));
  if (!Succeeded(found) || name.token == 0) return NameDynamicFunction(info, function, name);
  const Metadata metadata(info, name.module);
  if (metadata.valid()) metadata.NameMethod(name.token, name);
}

void NameDynamicFunction(void* info, RuntimeId function, FunctionName& name) {
  char16_t units[kNameUnits];
  uint32_t count = 0, signature_bytes = 0;
  const void* signature = nullptr;
  if (Succeeded(CallSlot(info, kGetDynamicFunctionInfo, function, &name.module, &signature, &signature_bytes,
                         kNameUnits, &count, units))) {
    name.method.Append(units, UnitsOfName(count));
  }
}

void NameClass(void* info, RuntimeId type, NameBuffer& name) {
  int ranks = 0;
  for (; ranks <= kMaxArrayRanks; ++ranks) {
    RuntimeId module = 0, parent = 0;
    MetadataToken token = 0;
    uint32_t arguments = 0;
    const Hresult found = CallSlot(info, kGetClassIDInfo2, type, &module, &token, &parent, uint32_t{0}, &arguments,
                                   static_cast<RuntimeId*>(nullptr));
    if (found != kIsArray) {
      const Metadata metadata(info, module);
      if (Succeeded(found) && metadata.valid()) metadata.NameType(token, name);
      break;
    }
    uint32_t element = 0, rank = 0;
    RuntimeId element_type = 0;
    if (CallSlot(info, kIsArrayClass, type, &element, &element_type, &rank) != kOk) return;
    if (element_type == 0) {
      name.Append(PrimitiveName(element));
      ++ranks;
      break;
    }
    type = element_type;
  }
  for (; ranks > 0; --ranks) name.Append("[]");
}

}  // namespace clrsampler
