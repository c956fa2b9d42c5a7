#include "formats/names/runtime_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "formats/names/tier.h"
#include "formats/names/type_text.h"

namespace clrsampler {
namespace {

std::string Owned(absl::string_view text) { return std::string(text.data(), text.size()); }

MethodName WholeText(absl::string_view text) {
  MethodName name;
  name.method = Owned(text);
  return name;
}

// The runtime prints the address of a type's MethodTable into the signatures of dynamic methods; it differs from run to
// run: "System.Span`1 /* MT: 0x7f3bc60fdad8 */<object>".
std::string WithoutPointers(absl::string_view text) {
  constexpr absl::string_view kOpen = " /* MT: ";
  constexpr absl::string_view kClose = " */";
  std::string out;
  out.reserve(text.size());
  while (true) {
    const size_t open = text.find(kOpen);
    const size_t close = open == kNpos ? kNpos : text.find(kClose, open + kOpen.size());
    if (close == kNpos) break;
    out.append(text.data(), open);
    text.remove_prefix(close + kClose.size());
  }
  out.append(text.data(), text.size());
  return out;
}

// "stub<12> Allocate<X>" up to .NET 9, "stub Allocate<X>" since 10; the number counts stubs and says nothing.
// The description behind "stub " or "stub<12> "; nullopt: not a stub.
std::optional<absl::string_view> StubDescription(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "stub")) return std::nullopt;
  if (absl::ConsumePrefix(&text, "<")) {
    while (!text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
    if (!absl::ConsumePrefix(&text, ">")) return std::nullopt;
  }
  if (!absl::ConsumePrefix(&text, " ") || text.empty() || absl::StrContains(text, "::")) return std::nullopt;
  return text;
}

std::optional<MethodName> ParseStub(absl::string_view text) {
  const std::optional<absl::string_view> description = StubDescription(text);
  if (!description.has_value()) return std::nullopt;
  MethodName name;
  name.kind = MethodKind::kStub;
  name.method = Owned(*description);
  return name;
}

// Position of the '(' that opens the parameter list at the end of `text`. Counted from the end, because the method's
// own name may hold parentheses ("should return 5 (five)"), while types in signatures hold only balanced ones.
size_t FindParameterList(absl::string_view text) {
  if (text.empty() || text.back() != ')') return kNpos;
  size_t depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return kNpos;
}

// Position of the first "::" outside brackets. Types rarely hold one; methods do: an explicit implementation through an
// alias is called "alias::Ns.IFoo.Bar".
size_t FindMemberSeparator(absl::string_view text) {
  size_t depth = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '[' || text[i] == '(') {
      ++depth;
    } else if (text[i] == ']' || text[i] == ')') {
      if (depth > 0) --depth;
    } else if (depth == 0 && text[i] == ':' && text[i + 1] == ':') {
      return i;
    }
  }
  return text.find("::");  // unbalanced
}

enum class Escapes { kNo, kBackslash };  // TypeNameBuilder escapes , + & * [ ] \ in the owner's text

std::string Unescape(absl::string_view text, Escapes escapes) {
  if (escapes == Escapes::kNo || text.find('\\') == kNpos) return Owned(text);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out.push_back(text[i]);
  }
  return out;
}

// Splits at commas outside brackets. Angle brackets count too, for generic arguments and for names of compilers such as
// "<IJob<System-Int32,System-String>-Do>d__6"; where they do not balance, only the others are believed.
std::vector<std::string> SplitTypes(absl::string_view text, Escapes escapes) {
  std::vector<std::string> types;
  if (text.empty()) return types;
  for (const bool count_angles : {true, false}) {
    types.clear();
    int depth = 0;
    size_t start = 0;
    bool negative = false;
    const auto take = [&](size_t end) {
      types.push_back(Unescape(absl::StripLeadingAsciiWhitespace(text.substr(start, end - start)), escapes));
    };
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\\' && escapes == Escapes::kBackslash) {
        ++i;
      } else if (c == '[' || c == '(' || (count_angles && c == '<')) {
        ++depth;
      } else if (c == ']' || c == ')' || (count_angles && c == '>')) {
        negative |= --depth < 0;
      } else if (c == ',' && depth == 0) {
        take(i);
        start = i + 1;
      }
    }
    take(text.size());
    if (depth == 0 && !negative) break;
  }
  return types;
}

// "Ns.Outer`1+Inner[System.Int32,System.__Canon]" -> type and type_args.
void ParseOwner(absl::string_view owner, Escapes escapes, MethodName& name) {
  size_t open = kNpos;
  if (!owner.empty() && owner.back() == ']' && !(escapes == Escapes::kBackslash && absl::EndsWith(owner, "\\]"))) {
    size_t depth = 0;
    for (size_t i = owner.size(); i-- > 0;) {
      const bool escaped = escapes == Escapes::kBackslash && i > 0 && owner[i - 1] == '\\';
      if (escaped) continue;
      if (owner[i] == ']') ++depth;
      if (owner[i] == '[' && --depth == 0) {
        open = i;
        break;
      }
    }
  }
  if (open == kNpos || open == 0 || IsArrayShape(owner.substr(open + 1, owner.size() - open - 2))) {
    name.type = Unescape(owner, escapes);
    return;
  }
  name.type = Unescape(owner.substr(0, open), escapes);
  name.type_args = SplitTypes(owner.substr(open + 1, owner.size() - open - 2), escapes);
}

