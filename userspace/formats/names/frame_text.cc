#include "formats/names/frame_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "formats/names/type_text.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxNesting = 8;           // of names inside compiler-generated names
constexpr size_t kMaxParameterText = 4096;  // a parameter list longer than this ends in "..."

// "0_1", "3", "0_1#2" (edit and continue)
bool IsOrdinal(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return absl::ascii_isdigit(c) || c == '_' || c == '#'; });
}

// A name that the C# compiler made out of another: "<inner>rest". Roslyn src/Compilers/CSharp/Portable/Symbols/
// Synthesized/GeneratedNames.cs and GeneratedNameKind.cs: 'b' lambda, 'g' local function, 'd' state machine,
// 'c' closure class.
struct GeneratedName {
  absl::string_view inner;
  absl::string_view rest;
};

bool SplitGenerated(absl::string_view name, GeneratedName& out) {
  if (name.empty() || name.front() != '<') return false;
  const size_t behind = BehindAngle(name, 0);
  if (behind == kNpos) return false;
  out = {name.substr(1, behind - 2), name.substr(behind)};
  return true;
}

// "<>c" and "<>c__7" hold lambdas that capture nothing, "<>c__DisplayClass7_0" those that do. `method_ordinal` gets the
// 7: inside a display class the names of lambdas leave it out.
bool IsClosureClass(absl::string_view segment, absl::string_view& method_ordinal) {
  if (!absl::ConsumePrefix(&segment, "<>c")) return false;
  method_ordinal = "";
  if (segment.empty()) return true;
  if (!absl::ConsumePrefix(&segment, "__")) return false;
  if (absl::ConsumePrefix(&segment, "DisplayClass")) {
    if (!IsOrdinal(segment)) return false;
    method_ordinal = segment.substr(0, segment.find('_'));
    return true;
  }
  return IsOrdinal(segment);
}

// "<RunAsync>d__5" and, for lambdas and local functions, "<<Run>b__0_1>d".
bool IsStateMachine(absl::string_view segment) {
  GeneratedName name;
  if (!SplitGenerated(segment, name) || name.inner.empty()) return false;
  if (name.rest == "d") return true;
  return absl::ConsumePrefix(&name.rest, "d__") && IsOrdinal(name.rest);
}

bool IsLambdaOrLocalFunction(absl::string_view name) {
  GeneratedName generated;
  if (!SplitGenerated(name, generated) || generated.inner.empty()) return false;
  if (absl::ConsumePrefix(&generated.rest, "b__")) return IsOrdinal(generated.rest);
  if (!absl::ConsumePrefix(&generated.rest, "g__")) return false;
  const size_t bar = generated.rest.rfind('|');
  return bar != kNpos && bar != 0 && IsOrdinal(generated.rest.substr(bar + 1));
}

// Explicit implementations carry the interface's C# text but with full names of the arguments:
// "System.Collections.Generic.IEnumerator<System.Int32>.get_Current".
std::string WithKeywords(absl::string_view member) {
  std::string out;
  size_t depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= member.size(); ++i) {
    const char c = i < member.size() ? member[i] : '>';
    if (!absl::StrContains("<>,[?*", c)) continue;
    const absl::string_view word = member.substr(start, i - start);
    const absl::string_view keyword = depth == 0 ? absl::string_view() : CSharpKeyword(word);
    absl::StrAppend(&out, keyword.empty() ? word : keyword);
    if (i == member.size()) break;
    out.push_back(c);
    if (c == ',' && depth > 0 && !absl::StartsWith(member.substr(i + 1), " ")) out.push_back(' ');
    if (c == '<') ++depth;
    if (c == '>' && depth > 0) --depth;
    start = i + 1;
  }
  return out;
}

class PathBuilder {
 public:
  explicit PathBuilder(bool full) : full_(full) {}

  std::string Build(const MethodName& name, std::span<const std::string> type_args) {
    if (!name.type.empty()) AppendOwner(name.type, type_args);
    AppendMethod(name.method);
    // "::" is how sources join owner and method; with it gone a text reads the same wherever it was split.
    return absl::StrContains(path_, "::") ? absl::StrReplaceAll(path_, {{"::", "."}}) : std::move(path_);
  }

 private:
  void Append(absl::string_view part) {
    if (!path_.empty()) path_.push_back('.');
    absl::StrAppend(&path_, part);
  }

