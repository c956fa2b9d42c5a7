#include "export/live_profile.h"

#include <algorithm>
#include <utility>

#include "export/signals_blocked.h"
#include "profile/window.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The wait after the end of the time that was asked for: a window, its names and its way to us.
constexpr auto kPatience = std::chrono::seconds(30);
constexpr auto kLiveLookUp = std::chrono::seconds(1);

uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

}  // namespace

LiveProfiles::LiveProfiles(RecentWindows& windows, std::function<void(uint64_t)> want_cut,
                           const SampleSums::Limits& limits)
    : windows_(windows), want_cut_(std::move(want_cut)), limits_(limits) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

LiveProfiles::~LiveProfiles() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  windows_.Wake();
  thread_.join();
}

absl::Status LiveProfiles::Begin(const HistorySelection& selection, ProfileView view, uint64_t now_unix_ns, Pay pay,
                                 Done done) {
  const uint64_t length = selection.to_unix_ns - std::min(now_unix_ns, selection.to_unix_ns);
  // Events without times count where their window begins, so that moment has to be covered.
  HistorySelection covered = selection;
  if (view != ProfileView::kCpu) covered.from_unix_ns -= std::min(Window::kMaxSlewNs, covered.from_unix_ns);
  {
    const std::lock_guard lock(mutex_);
    if (waiting_ >= kMostWaiting) {
      return WithHint(absl::UnavailableError("as many profiles as can be taken at once are being taken"),
                      "ask again when one of them has ended");
    }
    ++waiting_;
    begun_.push_back({std::make_unique<WindowProfile>(covered, view, false, limits_), selection.from_unix_ns,
                      selection.to_unix_ns,
                      std::chrono::steady_clock::now() + std::chrono::nanoseconds(length) + kPatience, std::move(pay),
                      std::move(done)});
  }
  if (want_cut_ && view != ProfileView::kCpu) want_cut_(selection.from_unix_ns);
  if (want_cut_) want_cut_(selection.to_unix_ns);
  windows_.Wake();
  return absl::OkStatus();
}

void LiveProfiles::Take(Waiting& waiting, const std::vector<SharedWindow>& windows) {
  for (const SharedWindow& window : windows) {
    if (waiting.complete || window->number <= waiting.seen) continue;
    // The wall clock was set while we waited. The request was for a number of seconds, and not for a date. But if it
    // came after the clock was set, then its date is already near the window's.
    if (window->clock_jump_ns != 0 && waiting.seen != 0 &&
        Distance(waiting.from_unix_ns + static_cast<uint64_t>(window->clock_jump_ns), window->begin_unix_ns) <
            Distance(waiting.from_unix_ns, window->begin_unix_ns)) {
      waiting.profile->ShiftClock(window->clock_jump_ns);
      waiting.to_unix_ns += static_cast<uint64_t>(window->clock_jump_ns);
      waiting.from_unix_ns += static_cast<uint64_t>(window->clock_jump_ns);
    }
    waiting.seen = window->number;
    waiting.failure = waiting.profile->Add(*window);
    // A window that was cut for this ends there, give or take the slew of its clock towards the wall clock.
    waiting.complete = !waiting.failure.ok() || window->end_unix_ns + Window::kMaxSlewNs >= waiting.to_unix_ns;
  }
}

absl::StatusOr<ProfileModel> LiveProfiles::Build(Waiting& waiting) {
  RETURN_IF_ERROR(waiting.failure);
  absl::StatusOr<ProfileModel> model = absl::UnknownError("");
  waiting.pay([&] { model = std::move(*waiting.profile).Build(); });
  return model;
}

void LiveProfiles::Run() {
  std::list<Waiting> active;
  uint64_t newest = 0;
  while (true) {
    const bool closed = windows_.closed();  // before looking: the last window may come after the look
    const std::vector<SharedWindow> windows = windows_.After(newest, kLiveLookUp);
    if (!windows.empty()) newest = windows.back()->number;
    std::list<Waiting> begun;
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      begun.swap(begun_);
      stopping = stopping_;
    }
    for (Waiting& waiting : begun) {
      // The requested time may have begun in a window that came before the request. It has not begun before the clock
      // was set.
      std::vector<SharedWindow> known = windows_.All();
      const auto jump = std::find_if(known.rbegin(), known.rend(),
                                     [](const SharedWindow& window) { return window->clock_jump_ns != 0; });
      if (jump != known.rend()) known.erase(known.begin(), jump.base() - 1);
      waiting.pay([&] { Take(waiting, known); });
    }
    active.splice(active.end(), begun);
    for (auto it = active.begin(); it != active.end();) {
      if (!windows.empty()) it->pay([&] { Take(*it, windows); });
      if (!it->complete && !closed && !stopping && std::chrono::steady_clock::now() < it->give_up) {
        ++it;
        continue;
      }
      absl::StatusOr<ProfileModel> result = absl::UnavailableError("clrsampler is ending");
      if (it->complete) {
        result = Build(*it);
      } else if (!closed && !stopping) {
        result = WithHint(absl::DeadlineExceededError("no window of that time came"),
                          "sampling stands still, or the clock was set: look at /api/health");
      }
      it->done(std::move(result));
      it = active.erase(it);
      const std::lock_guard lock(mutex_);
      --waiting_;
    }
    if (stopping) return;
    // Nothing will change any more, so this must not loop.
    if (closed) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace clrsampler
