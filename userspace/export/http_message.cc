#include "export/http_message.h"

#include <nlohmann/json.hpp>

#include "status/status.h"

namespace clrsampler {
namespace {

unsigned HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
      return 413;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    case absl::StatusCode::kUnimplemented:
      return 501;
    default:
      return 500;
  }
}

}  // namespace

HttpAnswer TextAnswer(absl::string_view content_type, std::string body) {
  HttpAnswer answer;
  answer.content_type = std::string(content_type);
  answer.body = std::make_shared<const std::string>(std::move(body));
  return answer;
}

HttpAnswer ErrorAnswer(unsigned status, absl::string_view error, absl::string_view hint) {
  const nlohmann::ordered_json body = {{"error", std::string(error)}, {"hint", std::string(hint)}};
  HttpAnswer answer = TextAnswer("application/json",
                                 body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  answer.status = status;
  if (status == 503) answer.headers.emplace_back("Retry-After", "2");
  if (status == 405) answer.headers.emplace_back("Allow", "GET, HEAD");
  return answer;
}

HttpAnswer ErrorAnswer(const absl::Status& error) {
  return ErrorAnswer(HttpStatusOf(error.code()), error.message(), HintOf(error));
}

}  // namespace clrsampler
