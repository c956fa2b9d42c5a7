#include "formats/names/ilc_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/names/type_text.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxSymbolBytes = 8 * 1024;
constexpr size_t kMaxGeneratedBytes = 512;  // of one compiler-generated class's name
constexpr int kMaxTypeDepth = 32;           // of types in type arguments

// Types that have no assembly before them.
struct Primitive {
  absl::string_view mangled, clr;
};
constexpr Primitive kPrimitives[] = {{"Bool", "System.Boolean"},
                                     {"Char", "System.Char"},
                                     {"Int8", "System.SByte"},
                                     {"UInt8", "System.Byte"},
                                     {"Int16", "System.Int16"},
                                     {"UInt16", "System.UInt16"},
                                     {"Int32", "System.Int32"},
                                     {"UInt32", "System.UInt32"},
                                     {"Int64", "System.Int64"},
                                     {"UInt64", "System.UInt64"},
                                     {"IntPtr", "System.IntPtr"},
                                     {"UIntPtr", "System.UIntPtr"},
                                     {"Single", "System.Single"},
                                     {"Double", "System.Double"},
                                     {"String", "System.String"},
                                     {"Object", "System.Object"},
                                     {"System___Canon", "System.__Canon"}};

std::optional<absl::string_view> ClrPrimitive(absl::string_view mangled) {
  for (const Primitive& row : kPrimitives) {
    if (row.mangled == mangled) return row.clr;
  }
  return std::nullopt;
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
}

size_t DigitsAt(absl::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) ++end;
  return end - at;
}

// One past the '>' of the '<' at `open`.
size_t BehindGroup(absl::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && --depth == 0) return i + 1;
  }
  return kNpos;
}

bool EndsTypeName(absl::string_view text, size_t at) {
  return at >= text.size() || text[at] == '<' || text.substr(at, 2) == "__";
}

// A class that the C# compiler made inside another one.
struct Generated {
  size_t length = 0;  // in the mangled text
  std::string clr;    // "<>c__DisplayClass10_0", "<RunAsync>d__5`1"
};

// "10_0", "10_0_1": two numbers, and an arity behind them. `least` of them must be there.
std::optional<size_t> Numbers(absl::string_view text, size_t at, int least, int most, std::string& clr) {
  size_t end = at;
  for (int i = 0; i < most; ++i) {
    const size_t digits = DigitsAt(text, end + (i > 0 ? 1 : 0));
    if (digits == 0 || (i > 0 && text.substr(end, 1) != "_")) {
      if (i < least) return std::nullopt;
      break;
    }
    const size_t start = end + (i > 0 ? 1 : 0);
    absl::StrAppend(&clr, i == 0 ? "" : i < least ? "_" : "`", text.substr(start, digits));
    end = start + digits;
  }
  return end;
}

// "NAME_b__0_1" -> "<NAME>b__0_1"; "NAME_g__Local_0_1" -> "<NAME>g__Local|0_1"; in a display class they have one
// number. Empty: neither.
std::string Function(absl::string_view text) {
  const size_t lambda = text.find("_b__");
  if (lambda != kNpos && lambda > 0) {
    const absl::string_view ordinal = text.substr(lambda + 4);
    const size_t digits = DigitsAt(ordinal, 0);
    const bool two = digits < ordinal.size() && ordinal[digits] == '_' && IsNumber(ordinal.substr(digits + 1));
    if (digits > 0 && (digits == ordinal.size() || two)) {
      return absl::StrCat("<", text.substr(0, lambda), ">b__", ordinal);
    }
  }
  const size_t local = text.find("_g__");
  if (local == kNpos || local == 0) return "";
  const absl::string_view name = text.substr(local + 4);
  const size_t last = name.rfind('_');
  if (last == kNpos || last == 0 || !IsNumber(name.substr(last + 1))) return "";
  size_t first = name.rfind('_', last - 1);
  if (first == kNpos || first == 0 || !IsNumber(name.substr(first + 1, last - first - 1))) first = last;
  return absl::StrCat("<", text.substr(0, local), ">g__", name.substr(0, first), "|", name.substr(first + 1));
}

