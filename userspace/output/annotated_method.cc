#include "output/annotated_method.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "os/path_text.h"
#include "output/code_view.h"
#include "output/summary.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMostNames = 5;  // in a message
constexpr char kColumns[] = " samples       %";

absl::string_view NameOf(const ProfileModel& model, const ModelCode& code) {
  return model.text(model.frames[code.frame].name);
}

// Methods by name, with their samples.
std::map<absl::string_view, uint64_t> Methods(const ProfileModel& model,
                                              const std::function<bool(absl::string_view)>& accepts) {
  std::map<absl::string_view, uint64_t> methods;
  for (const ModelCode& code : model.code) {
    if (accepts(NameOf(model, code))) methods[NameOf(model, code)] += SamplesOf(code);
  }
  return methods;
}

// "Shop.Cart.Total, Shop.Cart.Pay and 3 more", most samples first.
std::string Listed(const std::map<absl::string_view, uint64_t>& methods) {
  std::vector<std::pair<uint64_t, absl::string_view>> ranked;
  ranked.reserve(methods.size());
  for (const auto& [name, samples] : methods) ranked.emplace_back(samples, name);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kMostNames, ranked.size()); ++i) names.push_back(PrintableText(ranked[i].second));
  const std::string text = absl::StrJoin(names, ", ");
  return ranked.size() <= kMostNames ? text : absl::StrCat(text, " and ", ranked.size() - kMostNames, " more");
}

std::string Costs(uint64_t samples, uint64_t total) {
  if (samples == 0) return std::string(sizeof kColumns - 1, ' ');
  return absl::StrFormat("%8d %6.1f%%", samples, 100 * static_cast<double>(samples) / static_cast<double>(total));
}

class MethodText {
 public:
  MethodText(const ProfileModel& model, const std::vector<size_t>& bodies) : model_(model) {
    for (const size_t i : bodies) {
      bodies_.push_back(&model.code[i]);
      total_ += SamplesOf(model.code[i]);
    }
    for (const ModelCode& code : model.code) by_address_[code.address] = &code;
    for (const ModelSource& source : model.sources) {
      if (!source.text.empty()) sources_[source.file] = absl::StrSplit(source.text, '\n');
    }
  }

  std::string Write(const DisassembleBody& disassemble, const AnnotateOptions& options) {
    absl::StrAppendFormat(&out_, "%s: %d samples in its own code, of %d\n",
                          PrintableText(NameOf(model_, *bodies_.front())), total_, model_.total_weight);
    WriteLines();
    size_t without = 0;
    for (const ModelCode* body : bodies_) {
      if (SamplesOf(*body) == 0 && total_ != 0 && !options.all_bodies) {
        ++without;
        continue;
      }
      WriteBody(*body, disassemble(*body));
    }
    if (without > 0) absl::StrAppendFormat(&out_, "\n%d more without a sample: --all shows them\n", without);
    return std::move(out_);
  }

 private:
  std::string Place(CodePlace line) const {
    if (line.second == 0) return "[no line]";
    std::string place = absl::StrCat(PrintableText(FileNameOf(model_.text(line.first))), ":", line.second);
    const auto source = sources_.find(line.first);
    if (source == sources_.end() || line.second > source->second.size()) return place;
    const absl::string_view text = absl::StripTrailingAsciiWhitespace(source->second[line.second - 1]);
    return absl::StrCat(place, "  ", PrintableText(absl::StrReplaceAll(text, {{"\t", "    "}})));
  }

  void WriteLines() {
    std::map<CodePlace, uint64_t> samples;
    for (const ModelCode* body : bodies_) {
      for (const ModelCodeWeight& at : body->self) samples[PlaceAt(*body, at.offset)] += at.weight;
    }
    // Where the text is there, whole methods are read more easily than a list of lines.
    for (const ModelCode* body : bodies_) {
      for (const ModelCodeLine& line : body->lines) {
        if (line.line != 0 && sources_.contains(line.file)) samples.try_emplace({line.file, line.line}, 0);
      }
    }
    absl::StrAppend(&out_, "\n", kColumns, "  line\n");
    for (const auto& [line, weight] : samples) absl::StrAppend(&out_, Costs(weight, total_), "  ", Place(line), "\n");
  }

