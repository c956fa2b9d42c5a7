#include "output/html.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "output/deflate_base64.h"
#include "output/html_page.h"
#include "output/html_times.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kPlaces[] = {"@PROFILE@", "@LANES@", "@TIMES@"};  // in this order
// The most bytes of a page, unless its stacks alone are more. Times may have the least room even then.
constexpr size_t kMostPageBytes = 15'000'000, kLeastTimesBytes = 2'000'000;

struct PackedTimes {
  std::string lanes, stacks;
};

// The times of the stacks, as fine as they fit. Where that is not by the second, the lanes have theirs by the second as
// well.
absl::StatusOr<PackedTimes> PackTimes(const ProfileModel& model, const HtmlCells& cells, size_t room) {
  if (cells.of_row.empty()) return PackedTimes();
  const auto pack = [&](std::span<const uint32_t> steps, size_t most) {
    return PackHtmlTimes(model.samples, cells.of_row, cells.count, steps, most);
  };
  room = std::max(room, kLeastTimesBytes);
  ASSIGN_OR_RETURN(std::string fine, pack(std::span(kHtmlSteps).first(2), room));
  if (!fine.empty()) return PackedTimes{.lanes = "", .stacks = std::move(fine)};
  std::vector<uint32_t> lane_of_row;
  lane_of_row.reserve(cells.of_row.size());
  for (const uint32_t cell : cells.of_row) lane_of_row.push_back(cells.lanes[cell]);
  PackedTimes times;
  ASSIGN_OR_RETURN(times.lanes, PackHtmlTimes(model.samples, lane_of_row, cells.lane_count, kHtmlSecond, room / 2));
  ASSIGN_OR_RETURN(times.stacks, pack(std::span(kHtmlSteps).subspan(2), room - times.lanes.size()));
  if (times.stacks.empty()) times.lanes.clear();  // a map without them would answer nothing
  return times;
}

absl::Status WritePage(const ProfileModel& model, const HtmlComparison* comparison, const OutputSink& sink) {
  absl::string_view rest = HtmlPage();
  std::vector<absl::string_view> parts;  // before, between and behind the places
  for (const absl::string_view place : kPlaces) {
    const size_t at = rest.find(place);
    if (at == absl::string_view::npos)
      return absl::InternalError("the page in this program has no place for a profile");
    parts.push_back(rest.substr(0, at));
    rest.remove_prefix(at + place.size());
  }
  RETURN_IF_ERROR(sink(parts[0]));
  size_t bytes = HtmlPage().size();
  const OutputSink counting = [&](absl::string_view text) {
    bytes += text.size();
    return sink(text);
  };
  DeflateBase64 packed(counting);
  HtmlCells cells;
  RETURN_IF_ERROR(WriteHtmlData(
      model, comparison, [&](absl::string_view text) { return packed.Append(text); }, &cells));
  RETURN_IF_ERROR(packed.Finish());
  ASSIGN_OR_RETURN(const PackedTimes times, PackTimes(model, cells, kMostPageBytes - std::min(kMostPageBytes, bytes)));
  for (const absl::string_view text :
       {parts[1], absl::string_view(times.lanes), parts[2], absl::string_view(times.stacks)}) {
    RETURN_IF_ERROR(sink(text));
  }
  return sink(rest);
}

}  // namespace

absl::Status HtmlWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  return WritePage(model, nullptr, sink);
}

absl::Status WriteHtmlDiff(const ProfileModel& after, const HtmlComparison& comparison, const OutputSink& sink) {
  return WritePage(after, &comparison, sink);
}

}  // namespace clrsampler