enum class Place { kOwner, kArgument };

// "<<Run>b__0_1>d": the state machine of a lambda or a local function. "<Run>d__3": of a method. Their name ends where
// a type argument list begins at the latest.
std::optional<Generated> StateMachineAt(absl::string_view text, Place place) {
  Generated found;
  const auto accept = [&](size_t length) -> std::optional<Generated> {
    if (!EndsTypeName(text, length)) return std::nullopt;
    found.length = length;
    return std::move(found);
  };
  const absl::string_view near = text.substr(0, kMaxGeneratedBytes);
  const absl::string_view plain = near.substr(0, near.find_first_of("<>"));
  if (absl::StartsWith(plain, "__")) {  // of a lambda or a local function: "<<Run>b__0_1>d"
    int tries = 0;
    for (size_t end = plain.find("_d", 2); end != kNpos && ++tries < 8; end = plain.find("_d", end + 1)) {
      const std::string function = Function(plain.substr(2, end - 2));
      if (function.empty()) continue;
      found.clr = absl::StrCat("<", function, ">d");
      if (EndsTypeName(text, end + 2)) return accept(end + 2);
      if (text.substr(end + 2, 1) != "_" || DigitsAt(text, end + 3) == 0) continue;
      const size_t digits = DigitsAt(text, end + 3);
      absl::StrAppend(&found.clr, "`", text.substr(end + 3, digits));
      return accept(end + 3 + digits);
    }
  }
  if (!absl::StartsWith(plain, "_")) return std::nullopt;
  const size_t mark = plain.find("_d__", 1);
  if (mark == kNpos || mark == 1) return std::nullopt;
  const absl::string_view method = plain.substr(1, mark - 1);
  // "__" in it: it is a method of its own, unless an interface's generic name stands there.
  if (absl::StrContains(method, "__") && (place == Place::kArgument || !absl::StartsWith(method, "System_"))) {
    return std::nullopt;
  }
  found.clr = absl::StrCat("<", method, ">d__");
  const std::optional<size_t> end = Numbers(text, mark + 4, 1, 2, found.clr);
  return end ? accept(*end) : std::nullopt;
}

// `text` begins behind the '_' that joins a nested type to its owner.
std::optional<Generated> GeneratedTypeAt(absl::string_view text, Place place) {
  Generated found;
  const auto accept = [&](size_t length) -> std::optional<Generated> {
    if (!EndsTypeName(text, length)) return std::nullopt;
    found.length = length;
    return std::move(found);
  };
  if (absl::StartsWith(text, "__c__DisplayClass")) {
    found.clr = "<>c__DisplayClass";
    const std::optional<size_t> end = Numbers(text, 17, 2, 3, found.clr);
    return end ? accept(*end) : std::nullopt;
  }
  if (absl::StartsWith(text, "__c")) {
    found.clr = "<>c";
    if (text.substr(3, 2) == "__" && DigitsAt(text, 5) > 0) {
      found.clr = "<>c__";
      const std::optional<size_t> end = Numbers(text, 5, 1, 2, found.clr);
      return end ? accept(*end) : std::nullopt;
    }
    return accept(3);
  }
  if (absl::StartsWith(text, "_PrivateImplementationDetails_")) {
    found.clr = "<PrivateImplementationDetails>";
    return accept(30);
  }
  constexpr std::array<Primitive, 2> kNumbered = {
      {{"__f__AnonymousType", "<>f__AnonymousType"}, {"__y__InlineArray", "<>y__InlineArray"}}};
  for (const Primitive& row : kNumbered) {
    if (!absl::StartsWith(text, row.mangled)) continue;
    found.clr = std::string(row.clr);
    const std::optional<size_t> end = Numbers(text, row.mangled.size(), 1, 2, found.clr);
    return end ? accept(*end) : std::nullopt;
  }
  return StateMachineAt(text, place);
}

