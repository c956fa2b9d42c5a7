#include "clr/hooks/jit_search.h"

#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clr/hooks/image_code.h"
#include "clr/runtime_generations.h"
#include "formats/byte_reader.h"
#include "formats/elf/elf_exports.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kVersionSlot = 2;  // getVersionIdentifier
constexpr size_t kMinJitSlots = 4;
constexpr size_t kGuidBytes = 16;
// compileMethod has 0xb4 bytes on x64 (0xbb in 11.0.0) and 0xc4 on arm64; destructors and getters are far smaller.
constexpr size_t kMinCompileMethodBytes = 65;
constexpr size_t kMaxGetJitBytes = 0x100;  // it has 0x1a

std::string GuidText(std::span<const std::byte> bytes) {
  std::string text = absl::StrFormat("%08x-%04x-%04x-", *LoadAt<uint32_t>(bytes, 0), *LoadAt<uint16_t>(bytes, 4),
                                     *LoadAt<uint16_t>(bytes, 6));
  for (size_t i = 8; i < kGuidBytes; ++i) {
    absl::StrAppendFormat(&text, "%s%02x", i == 10 ? "-" : "", static_cast<uint8_t>(bytes[i]));
  }
  return text;
}

// The table whose third function copies a GUID; nullopt: this is none.
struct JitTable {
  VirtualAddress at;
  FunctionIndex compile_method = 0;
  size_t slots = 0;
  std::string guid;
};

std::optional<JitTable> TableAt(const ImageCode& code, VirtualAddress at) {
  // A run of slots begins here. The word before it holds no function: it is type information, which is left out. So
  // each run of slots is counted once.
  if (code.FunctionInSlot({at.value - kSlotBytes})) return std::nullopt;
  JitTable table{.at = at, .slots = code.TableSlots(at)};
  if (table.slots < kMinJitSlots) return std::nullopt;
  const auto version = code.FunctionInSlot({at.value + kVersionSlot * kSlotBytes});
  const auto guid_at = version ? code.CopiedGuid(*version) : std::nullopt;
  const auto bytes = guid_at ? code.image().BytesFrom(*guid_at) : std::nullopt;
  if (!bytes || bytes->size() < kGuidBytes || code.image().IsExecutable(*guid_at)) return std::nullopt;
  table.guid = GuidText(*bytes);
  table.compile_method = *code.FunctionInSlot(at);
  if (code.Code(table.compile_method).size() < kMinCompileMethodBytes) return std::nullopt;
  return table;
}

absl::StatusOr<JitTable> TableByShape(const ImageCode& code) {
  std::optional<JitTable> found;
  for (const RelativeRelocation& row : code.relocations().all()) {
    const auto function = code.functions().StartingAt(row.target);
    if (!function || !code.CopiedGuid(*function)) continue;
    std::optional<JitTable> table = TableAt(code, {row.slot.value - kVersionSlot * kSlotBytes});
    if (!table) continue;
    if (found) {
      return absl::FailedPreconditionError(
          absl::StrCat("two tables look like the JIT's: at ", AddressText(found->at), " and ", AddressText(table->at)));
    }
    found = std::move(table);
  }
  if (!found) {
    return absl::NotFoundError(
        "no table of four functions or more has a third one that copies the JIT interface's GUID");
  }
  return *std::move(found);
}

struct Exported {
  VirtualAddress get_jit, object, table;
};

absl::StatusOr<Exported> TableByExport(const ImageCode& code) {
  const std::optional<ElfSymbol> get_jit = ElfExports(code.image()).Find("getJit");
  if (!get_jit) return absl::NotFoundError("the image does not export getJit");
  const auto function = code.functions().StartingAt(get_jit->address);
  if (!function) return absl::DataLossError("the unwind table has no function at the export getJit");
  if (code.Code(*function).size() > kMaxGetJitBytes) return absl::FailedPreconditionError("getJit is too large");
  std::optional<Exported> found;
  for (const VirtualAddress object : code.ReferencesOf(*function).data) {
    const auto table = code.relocations().At(object);
    if (!table || code.TableSlots(*table) < kMinJitSlots || (found && found->object == object)) continue;
    if (found) return absl::FailedPreconditionError("getJit refers to two objects with tables of functions");
    found = Exported{get_jit->address, object, *table};
  }
  if (!found) return absl::NotFoundError("getJit refers to no object with a table of functions");
  return *found;
}

}  // namespace

int MajorVersionOfJitInterface(absl::string_view guid) {
  for (const RuntimeGeneration& known : kRuntimeGenerations) {
    if (known.jit_interface == guid) return known.major;
  }
  return 0;
}

absl::StatusOr<JitCompiler> FindJitCompiler(const ImageCode& code, bool exported) {
  ASSIGN_OR_RETURN(const JitTable table, TableByShape(code));
  JitCompiler compiler{.compile_method = table.compile_method, .guid = table.guid};
  const std::string about_table = absl::StrCat("the table of ", table.slots, " functions at ", AddressText(table.at),
                                               ", the third of which copies the JIT interface's GUID ", table.guid);
  if (exported) {
    ASSIGN_OR_RETURN(const Exported by_export, TableByExport(code));
    if (by_export.table != table.at) {
      return absl::FailedPreconditionError(absl::StrCat("getJit leads to the table at ", AddressText(by_export.table),
                                                        ", but the JIT interface's GUID to the one at ",
                                                        AddressText(table.at)));
    }
    compiler.evidence = absl::StrCat("getJit at ", AddressText(by_export.get_jit), " gives the object at ",
                                     AddressText(by_export.object), " with ", about_table);
  } else {
    if (MajorVersionOfJitInterface(table.guid) == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the JIT interface's GUID ", table.guid, " is not of .NET 8 to 11"));
    }
    compiler.evidence = about_table;
  }
  return compiler;
}

absl::StatusOr<JitReturnSite> FindJitReturn(const ImageCode& code, FunctionIndex compile_method,
                                            absl::string_view guid) {
  if (guid.empty()) return absl::NotFoundError("the JIT interface's GUID was not found");
  if (MajorVersionOfJitInterface(guid) == 0) {
    return absl::FailedPreconditionError(absl::StrCat("the JIT interface's GUID ", guid, " is not of .NET 8 to 11"));
  }
  const auto site = code.ReturnOfCompileMethod(compile_method);
  if (!site)
    return absl::NotFoundError("compileMethod is not, instruction for instruction, the function that is known");
  return *site;
}

}  // namespace clrsampler
