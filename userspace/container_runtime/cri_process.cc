#include "container_runtime/cri_process.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "container_runtime/cri_client.h"
#include "container_runtime/cri_wire.h"
#include "sandbox/helper_process.h"
#include "sandbox/sandbox.h"
#include "status/status.h"

namespace clrsampler {
namespace {

CriAnswer NoAnswer(uint64_t number, const absl::Status& why) {
  CriAnswer answer;
  answer.number = number;
  answer.failure = std::string(why.message());
  answer.hint = HintOf(why);
  return answer;
}

// Questions in, answers out, until the other end is gone.
void AnswerQuestions(int socket, const std::string& path, absl::StatusOr<std::unique_ptr<HttpPoster>> poster) {
  const absl::Status trouble = poster.status();
  std::optional<CriClient> client;
  if (poster.ok()) client.emplace(*std::move(poster), [&path] { return CheckCriSocket(path); });
  while (const std::optional<HelperProcess::Message> message = HelperProcess::Wait(socket)) {
    const std::optional<CriQuestion> question = ParseCriQuestion(message->text);
    if (!question) continue;
    const std::string text = CriAnswerText(client ? client->Ask(*question) : NoAnswer(question->number, trouble));
    (void)!send(socket, text.data(), std::min(text.size(), HelperProcess::kMaxDatagramBytes), MSG_NOSIGNAL);
  }
}

class CriProcess : public CriHelper {
 public:
  explicit CriProcess(HelperProcess process) : process_(std::move(process)) {}

  bool Send(absl::string_view question) override { return process_.Send(question); }
  std::optional<std::string> Receive() override { return process_.Receive(); }
  void WaitMs(int milliseconds) override {
    pollfd readable{process_.socket(), POLLIN, 0};
    poll(&readable, 1, milliseconds);
  }
  bool ended() const override { return process_.ended(); }

 private:
  HelperProcess process_;
};

// Reports why there is none.
class NoCriProcess : public CriHelper {
 public:
  explicit NoCriProcess(absl::Status why) : why_(std::move(why)) {}

  bool Send(absl::string_view text) override {
    if (const std::optional<CriQuestion> question = ParseCriQuestion(text)) {
      answers_.push_back(CriAnswerText(NoAnswer(question->number, why_)));
    }
    return true;
  }
  std::optional<std::string> Receive() override {
    if (answers_.empty()) return std::nullopt;
    std::string answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }
  void WaitMs(int) override {}
  bool ended() const override { return false; }

 private:
  const absl::Status why_;
  std::deque<std::string> answers_;
};

}  // namespace

std::unique_ptr<CriHelper> StartCriHelper(const std::string& socket) {
  // libcurl is opened in the new process while that may still open files.
  absl::StatusOr<std::unique_ptr<HttpPoster>> poster = absl::InternalError("not made");
  absl::StatusOr<HelperProcess> process =
      HelperProcess::Start({.name = "clrsampler-cri",
                            .profile = ContainerRuntimeProfile(),
                            .prepare = [&] { poster = MakeCurlPoster(CriPosterOptions(socket)); }},
                           [&](int end) { AnswerQuestions(end, socket, std::move(poster)); });
  if (!process.ok()) return std::make_unique<NoCriProcess>(process.status());
  return std::make_unique<CriProcess>(*std::move(process));
}

}  // namespace clrsampler