// Takes "[Tier]" off the end. The runtime cuts bytes off a perf map line: as many as the text has bytes more than
// UTF-16 units. This was seen in 8.0, 9.0 and 10.0 for names outside ASCII. So the bracket may be open and the word
// incomplete.
std::string TakeTier(absl::string_view& text) {
  const size_t at = text.rfind(")[");
  if (at == kNpos) return "";
  absl::string_view word = text.substr(at + 2);
  const bool closed = absl::ConsumeSuffix(&word, "]");
  const bool is_word =
      std::all_of(word.begin(), word.end(), [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-'; });
  if (!is_word) return "";
  text = text.substr(0, at + 1);
  constexpr std::array<absl::string_view, 10> kTiers = {
      tier::kUnknown,        tier::kMinOptJitted,   tier::kOptimized,
      tier::kQuickJitted,    tier::kOptimizedTier1, tier::kOptimizedTier1Osr,
      tier::kPrecompiled,    tier::kInstrumented,   tier::kInstrumentedOptimized,
      tier::kPrecompiledCold};
  const bool known = std::find(kTiers.begin(), kTiers.end(), word) != kTiers.end();
  return closed || known ? Owned(word) : "";
}

// "Owner::method(parameters)" with everything else removed. False: not of this shape.
bool ParseMember(absl::string_view text, Escapes escapes, MethodName& name) {
  const size_t list = FindParameterList(text);
  absl::string_view head = list == kNpos ? text : text.substr(0, list);
  const size_t separator = FindMemberSeparator(head);
  if (separator == kNpos || separator + 2 == head.size()) return false;
  absl::string_view method = head.substr(separator + 2);
  if (list == kNpos) {
    method = method.substr(0, method.find('(', 1));  // a cut line: the part of the list that is there is worth nothing
  } else {
    name.parameters = SplitTypes(text.substr(list + 1, text.size() - list - 2), Escapes::kNo);
  }
  name.method = Owned(method);
  ParseOwner(head.substr(0, separator), escapes, name);
  if (name.type == "dynamicClass") {
    name.kind = absl::StartsWith(name.method, "IL_STUB") ? MethodKind::kIlStub : MethodKind::kDynamicMethod;
  }
  return true;
}

struct ModuleMark {
  size_t open;   // of '['
  size_t close;  // of ']'
};

// "[Module] " between return type and owner. An assembly stands in the return type too, but right before the type's
// name: "class [System.Runtime]System.Type [Shop] Shop.Order::Kind()".
std::optional<ModuleMark> FindModule(absl::string_view text) {
  for (size_t open = text.find('['); open != kNpos; open = text.find('[', open + 1)) {
    if (open != 0 && text[open - 1] != ' ') continue;
    const size_t close = text.find(']', open);
    if (close == kNpos) return std::nullopt;
    if (close > open + 1 && close + 1 < text.size() && text[close + 1] == ' ') return ModuleMark{open, close};
    open = close;
  }
  return std::nullopt;
}

}  // namespace

MethodName ParseRuntimeName(absl::string_view text) {
  if (absl::StartsWith(text, "stub")) {
    if (std::optional<MethodName> stub = ParseStub(text)) return *std::move(stub);
  }
  std::string without_pointers;
  absl::string_view rest = text;
  if (absl::StrContains(text, "/* MT: ")) {
    without_pointers = WithoutPointers(text);
    rest = without_pointers;
  }
  const std::optional<ModuleMark> module = FindModule(rest);
  if (!module.has_value()) return WholeText(text);
  MethodName name;
  name.module = Owned(rest.substr(module->open + 1, module->close - module->open - 1));
  absl::string_view result = absl::StripTrailingAsciiWhitespace(rest.substr(0, module->open));
  absl::ConsumePrefix(&result, "instance ");
  absl::ConsumePrefix(&result, "vararg ");
  name.return_type = Owned(result);
  rest = rest.substr(module->close + 2);
  name.tier = TakeTier(rest);
  if (!ParseMember(rest, Escapes::kBackslash, name)) return WholeText(text);
  return name;
}

bool IsRuntimeStub(absl::string_view text) {
  // This is asked for every line of a perf map, and few of them are stubs.
  return !text.empty() && text.front() == 's' && StubDescription(text).has_value();
}

MethodName ParseR2rMapName(absl::string_view text) {
  const size_t list = FindParameterList(text);
  const absl::string_view head = list == kNpos ? text : text.substr(0, list);
  const size_t separator = FindMemberSeparator(head);
  if (separator == kNpos) return WholeText(text);
  size_t owner = 0;  // behind the last space that is outside brackets: the return type may hold some inside
  size_t depth = 0;
  for (size_t i = 0; i < separator; ++i) {
    const char c = head[i];
    if (c == '[' || c == '(') ++depth;
    if ((c == ']' || c == ')') && depth > 0) --depth;
    if (c == ' ' && depth == 0 && !absl::StartsWith(head.substr(i + 1), "(")) owner = i + 1;
  }
  MethodName name;
  if (!ParseMember(text.substr(owner), Escapes::kNo, name)) return WholeText(text);
  name.return_type = Owned(absl::StripTrailingAsciiWhitespace(head.substr(0, owner)));
  return name;
}

}  // namespace clrsampler
