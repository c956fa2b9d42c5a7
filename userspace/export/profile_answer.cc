#include "export/profile_answer.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "output/diff_text.h"
#include "output/folded.h"
#include "output/html.h"
#include "output/html_data.h"
#include "output/profile_writer.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kDiffRows = 50;
constexpr absl::string_view kText = "text/plain; charset=utf-8";
// The page itself allows one script by its hash. The policy of the answer must not be narrower. The page has no origin.
// So it could not ask us for more, even if somebody had made it do so.
constexpr absl::string_view kPagePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads";
constexpr absl::string_view kPicturePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

// Collects what a writer writes.
class Body {
 public:
  OutputSink Sink() {
    return [this](absl::string_view piece) -> absl::Status {
      if (piece.size() > kMaxAnswerBytes - text_.size()) {
        return WithHint(
            absl::ResourceExhaustedError(absl::StrCat("the answer has more than ", kMaxAnswerBytes, " bytes")),
            "ask for a shorter time, one process, or format=pprof");
      }
      text_.append(piece.data(), piece.size());
      return absl::OkStatus();
    };
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

struct FormatTraits {
  absl::string_view format, content_type, policy, file;
};
constexpr FormatTraits kFormats[] = {
    {"folded", kText, "", ""},
    {"json", "application/json", "", ""},
    {"pprof", "application/octet-stream", "", "profile.pb.gz"},
    {"speedscope", "application/json", "", ""},
    {"html", "text/html; charset=utf-8", kPagePolicy, ""},
    {"svg", "image/svg+xml", kPicturePolicy, ""},
    {"page", "application/json", "", ""},
    {"order", kText, "", ""},
    {"callchain", "application/json", "", ""},
    {"mip", "application/octet-stream", "", "profile.mip"},
    {"text", kText, "", ""},
    {"difffolded", kText, "", ""},
};

HttpAnswer Dressed(absl::string_view format, std::string body) {
  for (const FormatTraits& traits : kFormats) {
    if (traits.format != format) continue;
    HttpAnswer answer = TextAnswer(traits.content_type, std::move(body));
    if (!traits.policy.empty()) answer.headers.emplace_back("Content-Security-Policy", traits.policy);
    if (!traits.file.empty()) {
      answer.headers.emplace_back("Content-Disposition", absl::StrCat("attachment; filename=\"", traits.file, "\""));
    }
    return answer;
  }
  return TextAnswer("application/octet-stream", std::move(body));
}

}  // namespace

absl::StatusOr<HttpAnswer> ProfileAnswer(const ProfileModel& model, const ProfileForm& form) {
  Body body;
  if (form.format == "page") {
    RETURN_IF_ERROR(WriteHtmlData(model, nullptr, body.Sink()));
    return Dressed(form.format, body.Take());
  }
  const WriterRow* row = WriterOfFormat(form.format);
  if (row == nullptr) return absl::InvalidArgumentError(absl::StrCat("format=", form.format, " is not known"));
  WriterOptions options;
  options.module = form.module;
  RETURN_IF_ERROR(row->make(options)->Write(model, body.Sink()));
  return Dressed(form.format, body.Take());
}

absl::StatusOr<HttpAnswer> DiffAnswer(const ProfileModel& before, const ProfileModel& after, DiffBasis basis,
                                      absl::string_view format) {
  ASSIGN_OR_RETURN(const ProfileDiff diff, DiffProfiles(before, after, basis));
  Body body;
  const HtmlComparison comparison{before, diff};
  if (format == "page") RETURN_IF_ERROR(WriteHtmlData(after, &comparison, body.Sink()));
  if (format == "html") RETURN_IF_ERROR(WriteHtmlDiff(after, comparison, body.Sink()));
  if (format == "text") RETURN_IF_ERROR(body.Sink()(DiffText(diff, kDiffRows)));
  if (format == "difffolded") RETURN_IF_ERROR(WriteFoldedDiff(diff, body.Sink()));
  return Dressed(format, body.Take());
}

}  // namespace clrsampler
