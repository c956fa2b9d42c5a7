// MethodName fields -> the text of one frame. The contract, with examples, is docs/frame-names.md.
//
// The same method reads the same whichever source filled the fields: type texts may be in the notation of the runtime's
// perf map ("class System.Collections.Generic.List`1<int32>", "uint8&", "!0"), of an r2rmap or of metadata
// ("System.Collections.Generic.List`1<System.Int32>" or "...List`1[System.Int32]", "System.Byte&"); all become C#.
// Pure and total: any field content gives a text, in time linear in its size. The result is not yet safe for folded
// output, because names in metadata may hold any byte: that is folded_text.h.
#ifndef CLRSAMPLER_FORMATS_NAMES_FRAME_TEXT_H_
#define CLRSAMPLER_FORMATS_NAMES_FRAME_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

#include "formats/names/method_name.h"

namespace clrsampler {

enum class NameStyle {
  kShort,  // Shop.Order.Total; System.Collections.Generic.List<int>.Add
  kFull,   // Shop!Shop.Order.Total(int, string) [OptimizedTier1]
  kRaw,    // the runtime's own text. A caller that still has it uses it instead of FrameText; from fields this
           // composes Ns.Type`1+Inner[System.Int32]::Method(System.Int32), as the runtime would name the owner
};

std::string FrameText(const MethodName& name, NameStyle style);

// A type as the runtime writes it ("System.Collections.Generic.List`1[System.Int32]") in this style.
std::string TypeNameText(absl::string_view type, NameStyle style);

// The text by which compilers of managed code know a method: the runtime's text for its owner and its name,
// "System.Collections.Generic.List`1[System.__Canon]::Add", "Shop.Order+<RunAsync>d__5::MoveNext". Overloads and
// instances of a generic method share it. Empty: not a method of an assembly, or one whose owner is not known.
std::string MethodSymbol(const MethodName& name);

// The method in C#, with its parameters and a result of this type, without module and tier: what tells its overloads
// apart. "int Shop.Order.Add(int)".
std::string SignatureText(const MethodName& name, absl::string_view result);

// The runtime's name for the stub that resumes an async method (.NET 11).
inline constexpr absl::string_view kAsyncResumeStub = "IL_STUB_AsyncResume";

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_FRAME_TEXT_H_
