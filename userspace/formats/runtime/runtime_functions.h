// Names of the runtime's own functions that a stripped image of CoreCLR holds beside pointers to them.
//
// - Entry points: arrays of {name, function}, 16 bytes each, by which managed code calls into the runtime: QCalls, and
//   what is linked in for globalization (dotnet/runtime: src/coreclr/vm/qcallentrypoints.cpp, at aed8fd47).
// - FCalls: functions that managed code calls as if they were its own methods. They stand in arrays of {flags,
//   function, name, signature where the flags say so}, one for each class. These stand in an array of {class,
//   namespace, array} (dotnet/runtime: src/coreclr/vm/ecall.h, at 00ac37e4). A function is called by the method's name.
// - JIT helpers: an array of functions in the order of formats/runtime/jit_helper_tables.h. Where only the helper is
//   known and not its function, the function is called as the JIT calls it: "CORINFO_HELP_MON_ENTER", and with '|'
//   between them where it does the work of two or three.
// - The functions that the runtime puts into that array when it starts (formats/runtime/startup_helpers.h).
// - Functions in assembly (formats/runtime/assembly_functions.h).
//
// A table counts when all of it fits, and a function has a name when one name is given to it. Nothing is known of an
// image that a reader could not prove: it has no names then.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_RUNTIME_FUNCTIONS_H_
#define CLRSAMPLER_FORMATS_RUNTIME_RUNTIME_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

enum class RuntimeTableKind : uint8_t { kEntryPoints, kFCalls, kJitHelpers, kStartup, kAssembly };
absl::string_view RuntimeTableText(RuntimeTableKind kind);  // "entry-points"

struct RuntimeFunction {
  VirtualAddress start;  // where an entry of the unwind table begins
  std::string name;      // a C identifier, or of an FCall "System.Math.Cos"
  RuntimeTableKind table;
};

// A table that was found whole; the latter two kinds have none.
struct RuntimeTable {
  RuntimeTableKind kind;
  VirtualAddress at;
  size_t functions = 0;  // that it leads to
  int major = 0;         // of the version that it fits; 0: not told by this table
};

// Owns what it holds, some 30 KB. Immutable; any thread.
class RuntimeFunctions {
 public:
  // Reads libcoreclr.so or a single-file host; 3 ms. kNotFound: another image. Other errors say why its relocations or
  // its unwind table can't be used.
  static absl::StatusOr<RuntimeFunctions> Read(const ElfImage& image);

  std::span<const RuntimeFunction> all() const { return functions_; }  // by start, each start once
  std::span<const RuntimeTable> tables() const { return tables_; }     // by kind and address
  // How many functions of these tables have no name since several are given, or other tables lead to them too: the
  // linker has made one of functions with the same code.
  size_t in_doubt() const { return in_doubt_; }
  size_t memory_bytes() const;
  // nullptr: none begins there.
  const RuntimeFunction* StartingAt(VirtualAddress address) const;

 private:
  std::vector<RuntimeFunction> functions_;
  std::vector<RuntimeTable> tables_;
  size_t in_doubt_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_RUNTIME_FUNCTIONS_H_
