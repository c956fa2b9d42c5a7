#include "output/html.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "output/deflate_base64.h"
#include "output/html_page.h"
#include "output/html_times.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kProfilePlace = "@PROFILE@", kTimesPlace = "@TIMES@";  // in this order
// Of a page, unless its stacks alone are more; and what times may have even then.
constexpr size_t kMostPageBytes = 15'000'000, kLeastTimesBytes = 2'000'000;

// Of the stacks as fine as they fit, and where that is not by the second, those of the lanes by the second behind them.
absl::Status WriteTimes(const ProfileModel& model, const HtmlCells& cells, size_t room, const OutputSink& sink) {
  if (cells.of_row.empty()) return absl::OkStatus();
  const auto pack = [&](std::span<const uint32_t> steps, size_t most) {
    return PackHtmlTimes(model.samples, cells.of_row, cells.count, steps, most);
  };
  room = std::max(room, kLeastTimesBytes);
  absl::StatusOr<std::string> stacks = pack(std::span(kHtmlSteps).first(2), room);
  RETURN_IF_ERROR(stacks.status());
  if (!stacks->empty()) return sink(*stacks);
  std::vector<uint32_t> lane_of_row;
  lane_of_row.reserve(cells.of_row.size());
  for (const uint32_t cell : cells.of_row) lane_of_row.push_back(cells.lanes[cell]);
  const absl::StatusOr<std::string> lanes =
      PackHtmlTimes(model.samples, lane_of_row, cells.lane_count, kHtmlSecond, room / 2);
  RETURN_IF_ERROR(lanes.status());
  stacks = pack(std::span(kHtmlSteps).subspan(2), room - lanes->size());
  RETURN_IF_ERROR(stacks.status());
  RETURN_IF_ERROR(sink(*stacks));
  return sink(lanes->empty() ? "" : absl::StrCat(" ", *lanes));
}

absl::Status WritePage(const ProfileModel& model, const HtmlComparison* comparison, const OutputSink& sink) {
  const absl::string_view page = HtmlPage();
  const size_t place = page.find(kProfilePlace), times_place = page.find(kTimesPlace);
  if (place == absl::string_view::npos || times_place == absl::string_view::npos || times_place < place)
    return absl::InternalError("the page in this program has no place for a profile");
  RETURN_IF_ERROR(sink(page.substr(0, place)));
  size_t bytes = page.size();
  const OutputSink counting = [&](absl::string_view text) {
    bytes += text.size();
    return sink(text);
  };
  DeflateBase64 packed(counting);
  HtmlCells cells;
  RETURN_IF_ERROR(WriteHtmlData(
      model, comparison, [&](absl::string_view text) { return packed.Append(text); }, &cells));
  RETURN_IF_ERROR(packed.Finish());
  const size_t behind = place + kProfilePlace.size();
  RETURN_IF_ERROR(sink(page.substr(behind, times_place - behind)));
  RETURN_IF_ERROR(WriteTimes(model, cells, kMostPageBytes - std::min(kMostPageBytes, bytes), sink));
  return sink(page.substr(times_place + kTimesPlace.size()));
}

}  // namespace

absl::Status HtmlWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  return WritePage(model, nullptr, sink);
}

absl::Status WriteHtmlDiff(const ProfileModel& after, const HtmlComparison& comparison, const OutputSink& sink) {
  return WritePage(after, &comparison, sink);
}

}  // namespace clrsampler
