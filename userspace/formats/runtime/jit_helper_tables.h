// The tables of JIT helpers of each major version of CoreCLR: which helpers, in which order, and by which functions the
// runtime does them.
//
// The table is an array of words, one a helper, read-only after relocation (dotnet/runtime:
// src/coreclr/vm/jitinterface.cpp, hlpFuncTable). A word is 0, or the address of a function, or the number of a dynamic
// helper, counted from 1. These are the places in a second table, hlpDynamicFuncTable, which the runtime changes: a
// word there is 0, or the address of the function that the helper is until then.
//
// Sources. Helpers and their order: the JIT's own list of their names in libclrjit.so, which runtime_names_test.py
// compares with these rows; measured on 8.0.30, 9.0.19, 10.0.14 and 11.0.0. Kinds: measured on the same. Functions:
// dotnet/runtime: src/coreclr/inc/jithelpers.h, at da194013 (5) and 003a92cd (11). For 8 to 10 a function has a name
// here where both agree, or where only one of them has the helper. Others are known as functions, and have no name.
// Functions after the start: src/coreclr/vm/jitinterfacegen.cpp, at 0a1ad13b (8 and 9) and in .NET 10 and 11.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_JIT_HELPER_TABLES_H_
#define CLRSAMPLER_FORMATS_RUNTIME_JIT_HELPER_TABLES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

enum class JitHelperKind : uint8_t {
  kNone,      // not on this machine: 0
  kDynamic,   // a number
  kFunction,  // an address
};
absl::string_view JitHelperKindText(JitHelperKind kind);  // "dynamic"

struct JitHelper {
  absl::string_view helper;  // "COUNTPROFILE32", what the JIT calls CORINFO_HELP_COUNTPROFILE32
  JitHelperKind kind = JitHelperKind::kNone;
  bool leads_to_function = false;      // in one of the tables
  absl::string_view function;          // "JIT_CountProfile32"; empty where it is not known, or there is none
  absl::string_view startup_function;  // "RhpNewFast", which a dynamic helper is after the start; empty: not known
};

struct JitHelperTable {
  int major = 0;  // of the runtime's version
  std::vector<JitHelper> helpers;
};

// The tables of all versions that are known. Texts live for ever; any thread.
std::vector<JitHelperTable> JitHelperTables(ElfMachine machine);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_JIT_HELPER_TABLES_H_