// Where the name of the type that begins at `at` ends: at a "__" that no generated name explains, or at the end.
size_t EndOfType(absl::string_view text, size_t at, Place place) {
  if (absl::StartsWith(text.substr(at), "System___Canon") && EndsTypeName(text, at + 14)) return at + 14;
  size_t i = at;
  for (const absl::string_view prefix : {"__Array<", "__MDArray<"}) {
    if (absl::StartsWith(text.substr(at), prefix)) i = at + prefix.size() - 1;
  }
  while (i < text.size()) {
    if (text[i] == '<') {
      i = BehindGroup(text, i);
      if (i == kNpos) return kNpos;
    } else if (text[i] == '>') {
      return kNpos;
    } else if (text.substr(i, 2) == "__") {
      const std::optional<Generated> generated = i > at ? GeneratedTypeAt(text.substr(i + 1), place) : std::nullopt;
      if (!generated) return i;
      i += 1 + generated->length;
    } else {
      ++i;
    }
  }
  return i;
}

// Splits "S_P_CoreLib_System_String" behind the assembly's name; 0: not known where that ends.
size_t AssemblyLength(absl::string_view path, absl::string_view program) {
  if (absl::StartsWith(path, "S_P_") || absl::StartsWith(path, "System_") || absl::StartsWith(path, "Microsoft_")) {
    // Assemblies of the framework: their namespaces begin with one of these words, their own names have none behind the
    // first.
    size_t best = kNpos;
    for (const absl::string_view word : {"_System_", "_Internal_", "_Microsoft_", "_Interop_", "_Windows_"}) {
      best = std::min(best, path.find(word, 1));
    }
    for (const absl::string_view last : {"_Interop", "_System"}) {
      if (absl::EndsWith(path, last)) best = std::min(best, path.size() - last.size());
    }
    if (best != kNpos) return best;
  }
  std::string main;
  for (const char c : absl::StripSuffix(program, ".so")) {
    main.push_back(absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_');
  }
  if (!main.empty() && path.size() > main.size() + 1 && absl::StartsWith(path, main) && path[main.size()] == '_') {
    return main.size();
  }
  // "Serilog_Serilog_Log": the namespace repeats the assembly.
  for (size_t end = path.find('_'); end != kNpos && 2 * end + 1 < path.size(); end = path.find('_', end + 1)) {
    if (path.substr(end + 1, end) == path.substr(0, end) && path[2 * end + 1] == '_') return end;
    if (end > 256) break;
  }
  return 0;
}

struct TypeName {
  std::string module;
  std::string clr;  // "System.Collections.Generic.Dictionary`2+Enumerator"
  std::vector<std::string> arguments;
};

class Parser {
 public:
  explicit Parser(absl::string_view program) : program_(program) {}

  std::optional<TypeName> Type(absl::string_view text, int depth) const {
    if (depth > kMaxTypeDepth || text.empty()) return std::nullopt;
    TypeName type;
    if (const std::optional<absl::string_view> primitive = ClrPrimitive(text)) {
      type.clr = std::string(*primitive);
      return type;
    }
    const size_t open = text.find('<');
    const absl::string_view name = text.substr(0, open);
    const bool generic = open != kNpos;
    if (generic && BehindGroup(text, open) != text.size()) return std::nullopt;

    size_t arity = 0;
    const size_t plain_end = EndOfPlainName(name);
    const absl::string_view plain = name.substr(0, plain_end);
    if (const std::optional<absl::string_view> primitive = ClrPrimitive(plain)) {
      type.clr = std::string(*primitive);
    } else {
      const size_t assembly = AssemblyLength(plain, program_);
      type.module = AssemblyName(plain.substr(0, assembly));
      AppendPath(plain.substr(assembly == 0 ? 0 : assembly + 1), generic, arity, type.clr);
    }
    for (size_t at = plain_end; at < name.size();) {
      const std::optional<Generated> generated = GeneratedTypeAt(name.substr(at + 1), Place::kOwner);
      if (!generated) return std::nullopt;
      absl::StrAppend(&type.clr, "+", generated->clr);
      const size_t tick = generated->clr.find('`');
      if (tick != kNpos) arity += NumberIn(absl::string_view(generated->clr).substr(tick + 1));
      at += 1 + generated->length;
    }
    if (!generic) return type;
    const std::optional<std::vector<std::string>> arguments =
        Arguments(text.substr(open + 1, text.size() - open - 2), depth + 1);
    if (!arguments || arguments->size() != arity) return std::nullopt;
    type.arguments = *arguments;
    return type;
  }

 private:
  static size_t NumberIn(absl::string_view digits) {
    size_t value = 0;
    for (const char c : digits.substr(0, 4)) value = 10 * value + static_cast<size_t>(c - '0');
    return value;
  }

  // Where the compiler-generated part of a type's name begins.
  static size_t EndOfPlainName(absl::string_view name) {
    const size_t end = name.find("__");
    return end == kNpos || end == 0 ? name.size() : end;
  }

  static std::string AssemblyName(absl::string_view mangled) {
    std::string name =
        absl::StartsWith(mangled, "S_P_") ? absl::StrCat("System.Private.", mangled.substr(4)) : std::string(mangled);
    std::replace(name.begin(), name.end(), '_', '.');
    return name;
  }

  // "System_Collections_Generic_Dictionary_2_Enumerator". Numbers are arities where type arguments follow.
  static void AppendPath(absl::string_view path, bool generic, size_t& arity, std::string& clr) {
    char joint = '\0';
    while (true) {
      const size_t end = std::min(path.find('_'), path.size());
      const absl::string_view word = path.substr(0, end);
      if (joint != '\0' && IsNumber(word) && word.size() <= 2) {
        clr.push_back(generic ? '`' : '_');
        clr.append(word.data(), word.size());
        if (generic) arity += NumberIn(word);
        joint = generic ? '+' : '.';
      } else {
        if (joint != '\0') clr.push_back(word.empty() ? '_' : joint);
        clr.append(word.data(), word.size());
        joint = '.';
      }
      if (end == path.size()) return;
      path.remove_prefix(end + 1);
    }
  }

  std::optional<std::vector<std::string>> Arguments(absl::string_view text, int depth) const {
    std::vector<std::string> arguments;
    for (size_t at = 0; at < text.size();) {
      const size_t end = EndOfType(text, at, Place::kArgument);
      if (end == kNpos || end == at) return std::nullopt;
      const std::optional<std::string> argument = Argument(text.substr(at, end - at), depth);
      if (!argument) return std::nullopt;
      arguments.push_back(*argument);
      if (end == text.size()) return arguments;
      at = end + 2;
    }
    return std::nullopt;
  }

  std::optional<std::string> Argument(absl::string_view text, int depth) const {
    if (depth > kMaxTypeDepth) return std::nullopt;
    constexpr std::array<Primitive, 2> kSuffixes = {{{"<ByRef>", "&"}, {"<Pointer>", "*"}}};
    for (const Primitive& row : kSuffixes) {
      if (!absl::ConsumeSuffix(&text, row.mangled)) continue;
      const std::optional<std::string> inner = Argument(text, depth + 1);
      return inner ? std::optional<std::string>(absl::StrCat(*inner, row.clr)) : std::nullopt;
    }
    if (absl::StartsWith(text, "__Array<") && text.back() == '>') {
      const std::optional<std::string> inner = Argument(text.substr(8, text.size() - 9), depth + 1);
      return inner ? std::optional<std::string>(absl::StrCat(*inner, "[]")) : std::nullopt;
    }
    const std::optional<TypeName> type = Type(text, depth);
    if (!type) return std::nullopt;
    std::string out = type->clr;
    for (size_t i = 0; i < type->arguments.size(); ++i) absl::StrAppend(&out, i == 0 ? "[" : ",", type->arguments[i]);
    if (!type->arguments.empty()) out.push_back(']');
    return out;
  }

  const absl::string_view program_;
};

// "System_Collections_IEnumerator_get_Current" of an interface that is not generic: its dots are known, for the
// framework's interfaces and members have no '_' but behind the accessor's word.
std::string ExplicitMember(absl::string_view text) {
  std::string out(text);
  size_t end = out.size();
  const size_t last = out.rfind('_');
  const size_t before = last == kNpos || last == 0 ? kNpos : out.rfind('_', last - 1);
  if (before != kNpos) {
    const absl::string_view word = absl::string_view(out).substr(before + 1, last - before - 1);
    if (word == "get" || word == "set" || word == "add" || word == "remove") end = last;
    if (IsNumber(absl::string_view(out).substr(last + 1))) end = last;
  }
  std::replace(out.begin(), out.begin() + static_cast<ptrdiff_t>(end), '_', '.');
  return out;
}

std::string Method(absl::string_view text) {
  if (text == "_cctor") return ".cctor";
  if (text == "_ctor" || (absl::StartsWith(text, "_ctor_") && IsNumber(text.substr(6)))) return ".ctor";
  if (text == "_Main__") return "<Main>$";
  if (text.size() > 1 && text[0] == '_' && text[1] != '_') {
    std::string function = Function(text.substr(1));
    if (!function.empty()) return function;
  }
  if (absl::StartsWith(text, "System_") && !absl::StrContains(text, "__")) return ExplicitMember(text);
  return std::string(text);
}

// Helpers that the compiler makes for a type or a method: "__GetGCStaticBase_X", "__DelegateCtor_...".
bool SplitHelper(absl::string_view symbol, absl::string_view& helper, absl::string_view& subject) {
  if (symbol.size() < 4 || symbol.substr(0, 2) != "__" || !absl::ascii_isupper(static_cast<unsigned char>(symbol[2])))
    return false;
  const size_t end = symbol.find('_', 2);
  if (end == kNpos || end + 1 >= symbol.size()) return false;
  helper = symbol.substr(2, end - 2);
  subject = symbol.substr(end + 1);
  return true;
}

}  // namespace

