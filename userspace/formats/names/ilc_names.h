// Symbols of NativeAOT programs -> fields.
//
// The ahead-of-time compiler writes a method's name as an ELF symbol (dotnet/runtime src/coreclr/tools/aot/
// ILCompiler.Compiler/Compiler/NativeAotNameMangler.cs, 8.0 to 10.0):
//   S_P_CoreLib_System_Collections_Generic_List_1<Int32>__Add      assembly _ type < arguments > __ method
// Every character but letters and digits became '_', so the way back is not always known: '.', '+', '_', '<' and '|'
// look the same. Everything that is certain is turned back (generic arguments by their number, the compiler's own names
// by their patterns, constructors). docs/frame-names.md says how the rest reads. In kFull different symbols read the
// same only where they are overloads of a constructor or instances of one generic method, or two ways to unbox the
// same.
#ifndef CLRSAMPLER_FORMATS_NAMES_ILC_NAMES_H_
#define CLRSAMPLER_FORMATS_NAMES_ILC_NAMES_H_

#include "absl/strings/string_view.h"
#include "formats/names/method_name.h"

namespace clrsampler {

constexpr absl::string_view kAotTier = "AOT";
constexpr absl::string_view kAotUnboxingTier = "AOT unboxing";

// `program`: file name of the ELF image, which is the name of its main assembly as a rule. Pure and total: a text in no
// known shape becomes a MethodName whose `method` is the whole text. Time is linear in the size of the text for names
// of the compiler, and bounded for all others.
MethodName ParseIlcName(absl::string_view symbol, absl::string_view program);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_ILC_NAMES_H_