  void WriteBody(const ModelCode& body, const std::vector<Instruction>& instructions) {
    absl::StrAppendFormat(&out_, "\n%s: %d samples\n", BodyText(model_, body), SamplesOf(body));
    absl::StrAppend(&out_, kColumns, "  offset  instruction\n");
    std::optional<CodePlace> place;
    for (const CodeRow& row : CodeRows(body, instructions)) {
      if (place != row.place) absl::StrAppend(&out_, std::string(sizeof kColumns + 1, ' '), Place(row.place), "\n");
      place = row.place;
      absl::StrAppendFormat(&out_, "%s  %06x  %s%s\n", Costs(row.samples, total_), row.offset,
                            row.text.empty() ? "[no text]" : PrintableText(row.text), Target(body, row.text));
    }
  }

  // The target of a jump or call, if it is known: " (+00002b)", " (Shop.Order.Price)".
  std::string Target(const ModelCode& body, absl::string_view text) const {
    const size_t at = text.rfind(' ');
    absl::string_view operand = at == absl::string_view::npos ? "" : text.substr(at + 1);
    absl::ConsumePrefix(&operand, "#");
    uint64_t address = 0;
    if (!absl::StartsWith(operand, "0x") || !absl::SimpleHexAtoi(operand, &address)) return "";
    if (address >= body.address && address - body.address < body.bytes.size()) {
      return absl::StrFormat(" (+%06x)", address - body.address);
    }
    const auto found = by_address_.find(address);
    return found == by_address_.end() ? "" : absl::StrCat(" (", PrintableText(NameOf(model_, *found->second)), ")");
  }

  const ProfileModel& model_;
  std::vector<const ModelCode*> bodies_;
  uint64_t total_ = 0;
  absl::flat_hash_map<uint64_t, const ModelCode*> by_address_;
  absl::flat_hash_map<StringIndex, std::vector<std::string>> sources_;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::vector<size_t>> BodiesOfMethod(const ProfileModel& model, absl::string_view method) {
  if (model.code.empty()) {
    return WithHint(absl::FailedPreconditionError("the profile has no machine code"),
                    "record it with --code: clrsampler record --pid PID --code -o cpu.json");
  }
  const std::function<bool(absl::string_view)> rules[] = {
      [&](absl::string_view name) { return name == method; },
      [&](absl::string_view name) { return absl::EndsWith(name, absl::StrCat(".", method)); },
      [&](absl::string_view name) { return absl::StrContains(name, method); },
  };
  for (const auto& rule : rules) {
    const std::map<absl::string_view, uint64_t> methods = Methods(model, rule);
    if (methods.empty()) continue;
    if (methods.size() > 1) {
      return WithHint(absl::InvalidArgumentError(
                          absl::StrCat("\"", method, "\" may be ", methods.size(), " methods: ", Listed(methods))),
                      "give more of the name");
    }
    std::vector<size_t> bodies;
    for (size_t i = 0; i < model.code.size(); ++i) {
      if (rule(NameOf(model, model.code[i]))) bodies.push_back(i);
    }
    std::stable_sort(bodies.begin(), bodies.end(),
                     [&](size_t a, size_t b) { return SamplesOf(model.code[a]) > SamplesOf(model.code[b]); });
    return bodies;
  }
  return WithHint(absl::NotFoundError(absl::StrCat("no method of the profile is called \"", method, "\"")),
                  absl::StrCat("it has ", Listed(Methods(model, [](absl::string_view) { return true; }))));
}

std::string AnnotatedMethod(const ProfileModel& model, const std::vector<size_t>& bodies,
                            const DisassembleBody& disassemble, const AnnotateOptions& options) {
  return MethodText(model, bodies).Write(disassemble, options);
}

}  // namespace clrsampler
