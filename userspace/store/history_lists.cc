#include "store/history_lists.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "status/status.h"

namespace clrsampler {
namespace {

// This many more than asked for are kept before the shortest are dropped.
constexpr size_t kSlack = 64;

HistoryPause PauseOf(const SegmentDictionary& names, const EntryPause& pause) {
  const auto text = [&](auto index) { return std::string(names.text(index)); };
  const SegmentProcess& process = names.process(pause.process);
  HistoryPause own;
  own.pid = process.pid;
  own.comm = text(process.comm);
  own.container = text(process.container);
  own.pause.requested_unix_ns = pause.requested_unix_ns;
  own.pause.suspend_ns = pause.suspend_ns;
  own.pause.pause_ns = pause.pause_ns;
  own.pause.kind = text(pause.kind);
  own.pause.reason = text(pause.reason);
  own.pause.gc_reason = text(pause.gc_reason);
  own.pause.generation = pause.generation;
  own.pause.gc_index = pause.gc_index;
  own.pause.induced = pause.induced;
  own.pause.tid = pause.tid;
  own.pause.thread_name = text(pause.thread_name);
  for (const EntryPause::Blame& blame : pause.culprits) {
    own.pause.culprits.push_back({text(blame.method), blame.tid, blame.delay_ns, blame.samples});
  }
  return own;
}

}  // namespace

absl::Status CheckMethodSelection(const HistorySelection& selection) {
  if (!selection.thread) return absl::OkStatus();
  return WithHint(absl::InvalidArgumentError("the thread that compiled a method is not kept"),
                  "ask without a thread, or for the profile of the view jit");
}

void LongestPauses::Count(const SegmentDictionary& names, const ProcessTally& tally) {
  result_.count += tally.pauses;
  result_.pause_ns += tally.pause_ns;
  result_.suspend_ns += tally.suspend_ns;
  for (const auto& [kind, count] : tally.pauses_by_kind) {
    result_.count_by_kind[std::string(names.text(kind))] += count;
  }
}

void LongestPauses::Count(const SegmentDictionary& names, const EntryPause& pause) {
  ++result_.count;
  result_.pause_ns += pause.pause_ns;
  result_.suspend_ns += pause.suspend_ns;
  ++result_.count_by_kind[std::string(names.text(pause.kind))];
}

void LongestPauses::Keep(const SegmentDictionary& names, const EntryPause& pause) {
  if (pause.pause_ns <= too_short_ns_ && result_.longest.size() >= limit_) return;
  result_.longest.push_back(PauseOf(names, pause));
  if (result_.longest.size() <= 2 * limit_ + kSlack) return;
  DropShorter();
  if (limit_ > 0) too_short_ns_ = result_.longest.back().pause.pause_ns;
}

void LongestPauses::DropShorter() {
  std::stable_sort(result_.longest.begin(), result_.longest.end(),
                   [](const HistoryPause& a, const HistoryPause& b) { return a.pause.pause_ns > b.pause.pause_ns; });
  if (result_.longest.size() > limit_) result_.longest.resize(limit_);
}

HistoryPauses LongestPauses::Take() && {
  DropShorter();
  return std::move(result_);
}

void MethodSums::Count(const ProcessTally& tally) {
  result_.count += tally.compilations;
  result_.total_ns += tally.compile_ns;
}

void MethodSums::Add(const SegmentDictionary& names, const EntryMethod& method) {
  const auto text = [&](StringIndex index) { return texts_.String(names.text(index)); };
  const SegmentProcess& process = names.process(method.process);
  EntryMethod& sum =
      sums_[{process.pid, text(process.comm), text(process.container), text(method.method), text(method.tier)}];
  sum.count += method.count;
  sum.total_ns += method.total_ns;
  sum.longest_ns = std::max(sum.longest_ns, method.longest_ns);
  sum.bytes += method.bytes;
}

HistoryMethods MethodSums::Take(size_t limit) && {
  std::vector<std::pair<Key, EntryMethod>> order(sums_.begin(), sums_.end());
  sums_.clear();
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tuple(~a.second.total_ns, a.first) < std::tuple(~b.second.total_ns, b.first);
  });
  order.resize(std::min(order.size(), limit));
  for (const auto& [key, sum] : order) {
    const auto text = [&](StringIndex index) { return std::string(texts_.model().text(index)); };
    HistoryMethod& method = result_.methods.emplace_back();
    method.pid = std::get<0>(key);
    method.comm = text(std::get<1>(key));
    method.container = text(std::get<2>(key));
    method.method.method = text(std::get<3>(key));
    method.method.tier = text(std::get<4>(key));
    method.method.count = sum.count;
    method.method.total_ns = sum.total_ns;
    method.method.longest_ns = sum.longest_ns;
    method.method.bytes = sum.bytes;
  }
  return std::move(result_);
}

}  // namespace clrsampler
