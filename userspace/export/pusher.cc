#include "export/pusher.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "export/signals_blocked.h"

namespace clrsampler {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPushLookUp = std::chrono::seconds(1);
constexpr uint32_t kMostDoublings = 30;

class WindowPusher : public Pusher {
 public:
  WindowPusher(const PushOptions& options, std::unique_ptr<PushProtocol> protocol, std::unique_ptr<HttpPoster> poster,
               RecentWindows& windows, PushObserver observer)
      : options_(options),
        protocol_(std::move(protocol)),
        poster_(std::move(poster)),
        windows_(windows),
        observer_(std::move(observer)) {
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
    PushMessage message;
    Clock::time_point since;
  };

  void Run() {
    while (!stopping_ && !windows_.closed()) {
      // Between two requests there is a look at the windows, so that none is missed while a queue is sent.
      const Clock::time_point now = Clock::now();
      const bool due = !queue_.empty() && now >= not_before_;
      const Clock::duration wait = due              ? Clock::duration(0)
                                   : queue_.empty() ? kPushLookUp
                                                    : std::min<Clock::duration>(not_before_ - now, kPushLookUp);
      TakeNew(wait);
      DropOld();
      if (!stopping_ && !queue_.empty() && Clock::now() >= not_before_) SendOne();
    }
    TakeNew(Clock::duration(0));  // windows that have come since the last look are not sent either, and are counted
    while (!queue_.empty()) Drop(PushLoss::kEnding);
  }

  void TakeNew(Clock::duration wait) {
    for (const SharedWindow& window : windows_.After(seen_, wait)) {
      for (; seen_ != 0 && seen_ + 1 < window->number; ++seen_) Lose(PushLoss::kWindow, 0);
      seen_ = window->number;
      TakeApart(*window);
    }
  }

  void TakeApart(const Window& window) {
    absl::StatusOr<PushMessages> written = protocol_->Encode(window);
    if (!written.ok()) return Lose(PushLoss::kWindow, 0);
    if (observer_.taken) {
      uint64_t samples = written->samples_too_large;
      for (const PushMessage& message : written->messages) samples += message.samples;
      observer_.taken(samples);
    }
    for (uint64_t i = 0; i < written->too_large; ++i) {
      Lose(PushLoss::kTooLarge, std::exchange(written->samples_too_large, 0));
    }
    for (PushMessage& message : written->messages) {
      waiting_.requests += 1;
      waiting_.bytes += message.body.size();
      waiting_.samples += message.samples;
      queue_.push_back({std::move(message), Clock::now()});
    }
    while (waiting_.bytes > options_.queue_bytes) Drop(PushLoss::kQueueFull);
    TellWaiting();
  }

  void DropOld() {
    while (!queue_.empty() && Clock::now() - queue_.front().since > options_.oldest) Drop(PushLoss::kTooOld);
  }

  void Drop(PushLoss loss) {
    const uint64_t samples = queue_.front().message.samples;
    Pop();
    Lose(loss, samples);
  }

  void Lose(PushLoss loss, uint64_t samples) const {
    if (observer_.lost) observer_.lost(loss, samples);
  }

  void Count(PushResult result) const {
    if (observer_.sent) observer_.sent(result, queue_.front().message);
  }

  void Pop() {
    const PushMessage& message = queue_.front().message;
    waiting_.requests -= 1;
    waiting_.bytes -= message.body.size();
    waiting_.samples -= message.samples;
    queue_.pop_front();
    TellWaiting();
  }

  void TellWaiting() const {
    if (observer_.waiting) observer_.waiting(waiting_);
  }

  void SendOne() {
    const PushMessage& message = queue_.front().message;
    const PostOutcome outcome = poster_->Post(message.url, message.headers, message.body);
    if (stopping_ && outcome.status == 0) return;  // a cancelled request is nobody's failure
    const PushVerdict verdict = protocol_->Judge(outcome);
    switch (verdict.answer) {
      case PushAnswer::kTaken:
      case PushAnswer::kUnreadable:
        return Taken(verdict);
      case PushAnswer::kRefused:
        Count(PushResult::kRefused);
        Drop(PushLoss::kRefused);
        return Say(absl::StrCat(protocol_->server(), " refuses profiles: ", verdict.why));
      case PushAnswer::kPassing:
        return Failed(verdict);
    }
  }

  void Taken(const PushVerdict& verdict) {
    Count(verdict.answer == PushAnswer::kTaken ? PushResult::kSent : PushResult::kUnreadable);
    // A server can't reject more than it got.
    const uint64_t rejected = std::min(verdict.rejected_profiles, queue_.front().message.profiles);
    if (rejected > 0 && observer_.rejected) observer_.rejected(rejected);
    Pop();
    if (std::exchange(failures_, 0) > 0) {
      observer_.said(absl::StrCat("profiles arrive at ", protocol_->server(), " again"));
    }
    if (!verdict.why.empty()) Say(absl::StrCat(protocol_->server(), " ", verdict.why));
  }

  void Failed(const PushVerdict& verdict) {
    Count(PushResult::kFailed);
    ++failures_;
    if (failures_ == 1) Say(absl::StrCat("profiles can't be sent to ", protocol_->server(), ": ", verdict.why));
    const double chance = std::uniform_real_distribution<double>(0, 1)(random_);
    not_before_ =
        Clock::now() + std::max<Clock::duration>(BackoffAfter(failures_, options_, chance), verdict.retry_after);
  }

  // Each reason once in a row.
  void Say(const std::string& sentence) {
    if (sentence == last_said_) return;
    last_said_ = sentence;
    observer_.said(sentence);
  }

  const PushOptions options_;
  const std::unique_ptr<PushProtocol> protocol_;
  const std::unique_ptr<HttpPoster> poster_;
  RecentWindows& windows_;
  const PushObserver observer_;
  std::atomic<bool> stopping_ = false;

  // The thread's own.
  uint64_t seen_ = 0;  // number of the last window that was taken; windows from before the start are not sent
  std::deque<Waiting> queue_;
  PushQueue waiting_;
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

std::unique_ptr<Pusher> Pusher::Start(const PushOptions& options, std::unique_ptr<PushProtocol> protocol,
                                      std::unique_ptr<HttpPoster> poster, RecentWindows& windows,
                                      PushObserver observer) {
  return std::make_unique<WindowPusher>(options, std::move(protocol), std::move(poster), windows, std::move(observer));
}

}  // namespace clrsampler
