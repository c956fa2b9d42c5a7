#include "formats/names/type_text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxDepth = 32;  // deeper arguments are copied as they are
// A signature can name a long argument of its owner again and again ("!0,!0,..."), so the result needs its own bound.
constexpr size_t kMaxText = 4096;

struct Keyword {
  absl::string_view runtime;
  absl::string_view csharp;
};

// Left: what signatures call the primitive types (PrettyPrintSig, dotnet/runtime src/coreclr) and their full
// names, as metadata and crossgen2 give them.
constexpr std::array<Keyword, 38> kKeywords = {{
    {"System.Boolean", "bool"},
    {"System.Byte", "byte"},
    {"System.Char", "char"},
    {"System.Decimal", "decimal"},
    {"System.Double", "double"},
    {"System.Int16", "short"},
    {"System.Int32", "int"},
    {"System.Int64", "long"},
    {"System.IntPtr", "nint"},
    {"System.Object", "object"},
    {"System.SByte", "sbyte"},
    {"System.Single", "float"},
    {"System.String", "string"},
    {"System.UInt16", "ushort"},
    {"System.UInt32", "uint"},
    {"System.UInt64", "ulong"},
    {"System.UIntPtr", "nuint"},
    {"System.Void", "void"},
    {"System.__Canon", "__Canon"},
    {"bool", "bool"},
    {"char", "char"},
    {"float32", "float"},
    {"float64", "double"},
    {"int16", "short"},
    {"int32", "int"},
    {"int64", "long"},
    {"int8", "sbyte"},
    {"native int", "nint"},
    {"native uint", "nuint"},
    {"object", "object"},
    {"refany", "System.TypedReference"},
    {"string", "string"},
    {"typedref", "System.TypedReference"},
    {"uint16", "ushort"},
    {"uint32", "uint"},
    {"uint64", "ulong"},
    {"uint8", "byte"},
    {"void", "void"},
}};

// Binary search needs it.
static_assert([] {
  for (size_t i = 1; i < kKeywords.size(); ++i) {
    if (std::string_view(kKeywords[i].runtime.data(), kKeywords[i].runtime.size()) <=
        std::string_view(kKeywords[i - 1].runtime.data(), kKeywords[i - 1].runtime.size())) {
      return false;
    }
  }
  return true;
}());

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

void AppendTypeName(absl::string_view name, std::span<const std::string> args, bool with_file, std::string& out) {
  if (args.empty()) {
    if (const absl::string_view keyword = CSharpKeyword(name); !keyword.empty()) {
      absl::StrAppend(&out, keyword);
      return;
    }
  } else if (args.size() == 1 && name == "System.Nullable`1") {
    absl::StrAppend(&out, args[0], "?");
    return;
  }
  const std::vector<TypeSegment> segments = SplitTypeName(name);
  const std::vector<std::string> arguments = ArgumentsBySegment(segments, args);
  for (size_t i = 0; i < segments.size(); ++i) {
    if (i != 0) out.push_back('.');
    absl::StrAppend(&out, FileLocalName(segments[i].text, with_file), arguments[i]);
  }
}

// Recursive descent over one text. Every step takes at least one character or leaves its loop.
class TypeParser {
 public:
  TypeParser(absl::string_view text, const TypeContext& context) : text_(text), context_(context) {}

  std::string Parse() {
    std::string out = ParseType(0);
    absl::StrAppend(&out, text_.substr(at_));
    return out;
  }

 private:
  absl::string_view Rest() const { return text_.substr(at_); }
  bool At(char c) const { return at_ < text_.size() && text_[at_] == c; }

  bool Take(absl::string_view token) {
    if (!absl::StartsWith(Rest(), token)) return false;
    at_ += token.size();
    return true;
  }

  // "class ", "valuetype ", "pinned " say what the name does not need; "[System.Runtime]" is only where the reference
  // was resolved through, and differs from the assembly that has the type.
  void SkipPrefixes() {
    while (Take(" ") || Take("class ") || Take("valuetype ") || Take("pinned ")) {
    }
    if (At('[') && NextClose() != kNpos) at_ = NextClose() + 1;
  }

  std::string ParseType(size_t depth) {
    if (depth > kMaxDepth) return CopyUntilSeparator();
    SkipPrefixes();
    if (Take("method ")) return ParseFunctionPointer(depth);
    std::string out;
    if (At('!')) {
      out = ParseVariable();
    } else {
      const absl::string_view name = TakeName();
      std::vector<std::string> args;
      if (At('<') || (At('[') && !AtArray())) args = ParseList(depth);
      AppendTypeName(name, args, context_.with_file, out);
    }
    ParseSuffixes(depth, out);
    return out;
  }

  // The next ']', looked up once for each: a text of many '[' must not be searched again for every one.
  size_t NextClose() const {
    if (next_close_ != kNpos && next_close_ < at_) next_close_ = kUnknown;
    if (next_close_ == kUnknown) next_close_ = text_.find(']', at_);
    return next_close_;
  }

