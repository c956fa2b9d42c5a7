// Method texts that the .NET runtime and crossgen2 write -> fields.
//
// Both functions are pure and total: a text in no known shape becomes a MethodName whose `method` is the whole text.
// Time is linear in the size of the text, depth of nesting is bounded.
#ifndef CLRSAMPLER_FORMATS_NAMES_RUNTIME_NAMES_H_
#define CLRSAMPLER_FORMATS_NAMES_RUNTIME_NAMES_H_

#include "absl/strings/string_view.h"
#include "formats/names/method_name.h"

namespace clrsampler {

// The name of a jitdump JIT_CODE_LOAD record or of a perf map line (behind address and size). Written by
// PerfMap::LogJITCompiledMethod, LogPreCompiledMethod and LogStubs (dotnet/runtime src/coreclr/vm/perfmap.cpp, 8.0 to
// 10.0) from MethodDesc::GetFullMethodInfo:
//   instance void [System.Private.CoreLib] System.Collections.Generic.List`1[System.__Canon]::Add(!0)[PreJIT]
//   stub<12> AllocateTemporaryEntryPoints<PRECODE_STUB>
MethodName ParseRuntimeName(absl::string_view text);

// Whether ParseRuntimeName would call it a stub; allocates nothing.
bool IsRuntimeStub(absl::string_view text);

// The name column of an r2rmap row (behind RVA and length), format version 1 of
// docs/design/coreclr/botr/r2r-perfmap-format.md:
//   System.String Shop.Address::get_Street()
// `module` stays empty: the row does not say it, the image does.
MethodName ParseR2rMapName(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_RUNTIME_NAMES_H_
