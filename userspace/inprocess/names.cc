#include "inprocess/names.h"

#include <cstring>

namespace clrsampler {
namespace {

// The room that is tried first. Nearly all names are shorter.
constexpr uint32_t kNameUnits = 256;
constexpr int kMaxNesting = 8;
// An array of arrays of more levels has no name.
constexpr int kMaxArrays = 8;
constexpr uint32_t kMaxRank = 32;  // of the runtime (ECMA-335 I.8.9.1)
// As long as paths may be. The longest name that is asked for. Names of metadata have less than 1024.
constexpr uint32_t kLongNameUnits = 4096;
constexpr uint32_t kVisibilityMask = 0x7;  // of a type's attributes (ECMA-335 II.23.1.15); 2 and more are nested
constexpr uint32_t kFirstNested = 2;

constexpr char16_t kCut = u'\u2026';

// Asks for a name with room for so many units, the closing NUL among them. How many it takes; a name without that room
// is left alone, since the runtime gives a part of it or nothing. Not inlined, so that only long names take a long
// buffer's room on the stack.
template <uint32_t kUnits, typename Ask>
[[gnu::noinline]] uint32_t AppendWhole(Ask& ask, Keep keep, NameBuffer& name) {
  char16_t units[kUnits];
  uint32_t count = 0;
  if (!Succeeded(ask(kUnits, &count, units)) || count == 0 || count > kUnits) return count;
  // For types the runtime counts UTF-8 bytes.
  size_t length = 0;
  while (length < count - 1 && units[length] != 0) ++length;
  name.AppendCut(units, length, keep);
  return count;
}

template <typename Ask>
void AppendShortOrLong(Ask ask, Keep keep, NameBuffer& name) {
  if (AppendWhole<kNameUnits>(ask, keep, name) > kNameUnits) AppendWhole<kLongNameUnits>(ask, keep, name);
}

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
    bool outermost = false;
    while (depth < kMaxNesting && !outermost) {
      chain[depth++] = type;
      uint32_t attributes = 0;
      char16_t units[1];
      uint32_t count = 0;
      MetadataToken base = 0;
      if (!Succeeded(CallSlot(import_, kGetTypeDefProps, type, units, uint32_t{1}, &count, &attributes, &base))) break;
      outermost = (attributes & kVisibilityMask) < kFirstNested;
      if (!outermost && !Succeeded(CallSlot(import_, kGetNestedClassProps, type, &type))) break;
    }
    NameBuffer nest;
    if (!outermost) nest.Append(&kCut, 1);
    while (depth > 0) {
      if (!nest.empty()) nest.Append("+");
      if (!AppendType(chain[--depth], nest)) return;
    }
    name = nest;
  }

  void NameMethod(MetadataToken method, FunctionName& name) const {
    MetadataToken type = 0;
    const auto ask = [&](uint32_t room, uint32_t* count, char16_t* units) {
      uint32_t attributes = 0, signature_bytes = 0, address = 0, flags = 0;
      const void* signature = nullptr;
      return CallSlot(import_, kGetMethodProps, method, &type, units, room, count, &attributes, &signature,
                      &signature_bytes, &address, &flags);
    };
    AppendShortOrLong(ask, Keep::kBoth, name.method);
    if (type != 0) NameType(type, name.type);
  }

 private:
  // False: it has no name.
  bool AppendType(MetadataToken type, NameBuffer& name) const {
    NameBuffer own;
    const auto ask = [&](uint32_t room, uint32_t* count, char16_t* units) {
      uint32_t attributes = 0;
      MetadataToken base = 0;
      return CallSlot(import_, kGetTypeDefProps, type, units, room, count, &attributes, &base);
    };
    AppendShortOrLong(ask, Keep::kBegin, own);
    name.Append(static_cast<const char16_t*>(own.text().units), own.text().count);
    return !own.empty();
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

void NameBuffer::MarkCut() { units_[kMaxInprocessTextUnits - 1] = kCut; }

void NameBuffer::Append(const char16_t* units, size_t count) {
  const size_t room = kMaxInprocessTextUnits - count_;
  const size_t fits = count < room ? count : room;
  if (fits != 0) std::memcpy(units_ + count_, units, fits * sizeof *units);
  count_ = static_cast<uint16_t>(count_ + fits);
  if (fits < count) MarkCut();
}

void NameBuffer::Append(const char* ascii) {
  for (; *ascii != '\0'; ++ascii) {
    const char16_t unit = static_cast<unsigned char>(*ascii);
    Append(&unit, 1);
  }
}

void NameBuffer::AppendCut(const char16_t* units, size_t count, Keep keep) {
  if (count <= kMaxInprocessTextUnits || keep == Keep::kBegin) return Append(units, count);
  const size_t begin = keep == Keep::kBoth ? kMaxInprocessTextUnits / 2 : 0;
  const size_t end = kMaxInprocessTextUnits - begin - 1;
  Append(units, begin);
  Append(&kCut, 1);
  Append(units + count - end, end);
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
  const auto ask = [&](uint32_t room, uint32_t* count, char16_t* units) {
    const void* signature = nullptr;
    uint32_t signature_bytes = 0;
    return CallSlot(info, kGetDynamicFunctionInfo, function, &name.module, &signature, &signature_bytes, room, count,
                    units);
  };
  AppendShortOrLong(ask, Keep::kBoth, name.method);
}

void NameModule(void* info, RuntimeId module, NameBuffer& path, RuntimeId& assembly) {
  const auto ask = [&](uint32_t room, uint32_t* count, char16_t* units) {
    const void* base = nullptr;
    uint32_t flags = 0;
    return CallSlot(info, kGetModuleInfo2, module, &base, room, count, units, &assembly, &flags);
  };
  AppendShortOrLong(ask, Keep::kEnd, path);
}

void NameAssembly(void* info, RuntimeId assembly, NameBuffer& name) {
  const auto ask = [&](uint32_t room, uint32_t* count, char16_t* units) {
    RuntimeId domain = 0, module = 0;
    return CallSlot(info, kGetAssemblyInfo, assembly, room, count, units, &domain, &module);
  };
  AppendShortOrLong(ask, Keep::kBegin, name);
}

void NameClass(void* info, RuntimeId type, NameBuffer& name) {
  uint32_t ranks[kMaxArrays];  // from the outermost array on
  int arrays = 0;
  for (; arrays <= kMaxArrays; ++arrays) {
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
    uint32_t element = 0;
    RuntimeId element_type = 0;
    if (arrays == kMaxArrays) return;
    if (CallSlot(info, kIsArrayClass, type, &element, &element_type, &ranks[arrays]) != kOk) return;
    if (element_type == 0) {
      name.Append(PrimitiveName(element));
      ++arrays;
      break;
    }
    type = element_type;
  }
  if (name.empty()) return;
  // In the order of the runtime and of our other names: an array of int[,] is System.Int32[,][].
  while (arrays > 0) {
    name.Append("[");
    for (uint32_t rank = ranks[--arrays]; rank > 1 && rank <= kMaxRank; --rank) name.Append(",");
    name.Append("]");
  }
}

}  // namespace clrsampler
