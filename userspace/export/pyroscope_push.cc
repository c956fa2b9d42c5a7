#include "export/pyroscope_push.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

bool IsPassingHttp(unsigned status) { return status == 0 || status == 408 || status == 429 || status >= 500; }

class PyroscopeProtocol : public PushProtocol {
 public:
  explicit PyroscopeProtocol(const PyroscopeOptions& options) : options_(options) {}

  absl::StatusOr<PushMessages> Encode(const Window& window) const override {
    ASSIGN_OR_RETURN(const std::vector<PushRequest> requests,
                     PushRequestsOf(window, options_.by, options_.services, options_.labels));
    PushMessages result;
    for (const PushRequest& request : requests) {
      PushBody body = MakePushBody(request.profile, request.view);
      PushMessage message;
      message.url = PushUrl(options_.url, request);
      message.headers = options_.headers;
      message.headers.push_back(absl::StrCat("Content-Type: ", body.content_type));
      message.body = std::move(body.bytes);
      message.bytes = request.profile.size();
      result.messages.push_back(std::move(message));
    }
    return result;
  }

  PushVerdict Judge(const PostOutcome& outcome) const override {
    PushVerdict verdict;
    verdict.retry_after = outcome.retry_after;
    if (outcome.status >= 200 && outcome.status < 300) return verdict;
    verdict.why = outcome.status == 0 ? outcome.error : absl::StrCat("HTTP status ", outcome.status);
    verdict.answer = IsPassingHttp(outcome.status) ? PushAnswer::kPassing : PushAnswer::kRefused;
    if (verdict.answer == PushAnswer::kRefused) verdict.why += QuotedAnswer(outcome.answer);
    return verdict;
  }

  std::string server() const override { return options_.url; }

 private:
  const PyroscopeOptions options_;
};

}  // namespace

std::unique_ptr<PushProtocol> MakePyroscopeProtocol(const PyroscopeOptions& options) {
  return std::make_unique<PyroscopeProtocol>(options);
}

}  // namespace clrsampler