  void AppendOwner(absl::string_view type, std::span<const std::string> type_args) {
    const std::vector<TypeSegment> segments = SplitTypeName(type);
    std::vector<std::string> arguments = ArgumentsBySegment(segments, type_args);
    for (size_t i = 0; i < segments.size(); ++i) {
      const absl::string_view text = segments[i].text;
      absl::string_view ordinal;
      if (IsClosureClass(text, ordinal)) {
        FlushClosure();
        closure_ = absl::StrCat(text, arguments[i]);
        closure_ordinal_ = ordinal;
      } else if (IsStateMachine(text)) {
        AppendStateMachine(text);
      } else {
        FlushClosure();
        Append(absl::StrCat(FileLocalName(text, full_), arguments[i]));
        simple_name_ = SimpleName(text);
        in_state_machine_ = false;
      }
    }
  }

  // The class's own name as its constructors carry it; empty where C# shows no class.
  static std::string SimpleName(absl::string_view segment) {
    const std::string local = FileLocalName(segment, false);
    size_t start = 0;
    for (size_t i = 0; i < local.size(); ++i) {
      if (local[i] == '<' && i == start) return "";
      if (local[i] == '.') start = i + 1;
    }
    return local.substr(start);
  }

  void FlushClosure() {
    if (closure_.empty()) return;
    Append(closure_);
    closure_.clear();
    simple_name_.clear();
    in_state_machine_ = false;
  }

  void AppendStateMachine(absl::string_view segment) {
    GeneratedName name;
    SplitGenerated(segment, name);
    if (IsLambdaOrLocalFunction(name.inner)) {
      closure_.clear();
    } else {
      FlushClosure();
    }
    dots_as_dashes_ = true;  // a type's name cannot hold the dots of an explicit interface implementation
    AppendMember(name.inner, 0);
    dots_as_dashes_ = false;
    // Overloads differ in nothing else: a state machine has no parameters.
    if (full_ && absl::ConsumePrefix(&name.rest, "d__")) absl::StrAppend(&path_, "|", name.rest);
    in_state_machine_ = true;
  }

  void AppendMethod(absl::string_view method) {
    if (in_state_machine_ && closure_.empty()) {
      if (method == "MoveNext" && !full_) return;
      simple_name_.clear();
      AppendMember(method, 0);
      return;
    }
    if (!closure_.empty()) {
      if (IsLambdaOrLocalFunction(method)) {
        closure_.clear();
      } else {
        FlushClosure();
      }
    }
    AppendMember(method, 0);
  }

  void AppendMember(absl::string_view member, size_t nesting) {
    if (member == ".ctor") return Append(simple_name_.empty() ? "<ctor>" : simple_name_);
    if (member == ".cctor") return Append(simple_name_.empty() ? "<cctor>" : absl::StrCat("static ", simple_name_));
    GeneratedName name;
    if (nesting < kMaxNesting && SplitGenerated(member, name)) {
      if (name.inner == "Main" && (name.rest == "$" || (name.rest.empty() && !full_))) return Append("Main");
      if (IsLambdaOrLocalFunction(member)) {
        AppendMember(name.inner, nesting + 1);
        return AppendFunction(name.rest);
      }
    }
    const std::string dotted = dots_as_dashes_ ? absl::StrReplaceAll(member, {{"-", "."}}) : std::string(member);
    const size_t angle = dotted.find('<');
    Append(angle == kNpos || angle == 0 ? dotted : WithKeywords(dotted));
  }

  // "b__0_1" or "g__Add|0_1"
  void AppendFunction(absl::string_view rest) {
    const bool lambda = rest.front() == 'b';
    rest.remove_prefix(3);
    const size_t bar = lambda ? kNpos : rest.rfind('|');
    std::string ordinal(lambda ? rest : rest.substr(bar + 1));
    if (!absl::StrContains(ordinal, "_") && !closure_ordinal_.empty()) {
      ordinal = absl::StrCat(closure_ordinal_, "_", ordinal);
    }
    if (lambda) return Append(absl::StrCat("<lambda_", ordinal, ">"));
    Append(full_ ? absl::StrCat(rest.substr(0, bar), "|", ordinal) : std::string(rest.substr(0, bar)));
  }

  const bool full_;
  std::string path_;
  std::string simple_name_;
  std::string closure_;  // closure class that has not been written: it is left out when a lambda follows
  absl::string_view closure_ordinal_;
  bool in_state_machine_ = false;
  bool dots_as_dashes_ = false;
};

std::vector<std::string> RenderAll(const std::vector<std::string>& types, const TypeContext& context) {
  std::vector<std::string> out;
  out.reserve(types.size());
  for (const std::string& type : types) out.push_back(TypeText(type, context));
  return out;
}

std::string Parameters(const MethodName& name, const TypeContext& context) {
  if (!name.parameters.has_value()) return "";
  std::string out = "(";
  for (const std::string& parameter : *name.parameters) {
    if (out.size() > 1) out.append(", ");
    if (out.size() > kMaxParameterText) {
      out.append("...");
      break;
    }
    out.append(TypeText(parameter, context));
  }
  return out + ")";
}

