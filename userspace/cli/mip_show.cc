#include <cinttypes>
#include <cstdio>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/mip_config.h"
#include "cli/mip_files.h"
#include "cli/output_file.h"
#include "formats/mip/mip_document.h"
#include "formats/mip/mip_order.h"
#include "output/json_stream.h"
#include "output/summary.h"
#include "profile/name_filter.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// A profile and the place of its text. The place is opened before the work, so that a failure is reported at once.
struct Printing {
  MipProfile profile;
  OutputFile output;
  NameFilter filter;
  std::optional<MipSourceLines> lines;

  bool Matches(const MipFunction& function) const { return filter.Matches(profile.NameOf(function)); }
};

absl::StatusOr<Printing> Prepare(const MipConfig& config) {
  ASSIGN_OR_RETURN(NameFilter filter, NameFilter::Make("--regex", config.regex));
  ASSIGN_OR_RETURN(OutputFile output, OutputFile::Open(config.output));
  ASSIGN_OR_RETURN(MipProfile profile, ReadMipFile(config.profile));
  Printing printing{std::move(profile), std::move(output), std::move(filter), std::nullopt};
  if (!config.debug.empty()) {
    ASSIGN_OR_RETURN(printing.lines, MipSourceLines::Open(config.debug));
  }
  return printing;
}

// Names as they are, one a line, for linkers. A name with a line break would become two. Terminals obey names with
// other control characters. JSON writes them as escapes.
class NameList {
 public:
  explicit NameList(bool json) : json_(json) {}

  // Whether the name can stand in such a list.
  bool Takes(absl::string_view name) {
    nameless_ += name.empty();
    const bool breaks = !json_ && PrintableText(name) != name;
    broken_ += breaks;
    return !name.empty() && !breaks;
  }
  void PrintLeftOut() const {
    if (nameless_ > 0) {
      std::fprintf(stderr, "note: left out %" PRIu64 " functions whose names the profile does not have\n", nameless_);
    }
    if (broken_ > 0) std::fprintf(stderr, "note: left out %" PRIu64 " names with control characters\n", broken_);
  }

 private:
  const bool json_;
  uint64_t nameless_ = 0, broken_ = 0;
};

std::string ShowText(const Printing& printing, const MipFunction& function) {
  constexpr int kBlocksInLine = 8;
  const absl::string_view name = printing.profile.NameOf(function);
  std::string text =
      name.empty() ? absl::StrFormat("[no name, signature %#018x]", function.signature) : PrintableText(name);
  text += '\n';
  const std::string source = printing.lines ? SourceText(printing.lines->Of(function)) : "";
  if (!source.empty()) absl::StrAppend(&text, "  Source Info: ", PrintableText(source), "\n");
  absl::StrAppend(&text, "  Call Count: ", function.call_count, "\n");
  if (function.timestamp_sum > 0) absl::StrAppend(&text, "  Order Sum: ", function.timestamp_sum, "\n");
  if (function.block_count > 0) {
    text += "  Block Coverage:";
    const std::span<const uint8_t> covered = printing.profile.CoveredOf(function);
    for (size_t i = 0; i <= covered.size(); ++i) {
      if (i % kBlocksInLine == 0) text += "\n    ";
      text += (i == 0 ? function.entry_ran() : covered[i - 1] != 0) ? " HOT " : " COLD";
    }
    text += '\n';
  }
  text += '\n';
  return text;
}

absl::Status WriteDocument(Printing& printing, bool json) {
  MipDocumentOptions options;
  options.keep = [&](const MipFunction& function) { return printing.Matches(function); };
  if (printing.lines) {
    options.source = [&](const MipFunction& function) { return SourceText(printing.lines->Of(function)); };
  }
  const MipSink sink = [&](absl::string_view piece) { return printing.output.Write(piece); };
  RETURN_IF_ERROR(json ? WriteMipJson(printing.profile, options, sink) : WriteMipYaml(printing.profile, options, sink));
  return printing.output.Finish();
}

// {"functions":[...]}, each element as `element` writes it, or lines.
template <typename Element>
absl::Status WriteList(Printing& printing, bool json, size_t size, Element&& element) {
  const OutputSink sink = [&](absl::string_view piece) { return printing.output.Write(piece); };
  JsonStream stream(sink);
  if (json) {
    stream.Raw("{\"functions\":").Array(size, [&](size_t i) { element(i, stream); }).Raw("}\n");
  } else {
    for (size_t i = 0; i < size; ++i) element(i, stream);
  }
  RETURN_IF_ERROR(stream.Finish());
  return printing.output.Finish();
}

}  // namespace

absl::Status ShowMip(const MipConfig& config) {
  ASSIGN_OR_RETURN(Printing printing, Prepare(config));
  if (config.json) return WriteDocument(printing, true);
  for (const MipFunction& function : printing.profile.functions) {
    if (printing.Matches(function)) RETURN_IF_ERROR(printing.output.Write(ShowText(printing, function)));
  }
  return printing.output.Finish();
}

absl::Status MipToYaml(const MipConfig& config) {
  ASSIGN_OR_RETURN(Printing printing, Prepare(config));
  return WriteDocument(printing, config.json);
}