MethodName ParseIlcName(absl::string_view symbol, absl::string_view program) {
  MethodName name;
  name.tier = std::string(kAotTier);
  name.method = std::string(symbol);
  if (symbol.size() > kMaxSymbolBytes) return name;
  const size_t invoke = symbol.find("___<DynamicInvoke>");
  absl::string_view helper, subject;
  if (invoke != kNpos) {
    helper = "DynamicInvoke";
    subject = symbol.substr(invoke + 18);
  }
  if (invoke != kNpos || SplitHelper(symbol, helper, subject)) {
    name.kind = MethodKind::kIlStub;
    name.method = std::string(helper);
    name.parameters = std::vector<std::string>{std::string(subject)};
    return name;
  }

  absl::string_view rest = symbol, owner;
  const bool boxed = absl::ConsumePrefix(&rest, "<Boxed>");
  if (boxed) {
    const size_t at = rest.find("__<unbox>");
    if (at == kNpos) return name;
    owner = rest.substr(0, at);
    rest.remove_prefix(at + 9);
    // Behind it the same type without its arguments, and the method.
    const absl::string_view open = owner.substr(0, owner.find('<'));
    if (!absl::ConsumePrefix(&rest, open) || !absl::ConsumePrefix(&rest, "__")) return name;
  } else {
    if (absl::ConsumePrefix(&rest, "unbox_")) name.tier = std::string(kAotUnboxingTier);
    const size_t end = EndOfType(rest, 0, Place::kOwner);
    if (end == kNpos || end == 0 || end + 2 >= rest.size()) return name;
    owner = rest.substr(0, end);
    rest.remove_prefix(end + 2);
  }

  const std::optional<TypeName> type = Parser(program).Type(owner, 0);
  if (!type) return name;
  const size_t open = rest.find('<');
  if (rest.empty() || open == 0 || (open != kNpos && BehindGroup(rest, open) != rest.size())) return name;
  if (boxed) name.tier = std::string(kAotUnboxingTier);
  name.module = type->module;
  name.type = type->clr;
  name.type_args = type->arguments;
  name.method = Method(rest.substr(0, open));
  // They are never shown. Their parts are not taken apart, for the number of kinds is not known.
  if (open != kNpos) name.method_args = {std::string(rest.substr(open + 1, rest.size() - open - 2))};
  return name;
}

}  // namespace clrsampler
