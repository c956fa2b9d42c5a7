#include "output/html.h"

#include "absl/strings/string_view.h"
#include "output/deflate_base64.h"
#include "output/html_page.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kProfilePlace = "@PROFILE@";

absl::Status WritePage(const ProfileModel& model, const HtmlComparison* comparison, const OutputSink& sink) {
  const absl::string_view page = HtmlPage();
  const size_t place = page.find(kProfilePlace);
  if (place == absl::string_view::npos)
    return absl::InternalError("the page in this program has no place for a profile");
  RETURN_IF_ERROR(sink(page.substr(0, place)));
  DeflateBase64 packed(sink);
  RETURN_IF_ERROR(WriteHtmlData(model, comparison, [&](absl::string_view text) { return packed.Append(text); }));
  RETURN_IF_ERROR(packed.Finish());
  return sink(page.substr(place + kProfilePlace.size()));
}

}  // namespace

absl::Status HtmlWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  return WritePage(model, nullptr, sink);
}

absl::Status WriteHtmlDiff(const ProfileModel& after, const HtmlComparison& comparison, const OutputSink& sink) {
  return WritePage(after, &comparison, sink);
}

}  // namespace clrsampler
