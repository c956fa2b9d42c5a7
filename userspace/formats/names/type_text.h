// The text of a type in any notation of the runtime's -> C#. Internal to this folder.
#ifndef CLRSAMPLER_FORMATS_NAMES_TYPE_TEXT_H_
#define CLRSAMPLER_FORMATS_NAMES_TYPE_TEXT_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr size_t kNpos = absl::string_view::npos;

// One level of a nested type's name.
struct TypeSegment {
  absl::string_view text;  // without the arity
  size_t arity = 0;
};

// "Ns.Outer`1+Inner" -> {Ns.Outer, 1}, {Inner, 0}. Separators inside a compiler's "<...>" do not split.
std::vector<TypeSegment> SplitTypeName(absl::string_view name);

// For each segment its own arguments: "<int, string>"; "<,>" where the arguments are unknown; empty where it takes
// none. When the arities do not add up to the arguments (a name of another language that holds a backtick), the last
// segment gets all of them. `rendered_args` are C# texts.
std::vector<std::string> ArgumentsBySegment(const std::vector<TypeSegment>& segments,
                                            std::span<const std::string> rendered_args);

// "Zoo.<Program>F0690...__Hidden" (C# `file class Hidden` of Program.cs) -> "Zoo.Hidden", or "Zoo.Hidden@Program" when
// `with_file`. Other texts as they are.
std::string FileLocalName(absl::string_view segment, bool with_file);

// "int" for "System.Int32" and for the signatures' "int32"; empty for types without a keyword.
absl::string_view CSharpKeyword(absl::string_view name);

// Whether what stands between two brackets is the shape of an array: ",", "*", "0...". Else it is type arguments.
bool IsArrayShape(absl::string_view inside);

// Position behind the '>' that closes the '<' at `open`; npos if none does.
size_t BehindAngle(absl::string_view text, size_t open);

struct TypeContext {
  std::span<const std::string> type_args;  // C# texts that "!0", "!1" stand for; may be empty
  bool with_file = false;                  // see FileLocalName
};

// C# text of one type: "class System.Collections.Generic.List`1<int32>&" -> "ref System.Collections.Generic.List<int>".
// Parts that it does not understand stay as they are.
std::string TypeText(absl::string_view type, const TypeContext& context);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_TYPE_TEXT_H_