  // An open bracket that never closes is neither; it is left for Parse() to copy.
  bool AtArray() const {
    const size_t close = NextClose();
    return close == kNpos || IsArrayShape(text_.substr(at_ + 1, close - at_ - 1));
  }

  std::string ParseVariable() {
    const size_t start = at_;
    ++at_;
    const bool of_method = Take("!");
    const size_t digits = at_;
    size_t index = 0;
    while (at_ < text_.size() && IsDigit(text_[at_]) && at_ - digits < 5) index = index * 10 + (text_[at_++] - '0');
    if (at_ == digits) return std::string(text_.data() + start, at_ - start);
    if (!of_method && index < context_.type_args.size()) {
      return context_.type_args[index].size() > kMaxText ? "..." : context_.type_args[index];
    }
    return absl::StrCat(of_method ? "M" : "T", index);
  }

  // Up to a character that cannot belong to a name. A '<' at the start of a segment opens a name of a compiler
  // ("<>c__DisplayClass1_0"), elsewhere it opens arguments.
  absl::string_view TakeName() {
    const size_t start = at_;
    bool segment_start = true;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '<' && segment_start && balanced_) {
        const size_t behind = BehindAngle(text_, at_);
        balanced_ = behind != kNpos;
        if (!balanced_) break;
        at_ = behind;
        segment_start = false;
        continue;
      }
      if (absl::StrContains("<[,>]&*()", c)) break;
      if (c == ' ' && !AtNativeInt(start)) break;
      segment_start = c == '.' || c == '+' || c == '/';
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }

  bool AtNativeInt(size_t start) const {
    return text_.substr(start, at_ - start) == "native" &&
           (absl::StartsWith(Rest(), " int") || absl::StartsWith(Rest(), " uint"));
  }

  std::vector<std::string> ParseList(size_t depth) {
    const char close = text_[at_] == '<' ? '>' : text_[at_] == '[' ? ']' : ')';
    ++at_;
    std::vector<std::string> list;
    if (At(close)) {
      ++at_;
      return list;
    }
    size_t bytes = 0;
    while (at_ < text_.size()) {
      std::string item = ParseType(depth + 1);
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != close) item.push_back(text_[at_++]);
      bytes += item.size();
      list.push_back(bytes > kMaxText ? "..." : std::move(item));
      const bool more = At(',');
      if (at_ < text_.size()) ++at_;
      if (!more) break;
    }
    return list;
  }

  // C# reads ranks from the outside in, signatures from the inside out: "int32[][0...,0...]" is int[,][].
  void ParseSuffixes(size_t depth, std::string& out) {
    bool by_reference = false;
    while (at_ < text_.size()) {
      if (At('[') && AtArray() && NextClose() != kNpos) {
        AppendRanks(out);
      } else if (Take("&")) {
        by_reference = true;
      } else if (Take("*")) {
        out.push_back('*');
      } else if (Take(" modreq(") || Take(" modopt(")) {
        SkipParentheses();
      } else if (Take(" (")) {  // crossgen2's function pointer: "System.Int32 (System.Int32)"
        --at_;
        out = FunctionPointer(ParseList(depth), out);
      } else {
        break;
      }
    }
    if (by_reference) out.insert(0, "ref ");
  }

  void AppendRanks(std::string& out) {
    std::vector<size_t> commas;
    while (At('[') && AtArray()) {
      const size_t close = NextClose();
      if (close == kNpos) break;
      commas.push_back(static_cast<size_t>(std::count(text_.begin() + at_, text_.begin() + close, ',')));
      at_ = close + 1;
    }
    for (size_t i = commas.size(); i-- > 0;) absl::StrAppend(&out, "[", std::string(commas[i], ','), "]");
  }

  void SkipParentheses() {
    for (size_t depth = 1; at_ < text_.size() && depth != 0; ++at_) {
      if (text_[at_] == '(') ++depth;
      if (text_[at_] == ')') --depth;
    }
  }

  // "method int32 *(int32)", "method unmanaged void *(uint8*)"
  std::string ParseFunctionPointer(size_t depth) {
    // Calling conventions: crossgen2 does not print them, so they are left out here too.
    while (Take("unmanaged ") || Take("cdecl ") || Take("stdcall ") || Take("thiscall ") || Take("fastcall ") ||
           Take("vararg ")) {
    }
    std::string result = ParseType(depth + 1);
    if (Take(" *(") || Take(" (") || Take("(")) {
      --at_;
      std::string out = FunctionPointer(ParseList(depth), result);
      ParseSuffixes(depth, out);  // "method object *(void*)&"
      return out;
    }
    return absl::StrCat("delegate*<", result, ">");
  }

  static std::string FunctionPointer(const std::vector<std::string>& parameters, absl::string_view result) {
    std::string out = "delegate*<";
    for (const std::string& parameter : parameters) absl::StrAppend(&out, parameter, ", ");
    absl::StrAppend(&out, result, ">");
    return out;
  }

  std::string CopyUntilSeparator() {
    const size_t start = at_;
    size_t open = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (absl::StrContains("<[(", c)) ++open;
      if (absl::StrContains(">])", c) && open-- == 0) break;
      if (c == ',' && open == 0) break;
    }
    return std::string(text_.data() + start, at_ - start);
  }

  absl::string_view text_;
  const TypeContext& context_;
  size_t at_ = 0;
  static constexpr size_t kUnknown = kNpos - 1;
  mutable size_t next_close_ = kUnknown;
  bool balanced_ = true;  // until a '<' had no '>'; searching again at each would be quadratic
};

}  // namespace

