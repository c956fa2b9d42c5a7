#include "cli/names_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/frame_words.h"
#include "cli/lines_option.h"
#include "cli/names_option.h"
#include "formats/profile/profile_model.h"
#include "os/file_io.h"
#include "output/summary.h"
#include "pipeline/address_symbolizer.h"
#include "pipeline/agent_sandbox.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxNamesBytes = 64 << 20;

// "Ns.Type[Args]::Method[Args](Parameters)" -> owner and method without parameters.
std::pair<std::string, std::string> SplitRaw(const std::string& text) {
  size_t split = std::string::npos, end = text.size();
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (depth != 0) continue;
    if (text[i] == ':' && i + 1 < text.size() && text[i + 1] == ':' && split == std::string::npos) split = i;
    if (text[i] == '(' && split != std::string::npos) {
      end = i;
      break;
    }
  }
  if (split == std::string::npos) return {"", text};
  return {text.substr(0, split), text.substr(split + 2, end - split - 2)};
}

absl::StatusOr<uint64_t> ParseAddress(absl::string_view text) {
  uint64_t address = 0;
  if (absl::StartsWith(text, "0x")) text.remove_prefix(2);
  if (!absl::SimpleHexAtoi(text, &address)) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat(text, " is not an address")), "write it as 7f12345678ab");
  }
  return address;
}

}  // namespace

std::string NamesRow(uint64_t address, const Frame& frame, bool with_line) {
  const auto [type, method] = frame.named() ? SplitRaw(frame.text) : std::pair<std::string, std::string>();
  std::string row = absl::StrCat(absl::Hex(address), "\t", FrameKindText(frame), "\t", NameSourceText(frame.source));
  for (const absl::string_view column :
       std::initializer_list<absl::string_view>{type, method, frame.module, frame.tier, frame.text}) {
    absl::StrAppend(&row, "\t", PrintableText(column));
  }
  if (!with_line) return row;
  const SourcePlace& place = frame.place;
  return absl::StrCat(row, "\t", PrintableText(place.file), "\t", place.line, "\t", place.column, "\t",
                      LineKindText(place.kind));
}

void DeclareNamesOptions(CLI::App& app, NamesConfig& config) {
  app.add_option("address", config.addresses, "addresses in hexadecimal")->type_name("ADDRESS");
  app.add_option("--pid,-p", config.pid, "the process")->required()->type_name("PID");
  app.add_option("--addresses", config.addresses_file, "a file with one address a line")->type_name("FILE");
  app.add_option("--random", config.random, "that many addresses inside managed code that can run")->type_name("N");
  app.add_option("--seed", config.seed, "of --random")->type_name("N")->capture_default_str();
  app.add_option("--without", config.without, "leave out sources: files, images, memory")
      ->delimiter(',')
      ->check(CLI::IsMember({"files", "perf-map", "jitdump", "images", "memory"}));
  DeclareNames(app, config.names);
  DeclareLines(app, config.lines);
}

absl::Status RunNames(const NamesConfig& config) {
  AddressSymbolizerOptions options;
  options.names = config.names;
  options.lines = config.lines;
  for (const std::string& source : config.without) {
    if (source == "files" || source == "perf-map" || source == "jitdump") options.without_files = true;
    if (source == "images") options.without_images = true;
    if (source == "memory") options.without_memory = true;
  }
  RecordOptions nothing_planted;
  nothing_planted.roles = false;
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  options.files = files.get();
  options.line_helper = LineHelperFor(config.lines);
  RETURN_IF_ERROR(EnterAgentSandbox(nothing_planted, {}).status());
  ASSIGN_OR_RETURN(std::unique_ptr<AddressSymbolizer> symbolizer, AddressSymbolizer::Create(config.pid, options));
  std::vector<std::string> texts = config.addresses;
  if (!config.addresses_file.empty()) {
    ASSIGN_OR_RETURN(const std::string file, ReadWholeFile(config.addresses_file, kMaxNamesBytes));
    for (const absl::string_view line : absl::StrSplit(file, '\n', absl::SkipWhitespace())) texts.emplace_back(line);
  }
  std::vector<uint64_t> addresses;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const uint64_t address, ParseAddress(text));
    addresses.push_back(address);
  }
  if (config.random != 0) {
    ASSIGN_OR_RETURN(std::vector<uint64_t> random, symbolizer->RandomCode(config.random, config.seed));
    addresses.insert(addresses.end(), random.begin(), random.end());
  }
  if (addresses.empty()) {
    return WithHint(absl::InvalidArgumentError("no addresses to name"),
                    "give some, or --addresses FILE, or --random 100");
  }
  std::printf("#address\tkind\tsource\ttype\tmethod\tmodule\ttier\ttext%s\n",
              config.lines.wanted ? "\tfile\tline\tcolumn\tline kind" : "");
  const std::vector<Frame> frames = symbolizer->Name(addresses);
  for (size_t i = 0; i < addresses.size(); ++i) {
    std::printf("%s\n", NamesRow(addresses[i], frames[i], config.lines.wanted).c_str());
  }
  for (const std::string& notice : symbolizer->notices()) {
    std::fprintf(stderr, "note: %s\n", PrintableText(notice).c_str());
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
