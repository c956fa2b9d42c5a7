#include "export/recent_windows.h"

#include <utility>

namespace clrsampler {

bool RecentWindows::KeepsOldest() const {
  if (windows_.size() <= most_) return true;
  // A clock that was set back counts as time gone by.
  const uint64_t newest = windows_.back()->end_unix_ns;
  const uint64_t oldest = windows_.front()->end_unix_ns;
  return windows_.size() <= 10 * most_ && oldest <= newest && newest - oldest <= span_ns_;
}

void RecentWindows::Add(SharedWindow window) {
  std::vector<SharedWindow> dropped;  // freed without the lock
  {
    const std::lock_guard lock(mutex_);
    windows_.push_back(std::move(window));
    while (!KeepsOldest()) {
      dropped.push_back(std::move(windows_.front()));
      windows_.pop_front();
    }
  }
  changed_.notify_all();
}

void RecentWindows::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

void RecentWindows::Wake() {
  {
    const std::lock_guard lock(mutex_);
    ++wakes_;
  }
  changed_.notify_all();
}

std::vector<SharedWindow> RecentWindows::All() const {
  const std::lock_guard lock(mutex_);
  return {windows_.begin(), windows_.end()};
}

SharedWindow RecentWindows::Newest() const {
  const std::lock_guard lock(mutex_);
  return windows_.empty() ? nullptr : windows_.back();
}

std::vector<SharedWindow> RecentWindows::After(uint64_t number, std::chrono::nanoseconds timeout) const {
  std::unique_lock lock(mutex_);
  const auto newer = [&] { return !windows_.empty() && windows_.back()->number > number; };
  changed_.wait_for(lock, timeout, [&, wakes = wakes_] { return closed_ || wakes_ != wakes || newer(); });
  std::vector<SharedWindow> result;
  for (const SharedWindow& window : windows_) {
    if (window->number > number) result.push_back(window);
  }
  return result;
}

bool RecentWindows::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace clrsampler
