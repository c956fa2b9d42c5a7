#include "symbols/demangle.h"

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

// The demangler of libstdc++ with its text handed out in pieces (libiberty/cp-demangle.c; elf.cmake says how it gets
// linked). allocates nothing, so it can be left in the middle when a hostile name unfolds into too much text.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled, void (*callback)(const char*, size_t, void*),
                                             void* opaque);

namespace clrsampler {
namespace {

// Above this many characters the short style drops template arguments.
constexpr size_t kLongName = 120;

constexpr size_t kRustHashBytes = 19;  // "::h" and 16 digits

struct Output {
  char* at;
  size_t room;
  std::jmp_buf too_long;
};

void Append(const char* text, size_t bytes, void* opaque) {
  auto* output = static_cast<Output*>(opaque);
  if (bytes > output->room) std::longjmp(output->too_long, 1);
  std::memcpy(output->at, text, bytes);
  output->at += bytes;
  output->room -= bytes;
}

// Bytes written into `buffer`. 0: no mangled name, or too long. The jump passes over frames of C only. Nothing with a
// destructor lives in this function.
size_t DemangleInto(const char* mangled, char* buffer, size_t room) {
  Output output;
  output.at = buffer;
  output.room = room;
  if (setjmp(output.too_long) != 0) return 0;
  if (__gcclibcxx_demangle_callback(mangled, Append, &output) != 0) return 0;
  return static_cast<size_t>(output.at - buffer);
}

absl::string_view WithoutVersion(absl::string_view symbol) {
  const size_t at = symbol.find('@');
  return at == absl::string_view::npos || at == 0 ? symbol : symbol.substr(0, at);
}

std::optional<std::string> Demangle(absl::string_view symbol) {
  if (!absl::StartsWith(symbol, "_Z") || symbol.size() > kMaxMangledBytes) return std::nullopt;
  std::string text(kMaxDemangledBytes, '\0');
  const std::string mangled(symbol);
  const size_t bytes = DemangleInto(mangled.c_str(), text.data(), text.size());
  if (bytes == 0) return std::nullopt;
  return text.substr(0, bytes);
}

// Rust's legacy mangling is that of C++ with a last part "h" + 16 hex digits and "$...$" for what C++ names can't hold.
bool IsRust(absl::string_view text) {
  if (text.size() <= kRustHashBytes || text.substr(text.size() - kRustHashBytes, 3) != "::h") return false;
  for (const char c : text.substr(text.size() - 16)) {
    if (!absl::ascii_isdigit(c) && (c < 'a' || c > 'f')) return false;
  }
  return true;
}

// "$u7b$" and the like: the character with that number. nullopt: it is none that can be printed.
std::optional<std::string> RustCharacter(absl::string_view escape) {
  constexpr size_t kMostDigits = 6;
  uint32_t code = 0;
  if (!absl::ConsumePrefix(&escape, "u") || escape.empty() || escape.size() > kMostDigits) return std::nullopt;
  for (const char c : escape) {
    if (!absl::ascii_isdigit(c) && (c < 'a' || c > 'f')) return std::nullopt;
    code = code * 16 + static_cast<uint32_t>(absl::ascii_isdigit(c) ? c - '0' : c - 'a' + 10);
  }
  if (code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) {
    return std::nullopt;
  }
  std::string text;
  const auto append = [&text](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    append(code);
    return text;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  append((0xFFu << (7 - more) & 0xFF) | code >> 6 * more);
  for (int i = more - 1; i >= 0; --i) append(0x80 | (code >> 6 * i & 0x3F));
  return text;
}

struct RustEscape {
  std::string text;
  size_t bytes = 0;  // that it has in the name
};

// The escape that `name` begins with, "$LT$" or "$u7b$". nullopt: the compiler writes no such thing.
std::optional<RustEscape> RustEscapeOf(absl::string_view name) {
  constexpr std::pair<absl::string_view, absl::string_view> kNamed[] = {
      {"LT", "<"}, {"GT", ">"}, {"RF", "&"}, {"BP", "*"}, {"C", ","}, {"LP", "("}, {"RP", ")"}, {"SP", "@"}};
  constexpr size_t kLongest = 8;  // "$u10ffff"; a search for the end must not cross the whole name
  if (!absl::StartsWith(name, "$")) return std::nullopt;
  const size_t end = name.substr(0, kLongest + 1).find('$', 1);
  if (end == absl::string_view::npos) return std::nullopt;
  const absl::string_view escape = name.substr(1, end - 1);
  for (const auto& [word, text] : kNamed) {
    if (escape == word) return RustEscape{std::string(text), end + 1};
  }
  std::optional<std::string> text = RustCharacter(escape);
  if (!text) return std::nullopt;
  return RustEscape{*std::move(text), end + 1};
}

// A part of a name can't begin with a dollar sign, so that a '_' stands in front of it there.
std::string RustText(absl::string_view text) {
  text.remove_suffix(kRustHashBytes);
  std::string result;
  bool begins = true;
  for (size_t at = 0; at < text.size();) {
    const absl::string_view rest = text.substr(at);
    const bool was_begin = std::exchange(begins, false);
    if (was_begin && absl::StartsWith(rest, "_$")) {
      ++at;
    } else if (absl::StartsWith(rest, "::")) {
      begins = true;
      absl::StrAppend(&result, "::");
      at += 2;
    } else if (absl::StartsWith(rest, "..")) {
      absl::StrAppend(&result, "::");
      at += 2;
    } else if (const std::optional<RustEscape> escape = RustEscapeOf(rest)) {
      absl::StrAppend(&result, escape->text);
      at += escape->bytes;
    } else {
      result += rest[0];
      ++at;
    }
  }
  return result;
}

bool IsIdentifier(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '$'; }

// Steps over "operator" and its symbol, so that "operator<" and "operator()" are not taken for brackets. A conversion
// ("operator std::string") or "operator new" is stepped over up to the name only. 0: no operator stands at `at`.
size_t OperatorBytes(absl::string_view text, size_t at) {
  constexpr absl::string_view kWord = "operator";
  if (!absl::StartsWith(text.substr(at), kWord) || (at > 0 && IsIdentifier(text[at - 1]))) return 0;
  const absl::string_view rest = text.substr(at + kWord.size());
  if (rest.empty() || IsIdentifier(rest.front())) return 0;
  for (const absl::string_view symbol :
       {"()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "->", "<=", ">=", "<", ">"}) {
    if (absl::StartsWith(rest, symbol)) return kWord.size() + symbol.size();
  }
  return kWord.size();
}

// The end of the bracket that opens at `at`, one past it; npos: it does not close.
size_t SkipBracket(absl::string_view text, size_t at) {
  int depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (const size_t bytes = OperatorBytes(text, i); bytes != 0) {
      i += bytes - 1;
      continue;
    }
    const char c = text[i];
    if (c == '(' || c == '<' || c == '{' || c == '[') ++depth;
    if (c == '>' && i > 0 && text[i - 1] == '-') continue;  // "->" in a decltype
    if (c == ')' || c == '>' || c == '}' || c == ']') --depth;
    if (depth == 0) return i + 1;
  }
  return absl::string_view::npos;
}

// Behind a parameter list: " const", " volatile", " &", " &&", "[abi:...]".
size_t SkipQualifiers(absl::string_view text, size_t at) {
  while (true) {
    const absl::string_view rest = text.substr(at);
    size_t bytes = 0;
    for (const absl::string_view qualifier : {" const", " volatile", " &&", " &", " noexcept"}) {
      if (absl::StartsWith(rest, qualifier)) {
        bytes = qualifier.size();
        break;
      }
    }
    if (bytes == 0) return at;
    at += bytes;
  }
}

// Full text of a function -> its name: drops parameter lists, wherever they stand on the outer level, and everything up
// to the last blank on that level, which separates the return type. nullopt: a shape that this does not understand.
std::optional<std::string> NameOnly(absl::string_view text) {
  std::string name;
  bool conversion = false;  // behind "operator ", blanks belong to the type
  for (size_t at = 0; at < text.size();) {
    if (const size_t bytes = OperatorBytes(text, at); bytes != 0) {
      absl::StrAppend(&name, text.substr(at, bytes));
      at += bytes;
      if (at < text.size() && text[at] == ' ' && text.substr(at, 2) != " <") conversion = true;
      continue;
    }
    const char c = text[at];
    if (c == '(' && !absl::StartsWith(text.substr(at), "(anonymous namespace)")) {
      const size_t end = SkipBracket(text, at);
      if (end == absl::string_view::npos) return std::nullopt;
      if (absl::StartsWith(text.substr(at), "(*") || absl::StartsWith(text.substr(at), "(&")) return std::nullopt;
      if (name.empty() || absl::EndsWith(name, " ")) {  // "decltype (x+y) f()": part of a return type
        absl::StrAppend(&name, text.substr(at, end - at));
        at = end;
        continue;
      }
      at = SkipQualifiers(text, end);
      conversion = false;
      continue;
    }
    if (c == '(' || c == '<' || c == '{' || c == '[') {
      const size_t end = SkipBracket(text, at);
      if (end == absl::string_view::npos) return std::nullopt;
      const absl::string_view group = text.substr(at, end - at);
      if (!absl::StartsWith(group, "[abi:")) absl::StrAppend(&name, group);
      at = end;
      continue;
    }
    if (c == ' ' && !conversion) {
      if (text.substr(at, 2) == " <") {  // "operator<< <int>"
        ++at;
        continue;
      }
      name.clear();
      ++at;
      continue;
    }
    name += c;
    ++at;
  }
  if (name.empty()) return std::nullopt;
  return name;
}

// "a::B<c<d>, e>::f<g>" -> "a::B<...>::f<...>".
std::string WithoutTemplateArguments(absl::string_view name) {
  std::string result;
  for (size_t at = 0; at < name.size();) {
    if (const size_t bytes = OperatorBytes(name, at); bytes != 0) {
      absl::StrAppend(&result, name.substr(at, bytes));
      at += bytes;
      continue;
    }
    if (name[at] != '<') {
      result += name[at++];
      continue;
    }
    const size_t end = SkipBracket(name, at);
    // Names of a hostile file may hold any bytes. A search for the end of each of 31,000 such brackets took 1.3 s.
    if (end == absl::string_view::npos) return std::string(name);
    absl::StrAppend(&result, "<...>");
    at = end;
  }
  return result;
}

std::string PlainStdNames(absl::string_view text) {
  const std::string plain = absl::StrReplaceAll(
      text, {{"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
             {"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
             {"std::basic_string_view<char, std::char_traits<char> >", "std::string_view"},
             {"std::__cxx11::", "std::"}});
  return absl::StrReplaceAll(plain, {{" >", ">"}, {"[abi:cxx11]", ""}});
}

// The first of these marks ends the name of the function that the compiler made the piece from.
absl::string_view WithoutCloneMarks(absl::string_view symbol) {
  size_t end = symbol.size();
  for (const absl::string_view mark :
       {".cold", ".part.", ".constprop.", ".isra.", ".lto_priv.", ".llvm.", ".warm", ".clone."}) {
    const size_t at = symbol.find(mark);
    if (at != absl::string_view::npos && at > 0) end = std::min(end, at);
  }
  return symbol.substr(0, end);
}

}  // namespace

std::string DemangleFull(absl::string_view symbol) {
  symbol = WithoutVersion(symbol);
  const absl::string_view plain = WithoutCloneMarks(symbol);
  const std::optional<std::string> whole = Demangle(symbol);
  if (whole && !absl::StrContains(*whole, " [clone ")) return IsRust(*whole) ? RustText(*whole) : *whole;
  // A mark behind the name: "f [clone .llvm.123]". Names without parameters can't be read together with one.
  const std::optional<std::string> text = plain.size() < symbol.size() ? Demangle(plain) : std::nullopt;
  if (!text || (whole && !IsRust(*text))) return whole.value_or(std::string(symbol));
  return absl::StrCat(IsRust(*text) ? RustText(*text) : *text, " [clone ", symbol.substr(plain.size()), "]");
}

std::string DemangleShort(absl::string_view symbol) {
  symbol = WithoutCloneMarks(WithoutVersion(symbol));
  const std::optional<std::string> text = Demangle(symbol);
  if (!text) return std::string(symbol);
  if (IsRust(*text)) return RustText(*text);
  // A symbol that is no function has a phrase in front: "vtable for X", "non-virtual thunk to A::f()", "guard variable
  // for f()::x".
  absl::string_view rest = *text;
  absl::string_view phrase;
  for (const absl::string_view mark : {" thunk to ", " for "}) {
    const size_t at = rest.find(mark);
    // Only words may stand in front: a "for" inside template arguments is not a phrase.
    if (at == absl::string_view::npos || rest.substr(0, at).find_first_of("<(:") != absl::string_view::npos) continue;
    phrase = rest.substr(0, at + mark.size());
    rest.remove_prefix(phrase.size());
    break;
  }
  const std::string plain = PlainStdNames(rest);
  std::string name = NameOnly(plain).value_or(plain);
  if (name.size() > kLongName) name = WithoutTemplateArguments(name);
  return absl::StrCat(phrase, name);
}

}  // namespace clrsampler
