#include "container_runtime/container_names.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "formats/proc/cgroup_identity.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

constexpr uint64_t kLongestPauseNs = 300 * kSecondNs;
constexpr uint64_t kIdleNs = 60 * kSecondNs;  // a container that nobody asked about for so long has no processes
constexpr uint64_t kAgainNs = 2 * kSecondNs;  // CRI-O does not list a container until it has been started

}  // namespace

ProcessLabels ContainerNames::Of(absl::string_view cgroup_path, MonotonicTime now) {
  main_loop_.Check();
  const std::vector<std::string> ids = ContainerIdsOf(cgroup_path);
  if (ids.empty()) return {};
  const std::string key = absl::StrJoin(ids, "\n");
  if (const auto found = entries_.find(key); found != entries_.end()) {
    found->second.used = now;
    return found->second.labels;
  }
  if (ended_ || !MakeRoom(now)) return {};
  entries_[key].used = now;
  queue_.push_back({key, now});
  return {};
}

bool ContainerNames::MakeRoom(MonotonicTime now) {
  if (entries_.size() < kMaxContainers) return true;
  if (now.ns - swept_.ns >= kIdleNs) {
    swept_ = now;
    absl::erase_if(entries_, [&](const auto& entry) {
      return entry.second.state != State::kWaiting && now.ns - entry.second.used.ns >= kIdleNs;
    });
    if (entries_.size() < kMaxContainers) return true;
  }
  notices_.Add("container_names_full", "",
               absl::StrCat("some containers have no names: there are more than ", kMaxContainers, " at a time"),
               "names are given again once containers have been gone for a minute");
  return false;
}

bool ContainerNames::Poll(MonotonicTime now) {
  main_loop_.Check();
  if (ended_) return false;
  bool news = false;
  while (const std::optional<std::string> datagram = helper_->Receive()) {
    if (const std::optional<CriAnswer> answer = ParseCriAnswer(*datagram)) news |= Take(*answer, now);
  }
  if (helper_->ended()) {
    ended_ = true;
    queue_.clear();
    asked_.clear();
    notices_.Add("container_runtime_ended", "",
                 "the process that asks the container runtime has ended: new containers have no names",
                 "start clrsampler again");
    return news;
  }
  if (now >= may_ask_) Send(now);
  return news;
}

bool ContainerNames::Take(const CriAnswer& answer, MonotonicTime now) {
  const auto asked = asked_.find(answer.number);
  if (asked == asked_.end()) return false;  // of an earlier recorder
  const std::string key = std::move(asked->second);
  asked_.erase(asked);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  if (answer.result == CriResult::kUnreachable) {
    SayFailure(answer);
    // Questions that were under way at the same time count as one failure.
    if (now >= may_ask_) {
      pause_ns_ = std::clamp(pause_ns_ * 2, kSecondNs, kLongestPauseNs);
      may_ask_ = {now.ns + pause_ns_};
    }
    queue_.push_back({key, now});
    return false;
  }
  pause_ns_ = 0;
  Entry& entry = found->second;
  if (answer.result == CriResult::kKnown) {
    entry.state = State::kKnown;
    entry.labels = answer.labels;
    return true;
  }
  if (answer.result == CriResult::kBad) SayFailure(answer);
  if (++entry.tries < kTries) {
    queue_.push_back({key, {now.ns + kAgainNs * static_cast<uint64_t>(entry.tries)}});
  } else {
    entry.state = State::kGivenUp;
  }
  return false;
}

void ContainerNames::Send(MonotonicTime now) {
  for (size_t left = queue_.size(); left > 0 && asked_.size() < kMaxQuestions; --left) {
    Waiting waiting = std::move(queue_.front());
    queue_.pop_front();
    if (waiting.due > now) {
      queue_.push_back(std::move(waiting));
      continue;
    }
    CriQuestion question;
    question.number = helper_->NextNumber();
    question.ids = absl::StrSplit(waiting.key, '\n');
    if (!helper_->Send(CriQuestionText(question))) {
      queue_.push_front(std::move(waiting));
      return;
    }
    asked_[question.number] = std::move(waiting.key);
  }
}

void ContainerNames::SayFailure(const CriAnswer& answer) {
  notices_.Add("container_runtime", answer.failure,
               absl::StrCat("the container runtime at ", socket_, " does not name a container: ", answer.failure),
               answer.hint);
}

}  // namespace clrsampler