// "AllocateTemporaryEntryPoints<PRECODE_STUB>" names the maker of a stub, and inside it the kind. The maker names the
// kind only where the runtime says no more than "Unknown". Each kind has one word, that of the code range lists of
// newer runtimes, whatever source the name is from.
absl::string_view StubKind(absl::string_view description) {
  static constexpr std::pair<absl::string_view, absl::string_view> kOneWord[] = {
      {"GenerateDispatchStub", "VSD_DispatchStub"}, {"GenerateResolveStub", "VSD_ResolveStub"},
      {"GenerateLookupStub", "VSD_LookupStub"},     {"GenerateVTableCallStub", "VSD_VTableStub"},
      {"JIT_CopiedWriteBarriers", "WriteBarrier"},
  };
  const size_t open = description.find('<');
  if (open == kNpos || open == 0 || description.back() != '>') return description;
  const absl::string_view kind = description.substr(open + 1, description.size() - open - 2);
  for (const auto& [written, word] : kOneWord) {
    if (kind == written) return word;
  }
  return kind.empty() || kind == "Unknown" ? description.substr(0, open) : kind;
}

// Sources differ in whether a blank follows the commas inside of an argument.
std::string JoinRaw(const std::vector<std::string>& types) {
  return absl::StrReplaceAll(absl::StrJoin(types, ","), {{", ", ","}});
}

std::string OwnerAndName(const MethodName& name) {
  std::string out = name.type;
  if (!name.type_args.empty()) absl::StrAppend(&out, "[", JoinRaw(name.type_args), "]");
  absl::StrAppend(&out, name.type.empty() ? "" : "::", name.method);
  return out;
}

std::string RawText(const MethodName& name) {
  if (name.kind == MethodKind::kStub) return absl::StrCat("stub ", name.method);
  std::string out = OwnerAndName(name);
  if (!name.method_args.empty()) absl::StrAppend(&out, "[", JoinRaw(name.method_args), "]");
  if (name.parameters.has_value()) absl::StrAppend(&out, "(", JoinRaw(*name.parameters), ")");
  return out;
}

std::string CSharpText(const MethodName& name, bool full) {
  TypeContext context{.type_args = {}, .with_file = full};
  switch (name.kind) {
    case MethodKind::kStub:
      return absl::StrCat("[stub ", full ? name.method : StubKind(name.method), "]");
    case MethodKind::kIlStub:
      if (!full && name.method == kAsyncResumeStub) return "[stub AsyncResume]";
      return absl::StrCat("[stub ", name.method, full ? Parameters(name, context) : "", "]");
    case MethodKind::kDynamicMethod:
      return absl::StrCat("[dynamic] ", name.method, full ? Parameters(name, context) : "");
    case MethodKind::kMethod:
      break;
  }
  const std::vector<std::string> type_args = RenderAll(name.type_args, context);
  std::string path = PathBuilder(full).Build(name, type_args);
  if (!full) return path;
  context.type_args = type_args;
  absl::string_view module = name.module;
  absl::ConsumeSuffix(&module, ".dll");
  return absl::StrCat(module, module.empty() ? "" : "!", path, Parameters(name, context));
}

}  // namespace

std::string MethodSymbol(const MethodName& name) {
  return name.kind != MethodKind::kMethod || name.type.empty() ? "" : OwnerAndName(name);
}

std::string SignatureText(const MethodName& name, absl::string_view result) {
  TypeContext context{.type_args = {}, .with_file = true};
  const std::vector<std::string> type_args = RenderAll(name.type_args, context);
  const std::string path = PathBuilder(/*full=*/true).Build(name, type_args);
  context.type_args = type_args;
  return absl::StrCat(TypeText(result, context), " ", path, Parameters(name, context));
}

std::string FrameText(const MethodName& name, NameStyle style) {
  if (style == NameStyle::kRaw) return RawText(name);
  std::string out = CSharpText(name, style == NameStyle::kFull);
  if (style == NameStyle::kFull) {
    if (!name.tier.empty()) absl::StrAppend(&out, " [", name.tier, "]");
  } else {
    // Tools that fold stacks cut a name at its first '('.
    std::replace(out.begin(), out.end(), '(', '[');
    std::replace(out.begin(), out.end(), ')', ']');
  }
  return out;
}

std::string TypeNameText(absl::string_view type, NameStyle style) {
  return style == NameStyle::kRaw ? std::string(type) : TypeText(type, {});
}

}  // namespace clrsampler
