#include "pipeline/event_pump.h"

#include <utility>

namespace clrsampler {
namespace {

// The interval of looks while a request is under way, and at other times, when arriving data wakes the loop.
constexpr int kRequestMs = 20;
constexpr int kIdleMs = 200;

}  // namespace

EventWatchResult EventPump::Run(std::span<const ClrEventKind> kinds, Began began,
                                const ClrEventStream::Receiver& receiver) {
  main_loop_.Check();
  ClrEventStream stream(kinds, [&](const ClrEventRecord& record) { Take(record, receiver); });
  const auto take = [&](std::span<const std::byte> bytes) {
    if (absl::Status taken = stream.Take(bytes); !taken.ok() && !session_.over()) session_.Abandon(std::move(taken));
    Look();
  };
  while (!session_.over()) {
    stop_.Wait(end_.has_value() && !stopping_ ? kIdleMs : kRequestMs);
    session_.Step(clock_.Now(), take);
    SeeBeginning(began);
    Look();
  }
  const absl::Status finished = stream.Finish();
  EventWatchResult result;
  result.lost = stream.lost();
  result.damaged = stream.damaged();
  result.unsorted = stream.unsorted();
  result.not_taken = not_taken_;
  result.broke_off = session_.status().ok() && !finished.ok();
  result.ended = session_.status();
  return result;
}

void EventPump::SeeBeginning(Began began) {
  if (!session_.began() || end_.has_value()) return;
  if (!agreed_.has_value()) {
    agreed_ = clock_.Now();
    if (!session_.over()) {
      if (absl::Status watched = stop_.WatchReadable(session_.fd()); !watched.ok())
        session_.Abandon(std::move(watched));
    }
  }
  if (!session_.enabled() && !session_.over()) return;
  end_ = duration_ns_ == 0 ? MonotonicTime::Max() : MonotonicTime{clock_.Now().ns + duration_ns_};
  began(*agreed_);
}

void EventPump::Look() {
  stop_.Wait(0);
  const MonotonicTime now = clock_.Now();
  if (!stopping_ && (stop_.signalled() || (end_.has_value() && now >= *end_))) {
    session_.Stop(now);
    stopping_ = true;
  }
  if (!stopping_ || !session_.began()) return;
  if (!give_up_.has_value()) give_up_ = MonotonicTime{now.ns + EventSession::kPatienceNs};
  if (now < *give_up_) return;
  leaves_ = true;
  if (session_.over()) return;
  session_.Abandon(absl::DeadlineExceededError("the runtime did not end its stream of events in time"));
}

void EventPump::Take(const ClrEventRecord& record, const ClrEventStream::Receiver& receiver) {
  if (!leaves_ && ++taken_ % kEventsPerLook == 0) Look();
  if (leaves_) {
    ++not_taken_;
    return;
  }
  receiver(record);
}

}  // namespace clrsampler