absl::Status PrintMipOrder(const MipConfig& config) {
  ASSIGN_OR_RETURN(Printing printing, Prepare(config));
  const MipProfile& profile = printing.profile;
  NameList names(config.json);
  std::vector<absl::string_view> order;
  std::vector<bool> listed(profile.names.size());  // static functions may share a name, which linkers want to see once
  for (const uint32_t index : MipFunctionOrder(profile)) {
    const MipFunction& function = profile.functions[index];
    const absl::string_view name = profile.NameOf(function);
    if (!printing.Matches(function) || !names.Takes(name) || listed[function.name]) continue;
    listed[function.name] = true;
    order.push_back(name);
  }
  RETURN_IF_ERROR(WriteList(printing, config.json, order.size(), [&](size_t i, JsonStream& out) {
    config.json ? out.String(order[i]) : out.Raw(order[i]).Raw("\n");
  }));
  names.PrintLeftOut();
  std::fprintf(stderr, "ordered %zu names\n", order.size());
  return absl::OkStatus();
}

absl::Status PrintMipCovered(const MipConfig& config) {
  if (config.lines && config.paths) {
    return WithHint(absl::InvalidArgumentError("--lines and --paths are two lists"), "print one after the other");
  }
  if ((config.lines || config.paths) && config.debug.empty()) {
    return WithHint(absl::InvalidArgumentError("--lines and --paths need the program's debug information"),
                    "name the program: --debug PROGRAM");
  }
  ASSIGN_OR_RETURN(Printing printing, Prepare(config));
  const MipProfile& profile = printing.profile;
  NameList names(config.json);
  std::vector<const MipFunction*> covered;
  for (const MipFunction& function : profile.functions) {
    if (function.ran() && printing.Matches(function) && names.Takes(profile.NameOf(function))) {
      covered.push_back(&function);
    }
  }
  const size_t functions = covered.size();
  uint64_t without_lines = 0;
  std::set<std::string> said;  // a file, or a line of it, once
  std::vector<std::string> places;
  if (config.lines || config.paths) {
    for (const MipFunction* function : covered) {
      const std::optional<SourceLine> line = printing.lines->Of(*function);
      without_lines += !line;
      if (!line) continue;
      std::string place = config.lines ? SourceText(line) : line->file;
      if (said.insert(place).second) places.push_back(std::move(place));
    }
    RETURN_IF_ERROR(WriteList(printing, config.json, places.size(), [&](size_t i, JsonStream& out) {
      config.json ? out.String(places[i]) : out.Raw(places[i]).Raw("\n");
    }));
  } else {
    RETURN_IF_ERROR(WriteList(printing, config.json, covered.size(), [&](size_t i, JsonStream& out) {
      const absl::string_view name = profile.NameOf(*covered[i]);
      config.json ? out.String(name) : out.Raw(name).Raw("\n");
    }));
  }
  names.PrintLeftOut();
  if (without_lines > 0) {
    std::fprintf(stderr, "note: %" PRIu64 " functions have no source line in %s\n", without_lines,
                 config.debug.c_str());
  }
  std::fprintf(stderr, "%zu functions are covered\n", functions);
  return absl::OkStatus();
}

absl::Status PrintMipInfo(const MipConfig& config) {
  ASSIGN_OR_RETURN(Printing printing, Prepare(config));
  const MipProfile& profile = printing.profile;
  const MipTotals totals = TotalsOf(profile);
  const std::string layout(TraitsOf(profile.layout).name);
  const std::string kinds = MipKindsText(profile.kinds);
  struct Row {
    const char* text;
    const char* key;
    uint64_t value;
  };
  const Row rows[] = {
      {"Total Raw Profile Count", "raw_profiles", totals.raw_profiles},
      {"Total Machine Functions", "functions", totals.functions},
      {"Profiled Machine Functions", "functions_ran", totals.functions_ran},
      {"Total Machine Basic Blocks", "blocks", totals.blocks},
      {"Covered Machine Basic Blocks", "blocks_ran", totals.blocks_ran},
      {"Total Call Edges", "call_edges", 0},
      {"Total Calls", "calls", totals.calls},
      {"Functions Without Name", "nameless", totals.nameless},
  };
  std::string text;
  if (config.json) {
    text = absl::StrFormat("{\"layout\":\"%s\",\"version\":%u,\"profile_type\":\"%s\",\"module_hash\":\"0x%08X\"",
                           layout, profile.version, kinds, profile.module_hash);
    for (const Row& row : rows) absl::StrAppend(&text, ",\"", row.key, "\":", row.value);
    text += "}\n";
  } else {
    for (const Row& row : rows) absl::StrAppend(&text, row.text, ": ", row.value, "\n");
    absl::StrAppendFormat(&text, "Profile Type: %s\nModule Hash: 0x%08X\nLayout: %s, version %u\n", kinds,
                          profile.module_hash, layout, profile.version);
  }
  RETURN_IF_ERROR(printing.output.Write(text));
  return printing.output.Finish();
}

}  // namespace clrsampler