bool IsArrayShape(absl::string_view inside) {
  return std::all_of(inside.begin(), inside.end(), [](char c) { return IsDigit(c) || absl::StrContains(",*.-", c); });
}

absl::string_view CSharpKeyword(absl::string_view name) {
  const auto* row = std::lower_bound(kKeywords.begin(), kKeywords.end(), name,
                                     [](const Keyword& k, absl::string_view n) { return k.runtime < n; });
  return row != kKeywords.end() && row->runtime == name ? row->csharp : absl::string_view();
}

size_t BehindAngle(absl::string_view text, size_t open) {
  size_t depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && --depth == 0) return i + 1;
  }
  return kNpos;
}

std::vector<TypeSegment> SplitTypeName(absl::string_view name) {
  std::vector<TypeSegment> segments;
  size_t start = 0;
  const auto take = [&](size_t end) {
    TypeSegment segment{name.substr(start, end - start), 0};
    const size_t tick = segment.text.rfind('`');
    size_t digits = tick == kNpos ? 0 : segment.text.size() - tick - 1;
    if (digits == 1 || digits == 2) {  // each counts as a comma of the text, so not any number
      size_t arity = 0;
      for (const char c : segment.text.substr(tick + 1)) arity = IsDigit(c) ? arity * 10 + (c - '0') : 1000;
      if (arity < 100) segment = {segment.text.substr(0, tick), arity};
    }
    segments.push_back(segment);
    start = end + 1;
  };
  bool segment_start = true;
  bool balanced = true;  // as in TypeParser
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<' && segment_start && balanced) {
      const size_t behind = BehindAngle(name, i);
      segment_start = false;
      balanced = behind != kNpos;
      if (balanced) i = behind - 1;
      continue;
    }
    if (c == '+' || c == '/') take(i);
    segment_start = c == '.' || c == '+' || c == '/';
  }
  take(name.size());
  return segments;
}

std::vector<std::string> ArgumentsBySegment(const std::vector<TypeSegment>& segments,
                                            std::span<const std::string> rendered_args) {
  size_t total = 0;
  for (const TypeSegment& segment : segments) total += segment.arity;
  std::vector<std::string> result(segments.size());
  const auto join = [&](size_t from, size_t count) {
    std::string out = "<";
    for (size_t i = from; i < from + count; ++i) absl::StrAppend(&out, i == from ? "" : ", ", rendered_args[i]);
    return out + ">";
  };
  if (total != rendered_args.size() && !rendered_args.empty()) {
    result.back() = join(0, rendered_args.size());
    return result;
  }
  size_t used = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const size_t arity = segments[i].arity;
    if (arity == 0) continue;
    result[i] = rendered_args.empty() ? absl::StrCat("<", std::string(arity - 1, ','), ">") : join(used, arity);
    used += arity;
  }
  return result;
}

std::string FileLocalName(absl::string_view segment, bool with_file) {
  // "<File>F" + 64 hexadecimal digits + "__" + name
  constexpr size_t kHash = 64;
  size_t open = segment.find('<');
  if (open != 0 && (open == kNpos || segment[open - 1] != '.')) return std::string(segment.data(), segment.size());
  const size_t behind = BehindAngle(segment, open);
  if (behind != kNpos && segment.size() > behind + 1 + kHash + 2 && segment[behind] == 'F' &&
      segment.substr(behind + 1 + kHash, 2) == "__") {
    const absl::string_view hash = segment.substr(behind + 1, kHash);
    if (std::all_of(hash.begin(), hash.end(), [](unsigned char c) { return absl::ascii_isxdigit(c); })) {
      std::string out = absl::StrCat(segment.substr(0, open), segment.substr(behind + 1 + kHash + 2));
      if (with_file) absl::StrAppend(&out, "@", segment.substr(open + 1, behind - open - 2));
      return out;
    }
  }
  return std::string(segment.data(), segment.size());
}

std::string TypeText(absl::string_view type, const TypeContext& context) { return TypeParser(type, context).Parse(); }

}  // namespace clrsampler
