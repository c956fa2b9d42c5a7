// ICorJitCompiler::compileMethod, by structure.
//
// The JIT has one object, of class CILJit, whose virtual functions are compileMethod, ProcessShutdownWork,
// getVersionIdentifier and setTargetOS (src/coreclr/inc/corjit.h; src/coreclr/jit/ee_il_dll.cpp; .NET 8.0.0
// to 11.0.0). Two ways lead to its table, and where both exist they must lead to the same one:
//  - the export getJit (libclrjit.so): code -> the object -> its table;
//  - the third function copies 16 constant bytes, the GUID of the interface between runtime and JIT, to its argument
//  and
//    does nothing else. In a single-file host, which has no such export, this is the only way, and the GUID must be one
//    of a known version.
#ifndef CLRSAMPLER_CLR_HOOKS_JIT_SEARCH_H_
#define CLRSAMPLER_CLR_HOOKS_JIT_SEARCH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clr/hooks/image_code.h"

namespace clrsampler {

struct JitCompiler {
  FunctionIndex compile_method = 0;
  std::string guid;  // of the JIT interface: "7a8cbc56-9e19-4321-80b9-a0d2c578c945"
  std::string evidence;
};

// `exported`: the image is a libclrjit.so.
absl::StatusOr<JitCompiler> FindJitCompiler(const ImageCode& code, bool exported);

// The major version of .NET that has this JIT interface; 0: not known. It is the same in all releases of a major
// version, and changes with anything that the runtime and the JIT must agree upon, such as the bits of flags.
int MajorVersionOfJitInterface(absl::string_view guid);

// Where compileMethod is done. The error says why that, or what stands there, can't be known.
absl::StatusOr<JitReturnSite> FindJitReturn(const ImageCode& code, FunctionIndex compile_method,
                                            absl::string_view guid);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_JIT_SEARCH_H_
