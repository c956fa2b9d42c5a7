#include "export/pusher.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "export/signals_blocked.h"
#include "formats/names/utf8.h"

namespace clrsampler {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLookUp = std::chrono::seconds(1);
constexpr uint32_t kMostDoublings = 30;

// Worth another try: the server is not well, not the request.
bool IsPassing(unsigned status) { return status == 0 || status == 408 || status == 429 || status >= 500; }

class WindowPusher : public Pusher {
 public:
  WindowPusher(const PushOptions& options, std::unique_ptr<HttpPoster> poster, RecentWindows& windows,
               PushObserver observer)
      : options_(options), poster_(std::move(poster)), windows_(windows), observer_(std::move(observer)) {
    if (const SharedWindow newest = windows_.Newest()) seen_ = newest->number;
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { Run(); });
  }
  ~WindowPusher() override {
    stopping_ = true;
    poster_->Cancel();
    windows_.Wake();
    thread_.join();
  }

 private:
  struct Waiting {
    PushRequest request;
    Clock::time_point since;
  };

  void Run() {
    while (!stopping_ && !windows_.closed()) {
      // Between two requests there is a look at the windows, so that none is missed while a queue is sent.
      const Clock::time_point now = Clock::now();
      const bool due = !queue_.empty() && now >= not_before_;
      const Clock::duration wait = due              ? Clock::duration(0)
                                   : queue_.empty() ? kLookUp
                                                    : std::min<Clock::duration>(not_before_ - now, kLookUp);
      TakeNew(wait);
      DropOld();
      if (!stopping_ && !queue_.empty() && Clock::now() >= not_before_) SendOne();
    }
    TakeNew(Clock::duration(0));  // what has come since the last look is not sent either, and counted
    for (size_t i = 0; i < queue_.size(); ++i) observer_.lost(PushLoss::kEnding);
  }

  void TakeNew(Clock::duration wait) {
    for (const SharedWindow& window : windows_.After(seen_, wait)) {
      for (; seen_ != 0 && seen_ + 1 < window->number; ++seen_) observer_.lost(PushLoss::kWindow);
      seen_ = window->number;
      TakeApart(*window);
    }
  }

  void TakeApart(const Window& window) {
    absl::StatusOr<std::vector<PushRequest>> requests =
        PushRequestsOf(window, options_.by, options_.services, options_.labels);
    if (!requests.ok()) return observer_.lost(PushLoss::kWindow);
    for (PushRequest& request : *requests) {
      queued_bytes_ += request.profile.size();
      queue_.push_back({std::move(request), Clock::now()});
    }
    while (queued_bytes_ > options_.queue_bytes && !queue_.empty()) Drop(PushLoss::kQueueFull);
  }

  void DropOld() {
    while (!queue_.empty() && Clock::now() - queue_.front().since > options_.oldest) Drop(PushLoss::kTooOld);
  }

  void Drop(PushLoss loss) {
    Pop();
    observer_.lost(loss);
  }

  void Pop() {
    queued_bytes_ -= queue_.front().request.profile.size();
    queue_.pop_front();
  }

  void SendOne() {
    const PushRequest& request = queue_.front().request;
    const PushBody body = MakePushBody(request.profile, request.view);
    std::vector<std::string> headers = options_.headers;
    headers.push_back(absl::StrCat("Content-Type: ", body.content_type));
    const PostOutcome outcome = poster_->Post(PushUrl(options_.url, request), headers, body.bytes);
    if (outcome.status >= 200 && outcome.status < 300) {
      observer_.sent(PushResult::kSent, request.profile.size());
      Pop();
      if (std::exchange(failures_, 0) > 0) observer_.said(absl::StrCat("profiles arrive at ", options_.url, " again"));
      return;
    }
    if (stopping_ && outcome.status == 0) return;  // cancelled, which is nobody's failure
    const std::string why = outcome.status == 0 ? outcome.error : absl::StrCat("HTTP status ", outcome.status);
    if (!IsPassing(outcome.status)) {
      observer_.sent(PushResult::kRefused, 0);
      Drop(PushLoss::kRefused);
      Say(absl::StrCat(options_.url, " refuses profiles: ", why, Quoted(outcome.answer)));
      return;
    }
    observer_.sent(PushResult::kFailed, 0);
    ++failures_;
    if (failures_ == 1) Say(absl::StrCat("profiles can't be sent to ", options_.url, ": ", why));
    const double chance = std::uniform_real_distribution<double>(0, 1)(random_);
    not_before_ =
        Clock::now() + std::max<Clock::duration>(BackoffAfter(failures_, options_, chance), outcome.retry_after);
  }

  // Each reason once in a row.
  void Say(const std::string& sentence) {
    if (sentence == last_said_) return;
    last_said_ = sentence;
    observer_.said(sentence);
  }

  // The server's words, in one line.
  static std::string Quoted(absl::string_view answer) {
    std::string text = WellFormedUtf8(absl::StripAsciiWhitespace(answer.substr(0, 200)));
    for (char& c : text) {
      if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
    }
    return text.empty() ? "" : absl::StrCat(" (", text, ")");
  }

  const PushOptions options_;
  const std::unique_ptr<HttpPoster> poster_;
  RecentWindows& windows_;
  const PushObserver observer_;
  std::atomic<bool> stopping_ = false;

  // The thread's own.
  uint64_t seen_ = 0;  // number of the last window that was taken; those from before the start are not sent
  std::deque<Waiting> queue_;
  size_t queued_bytes_ = 0;
  unsigned failures_ = 0;  // one after the other
  Clock::time_point not_before_ = Clock::now();
  std::string last_said_;
  std::minstd_rand random_{std::random_device()()};
  std::thread thread_;
};

}  // namespace

std::chrono::nanoseconds BackoffAfter(unsigned failures, const PushOptions& options, double chance) {
  std::chrono::nanoseconds wait = options.first_wait;
  for (uint32_t i = 1; i < std::min(failures, kMostDoublings) && wait < options.longest_wait; ++i) wait *= 2;
  wait = std::min(wait, options.longest_wait);
  return std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(wait.count()) * (1 - chance / 2)));
}

std::unique_ptr<Pusher> Pusher::Start(const PushOptions& options, std::unique_ptr<HttpPoster> poster,
                                      RecentWindows& windows, PushObserver observer) {
  return std::make_unique<WindowPusher>(options, std::move(poster), windows, std::move(observer));
}

}  // namespace clrsampler
