// Pictures of profiles with any names. A line of the input is a stack: its process, thread and frames, with a ';'
// between.
//
// Whatever the names are, the SVG is well-formed XML of our own elements, the page's data is JSON whose indexes hold,
// and both show each sample.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "output/html_data.h"
#include "output/html_times.h"
#include "output/svg.h"

namespace clrsampler {
namespace {

ProfileModel ModelOf(absl::string_view input) {
  ProfileModelBuilder builder;
  for (const absl::string_view line : absl::StrSplit(input, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ';');
    ModelThread thread;
    thread.pid = static_cast<uint32_t>(words.size() % 3);
    thread.comm = builder.String(words[0]);
    thread.name = builder.String(words.size() > 1 ? words[1] : "");
    NodeIndex node = kRootNode;
    for (size_t i = 2; i < words.size() && i < 600; ++i) {
      ModelFrame frame;
      frame.kind = static_cast<ModelFrameKind>(words[i].size() % kModelFrameKindCount);
      frame.name = builder.String(words[i]);
      frame.tier = builder.String(words[i].substr(0, 1));
      node = builder.Node(node, builder.Frame(frame));
    }
    // Some without a time, some far apart.
    const uint64_t time_ns = words.size() % 5 == 0 ? kNoTime : uint64_t{1} << line.size() % 63;
    builder.Add({.time_ns = time_ns, .thread = builder.Thread(thread), .stack = node, .weight = line.size() + 1});
  }
  builder.meta().command = std::string(input.substr(0, input.size() % 200));
  builder.meta().account_json = std::string(input.substr(0, input.size() % 50));
  return *std::move(builder).Build();
}

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void RequireXml(const std::string& svg) {
  constexpr std::array<absl::string_view, 8> kTags = {"<svg ",   "</svg>", "<rect ", "<text ",
                                                      "</text>", "<g>",    "</g>",   "<title>"};
  constexpr std::array<absl::string_view, 4> kEntities = {"&amp;", "&lt;", "&gt;", "&quot;"};
  const absl::string_view text = svg;
  for (size_t i = 0; i < text.size(); ++i) {
    const absl::string_view rest = text.substr(i);
    const auto begins = [&](absl::string_view part) { return absl::StartsWith(rest, part); };
    if (text[i] == '<') Require(begins("</title>") || std::any_of(kTags.begin(), kTags.end(), begins));
    if (text[i] == '&') Require(std::any_of(kEntities.begin(), kEntities.end(), begins));
    Require(text[i] == '\n' || static_cast<unsigned char>(text[i]) >= 0x20);
  }
  (void)nlohmann::json(svg).dump();  // throws if it is no UTF-8
}

void RequireData(const nlohmann::json& data, uint64_t total) {
  const size_t strings = data["strings"].size(), frames = data["frames"]["name"].size();
  const size_t nodes = data["nodes"]["up"].size(), threads = data["threads"]["tid"].size();
  for (const char* column : {"name", "module", "tier", "source"}) {
    Require(data["frames"][column].size() == frames);
    for (const auto& index : data["frames"][column]) Require(index < strings);
  }
  for (size_t i = 0; i < nodes; ++i) {
    Require(data["nodes"]["up"][i] >= 1 && data["nodes"]["up"][i] <= i + 1 && data["nodes"]["frame"][i] < frames);
  }
  int64_t node = -1;
  uint64_t sum = 0;
  for (size_t i = 0; i < data["cells"]["step"].size(); ++i) {
    node += data["cells"]["step"][i].get<int64_t>();
    Require(node < static_cast<int64_t>(nodes) && data["cells"]["thread"][i] < threads);
    sum += data["cells"]["weight"][i].get<uint64_t>();
  }
  Require(sum == total);
}

}  // namespace
}  // namespace clrsampler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;  // NOLINT
  const ProfileModel model = ModelOf(absl::string_view(reinterpret_cast<const char*>(data), size));
  std::string out;
  const OutputSink sink = [&out](absl::string_view text) {
    out.append(text.data(), text.size());
    return absl::OkStatus();
  };
  Require(SvgWriter().Write(model, sink).ok());
  RequireXml(out);
  out.clear();
  HtmlCells cells;
  Require(WriteHtmlData(model, nullptr, sink, &cells).ok());
  RequireData(nlohmann::json::parse(out), model.total_weight);
  Require(cells.of_row.empty() || cells.of_row.size() == model.samples.size());
  if (!cells.of_row.empty()) {
    Require(PackHtmlTimes(model.samples, cells.of_row, cells.count, kHtmlSteps, size % 4096).ok());
  }
  if (model.total_weight == 0) return 0;  // there is nothing to compare
  const absl::StatusOr<ProfileDiff> diff = DiffProfiles(model, model, DiffBasis::kShare);
  Require(diff.ok());
  const HtmlComparison comparison{model, *diff};
  out.clear();
  Require(WriteHtmlData(model, &comparison, sink).ok());
  RequireData(nlohmann::json::parse(out), model.total_weight);
  return 0;
}
