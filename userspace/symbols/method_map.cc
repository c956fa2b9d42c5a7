#include "symbols/method_map.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"

namespace clrsampler {
namespace {

constexpr uint64_t kForever = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kSinceEver = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kWindowUnitNs = 1024;
constexpr uint64_t kLargestOfClass[] = {16, 256, 4096, 65536, uint64_t{1} << 32};

}  // namespace

uint32_t MethodNameHash(absl::string_view name) {
  return static_cast<uint32_t>(static_cast<uint64_t>(absl::Hash<absl::string_view>{}(name)) >> 40);
}

// Weighs the entries that cover one address, offered in the order of their creation, as of one time. Per entry, with
// the windows (after, by] of its begin and end, the time is
//   certain   behind the begin's window and not inside the end's: it was there
//   maybe     inside one of the windows: it may have been there
//   earlier   before the begin's window: it was not in the file yet
class MethodMap::Judge {
 public:
  explicit Judge(uint64_t time_ns) : time_ns_(time_ns) {}

  // `rank` orders answers of one kind: the smaller size wins among stubs, methods have none. 0 for methods.
  void Offer(uint64_t start, const Entry& entry, uint64_t ended_after_ns, uint64_t ended_by_ns, uint32_t rank) {
    const uint64_t after_ns = AfterNs(entry);
    const bool since_ever = entry.window == kSinceEver;
    if (!since_ever) NoteEdge(after_ns + 1);
    NoteEdge(entry.by_ns);
    if (ended_after_ns != kForever) NoteEdge(ended_after_ns + 1);
    NoteEdge(ended_by_ns);
    if (entry.by_ns <= time_ns_ && time_ns_ <= ended_after_ns) {
      if (certain_.Take(start, entry, rank)) {
        certain_from_ns_ = entry.by_ns;
        certain_until_ns_ = ended_after_ns == kForever ? kForever : ended_after_ns + 1;
      }
    } else if ((since_ever || after_ns < time_ns_) && time_ns_ < ended_by_ns) {
      if (maybe_.Take(start, entry, rank)) maybe_is_ending_ = time_ns_ > ended_after_ns;
    } else if (time_ns_ <= after_ns && !since_ever) {
      earlier_.TakeFirst(start, entry, rank);
    }
  }

  struct Pick {
    bool any = false;
    bool disputed = false;  // two different names with the same right
    uint32_t rank = 0;
    uint64_t start = 0;
    Entry entry{};

    // The newest of the lowest rank.
    bool Take(uint64_t new_start, const Entry& new_entry, uint32_t new_rank) {
      if (any && new_rank > rank) return false;
      disputed = any && new_rank == rank && (disputed || new_entry.name_hash != entry.name_hash);
      any = true;
      rank = new_rank;
      start = new_start;
      entry = new_entry;
      return true;
    }
    // The oldest of the lowest rank.
    void TakeFirst(uint64_t new_start, const Entry& new_entry, uint32_t new_rank) {
      if (any && new_rank > rank) return;
      if (any && new_rank == rank) {
        disputed |= new_entry.name_hash != entry.name_hash;
        return;
      }
      *this = Pick{true, false, new_rank, new_start, new_entry};
    }
  };

  const Pick& certain() const { return certain_; }
  const Pick& maybe() const { return maybe_; }
  const Pick& earlier() const { return earlier_; }
  bool maybe_is_ending() const { return maybe_is_ending_; }
  uint64_t certain_from_ns() const { return certain_from_ns_; }
  uint64_t certain_until_ns() const { return certain_until_ns_; }
  uint64_t next_edge_ns() const { return next_edge_ns_; }  // until then no entry changes its class

 private:
  void NoteEdge(uint64_t edge_ns) {
    if (edge_ns > time_ns_) next_edge_ns_ = std::min(next_edge_ns_, edge_ns);
  }

  uint64_t time_ns_;
  Pick certain_;
  Pick maybe_;
  Pick earlier_;
  bool maybe_is_ending_ = false;
  uint64_t certain_from_ns_ = 0;
  uint64_t certain_until_ns_ = kForever;
  uint64_t next_edge_ns_ = kForever;
};

namespace {

template <typename Entry>
MethodNameRef NameOf(const Entry& entry) {
  return MethodNameRef{entry.name_offset, static_cast<uint32_t>(entry.name_hash)};
}

template <typename Pick>
MethodAnswer Named(MethodAnswerKind kind, const Pick& pick, uint64_t from_ns, uint64_t until_ns) {
  return MethodAnswer{kind, pick.start, pick.entry.size, NameOf(pick.entry), {from_ns}, {until_ns}};
}

MethodAnswer Unnamed(MethodAnswerKind kind, uint64_t from_ns, uint64_t until_ns) {
  MethodAnswer answer;
  answer.kind = kind;
  answer.from = {from_ns};
  answer.until = {until_ns};
  return answer;
}

}  // namespace

// 0: known to the nanosecond. Else in units of 1024 ns rounded up, so that the window only ever gets longer; anything
// above 73 minutes counts as since ever.
uint32_t MethodMap::EncodeWindow(AddedWindow window) {
  if (window.after == MonotonicTime::Min()) return window.by.ns <= 1 ? 0 : kSinceEver;
  if (window.after.ns + 1 >= window.by.ns) return 0;
  const uint64_t units = (window.by.ns - window.after.ns + kWindowUnitNs - 1) / kWindowUnitNs;
  return units >= kSinceEver ? kSinceEver : static_cast<uint32_t>(units);
}

uint64_t MethodMap::AfterNs(const Entry& entry) {
  if (entry.window == kSinceEver) return 0;
  const uint64_t length = entry.window == 0 ? 1 : entry.window * kWindowUnitNs;
  return entry.by_ns < length ? 0 : entry.by_ns - length;
}

size_t MethodMap::StubClass(uint32_t size) {
  size_t stub_class = 0;
  while (size >= kLargestOfClass[stub_class]) ++stub_class;
  return stub_class;
}

void MethodMap::Add(uint64_t start, uint64_t size, MethodNameRef name, bool is_stub, AddedWindow window) {
  if (size == 0) {
    ++counters_.empty;
    return;
  }
  if (size > std::numeric_limits<uint32_t>::max() || start > std::numeric_limits<uint64_t>::max() - size ||
      name.offset > MethodNameRef::kMaxOffset) {
    ++counters_.bad_ranges;
    return;
  }
  latest_by_ns_ = window.by.ns = std::max(window.by.ns, latest_by_ns_);
  Entry entry{};
  entry.by_ns = window.by.ns;
  entry.name_offset = name.offset;
  entry.name_hash = name.hash & 0xffffff;
  entry.size = static_cast<uint32_t>(size);
  entry.window = EncodeWindow(window);
  if (is_stub) {
    AddStub(start, entry);
  } else {
    AddMethod(start, entry);
  }
}

// The first method that ends behind `start`.
MethodMap::LiveMap::Position MethodMap::FirstReaching(uint64_t start) const {
  const LiveMap::Position above = live_.UpperBound(start);
  if (above == live_.Begin()) return above;
  const LiveMap::Position before = live_.Before(above);
  return live_.KeyAt(before) + live_.ValueAt(before).size > start ? before : above;
}

void MethodMap::AddMethod(uint64_t start, const Entry& entry) {
  LiveMap::Position next = live_.End();
  // Code heaps are filled upwards, so most methods belong behind the last one.
  if (!live_.empty()) {
    const LiveMap::Position last = live_.Before(next);
    if (live_.KeyAt(last) + live_.ValueAt(last).size > start) next = FirstReaching(start);
  }
  if (next != live_.End()) {
    if (live_.KeyAt(next) == start && live_.ValueAt(next).size == entry.size &&
        live_.ValueAt(next).name_hash == entry.name_hash) {
      ++counters_.duplicates;
      return;
    }
    const uint64_t end = start + entry.size;
    const uint64_t after_ns = AfterNs(entry);
    while (next != live_.End() && live_.KeyAt(next) < end) next = Supersede(next, after_ns, entry.by_ns);
  }
  NoteAdded(entry);
  if (!MakeRoom()) {
    ++counters_.refused;
    return;
  }
  // MakeRoom may have touched the past and the stubs, not the live methods: `next` is still good.
  live_.Insert(next, start, entry);
  ++counters_.methods;
}

// Stubs and methods have heaps of their own: where a stub is announced over a method, the method's memory was freed and
// has become a stub heap. (In the maps of 8.0.30, 9.0.19 and 10.0.14 no two of them overlap.)
void MethodMap::EndMethodsIn(uint64_t start, const Entry& stub) {
  LiveMap::Position method = FirstReaching(start);
  const uint64_t end = start + stub.size;
  const uint64_t after_ns = AfterNs(stub);
  while (method != live_.End() && live_.KeyAt(method) < end) method = Supersede(method, after_ns, stub.by_ns);
}

MethodMap::LiveMap::Position MethodMap::Supersede(LiveMap::Position method, uint64_t after_ns, uint64_t by_ns) {
  PushPast(past_, PastEntry{live_.KeyAt(method), live_.ValueAt(method), after_ns, by_ns});
  ++counters_.superseded;
  if (answered_) {
    ++generation_;
    answered_ = answered_open_ = false;
  }
  return live_.Erase(method);
}

void MethodMap::PushPast(std::deque<PastEntry>& past, const PastEntry& entry) {
  past.push_back(entry);
  if (past.size() <= kMaxPast) return;
  floor_ns_ = std::max(floor_ns_, past.front().ended_by_ns);
  past.pop_front();
  ++counters_.evicted;
}

void MethodMap::AddStub(uint64_t start, const Entry& entry) {
  StubMap& stubs = stubs_[StubClass(entry.size)];
  const StubKey key{start, entry.size};
  const auto found = stubs.find(key);
  if (found != stubs.end()) {
    if (found->second.name_hash == entry.name_hash) {
      ++counters_.duplicates;
      return;
    }
    EndMethodsIn(start, entry);
    PushPast(past_stubs_, PastEntry{start, found->second, AfterNs(entry), entry.by_ns});
    found->second = entry;
    ++counters_.stubs;
    if (answered_) ++generation_;
    answered_ = answered_open_ = false;
    return;
  }
  EndMethodsIn(start, entry);
  NoteAdded(entry);
  if (!MakeRoom()) {
    ++counters_.refused;
    return;
  }
  stubs.emplace(key, entry);
  ++stub_count_;
  ++counters_.stubs;
}

// A new entry changes answers that were open. It changes every answer if it is about a time that was taken for
// complete.
void MethodMap::NoteAdded(const Entry& entry) {
  const bool late = entry.window == kSinceEver || AfterNs(entry) < complete_until_.ns;
  if (!answered_open_ && !(answered_ && late)) return;
  ++generation_;
  answered_ = answered_open_ = false;
}

void MethodMap::Move(uint64_t old_start, uint64_t new_start, MonotonicTime time) {
  const LiveMap::Position above = live_.UpperBound(old_start);
  if (above == live_.Begin() || live_.KeyAt(live_.Before(above)) != old_start) {
    ++counters_.unknown_moves;
    return;
  }
  const LiveMap::Position found = live_.Before(above);
  const Entry moved = live_.ValueAt(found);
  const AddedWindow window = AddedWindow::Exactly(time);
  latest_by_ns_ = std::max(latest_by_ns_, time.ns);
  Supersede(found, window.after.ns, latest_by_ns_);
  Add(new_start, moved.size, NameOf(moved), false, window);
}

void MethodMap::Clear() {
  live_.Clear();
  past_.clear();
  past_stubs_.clear();
  for (StubMap& stubs : stubs_) stubs.clear();
  stub_count_ = 0;
  latest_by_ns_ = 0;
  floor_ns_ = 0;
  complete_until_ = MonotonicTime::Min();
  ++generation_;
  answered_ = answered_open_ = false;
}

void MethodMap::DropPastBefore(std::deque<PastEntry>& past, uint64_t time_ns, uint64_t& floor_ns) {
  while (!past.empty() && past.front().ended_by_ns < time_ns) {
    floor_ns = std::max(floor_ns, past.front().ended_by_ns);
    past.pop_front();
  }
}

void MethodMap::RetireSupersededBefore(MonotonicTime time) {
  DropPastBefore(past_, time.ns, floor_ns_);
  DropPastBefore(past_stubs_, time.ns, floor_ns_);
}

// The entries least likely to be asked for go first: the past, then the older half of the stubs.
bool MethodMap::MakeRoomByEviction() {
  if (bytes() + kEntryBytes <= options_.max_bytes) return true;
  if (past() > 0) {
    counters_.evicted += past();
    DropPastBefore(past_, kForever, floor_ns_);
    DropPastBefore(past_stubs_, kForever, floor_ns_);
  } else if (stub_count_ > 0) {
    std::vector<uint64_t> ages;
    ages.reserve(stub_count_);
    for (const StubMap& stubs : stubs_) {
      for (const auto& [key, entry] : stubs) ages.push_back(entry.by_ns);
    }
    const auto middle = ages.begin() + static_cast<ptrdiff_t>(ages.size() / 2);
    std::nth_element(ages.begin(), middle, ages.end());
    for (StubMap& stubs : stubs_) {
      for (auto at = stubs.begin(); at != stubs.end();)
        at = at->second.by_ns <= *middle ? stubs.erase(at) : std::next(at);
    }
    size_t left = 0;
    for (const StubMap& stubs : stubs_) left += stubs.size();
    counters_.evicted += stub_count_ - left;
    stub_count_ = left;
  }
  ++generation_;
  return bytes() + kEntryBytes <= options_.max_bytes;
}

MethodAnswer MethodMap::QueryMethods(uint64_t address, uint64_t time_ns, bool& only_earlier, bool& only_maybe) const {
  const Entry* live = nullptr;
  uint64_t live_start = 0;
  const LiveMap::Position next = live_.UpperBound(address);
  if (next != live_.Begin()) {
    const LiveMap::Position at = live_.Before(next);
    const uint64_t start = live_.KeyAt(at);
    const Entry& entry = live_.ValueAt(at);
    if (address - start < entry.size) {
      live = &entry;
      live_start = start;
      // The common case: the method has been there since before the time in question, and nothing has overlapped it.
      if (entry.by_ns <= time_ns) {
        return MethodAnswer{MethodAnswerKind::kMethod, start, entry.size, NameOf(entry), {entry.by_ns},
                            MonotonicTime::Max()};
      }
    }
  }
  Judge judge(time_ns);
  const auto first = std::partition_point(past_.begin(), past_.end(),
                                          [&](const PastEntry& past) { return past.ended_by_ns <= time_ns; });
  for (auto past = first; past != past_.end(); ++past) {
    if (address - past->start < past->entry.size && address >= past->start) {
      judge.Offer(past->start, past->entry, past->ended_after_ns, past->ended_by_ns, 0);
    }
  }
  if (live != nullptr) judge.Offer(live_start, *live, kForever, kForever, 0);

  if (judge.certain().any) {
    return Named(MethodAnswerKind::kMethod, judge.certain(), judge.certain_from_ns(), judge.certain_until_ns());
  }
  uint64_t until_ns = judge.next_edge_ns();
  if (time_ns < floor_ns_) until_ns = std::min(until_ns, floor_ns_);
  if (judge.maybe().any) {
    only_maybe = true;
    // Before the floor, the one that disputes it may be forgotten.
    if (judge.maybe().disputed || judge.maybe_is_ending() || time_ns < floor_ns_) {
      return Unnamed(MethodAnswerKind::kAmbiguous, time_ns, until_ns);
    }
    return Named(MethodAnswerKind::kMethod, judge.maybe(), time_ns, until_ns);
  }
  // A forgotten entry may have claimed the address.
  if (judge.earlier().any && options_.claims_earlier && time_ns >= floor_ns_) {
    only_earlier = true;
    if (judge.earlier().disputed) return Unnamed(MethodAnswerKind::kAmbiguous, time_ns, until_ns);
    return Named(MethodAnswerKind::kMethod, judge.earlier(), time_ns, until_ns);
  }
  return Unnamed(MethodAnswerKind::kNone, time_ns, until_ns);
}

MethodAnswer MethodMap::QueryStubs(uint64_t address, uint64_t time_ns, bool& certain) const {
  Judge judge(time_ns);
  const auto first = std::partition_point(past_stubs_.begin(), past_stubs_.end(),
                                          [&](const PastEntry& past) { return past.ended_by_ns <= time_ns; });
  for (auto past = first; past != past_stubs_.end(); ++past) {
    if (address >= past->start && address - past->start < past->entry.size) {
      judge.Offer(past->start, past->entry, past->ended_after_ns, past->ended_by_ns, past->entry.size);
    }
  }
  for (size_t stub_class = 0; stub_class < stubs_.size(); ++stub_class) {
    const StubMap& stubs = stubs_[stub_class];
    auto at = stubs.upper_bound(StubKey{address, std::numeric_limits<uint32_t>::max()});
    for (int walked = 0; walked < kMaxStubWalk && at != stubs.begin(); ++walked) {
      --at;
      if (address - at->first.start >= kLargestOfClass[stub_class]) break;
      if (address - at->first.start < at->first.size) {
        judge.Offer(at->first.start, at->second, kForever, kForever, at->first.size);
      }
    }
  }
  certain = judge.certain().any;
  const Judge::Pick& maybe = judge.maybe();
  uint64_t until_ns = judge.next_edge_ns();
  if (time_ns < floor_ns_) until_ns = std::min(until_ns, floor_ns_);
  if (certain && (!maybe.any || maybe.rank > judge.certain().rank)) {
    if (judge.certain().disputed) return Unnamed(MethodAnswerKind::kAmbiguous, time_ns, until_ns);
    return Named(MethodAnswerKind::kStub, judge.certain(), time_ns, until_ns);
  }
  if (maybe.any) {
    const bool same =
        !certain || (!judge.certain().disputed && maybe.entry.name_hash == judge.certain().entry.name_hash);
    if (maybe.disputed || !same || judge.maybe_is_ending() || time_ns < floor_ns_) {
      return Unnamed(MethodAnswerKind::kAmbiguous, time_ns, until_ns);
    }
    return Named(MethodAnswerKind::kStub, maybe, time_ns, until_ns);
  }
  if (judge.earlier().any && options_.claims_earlier && time_ns >= floor_ns_) {
    if (judge.earlier().disputed) return Unnamed(MethodAnswerKind::kAmbiguous, time_ns, until_ns);
    return Named(MethodAnswerKind::kStub, judge.earlier(), time_ns, until_ns);
  }
  return Unnamed(MethodAnswerKind::kNone, time_ns, until_ns);
}

MethodAnswer MethodMap::Query(uint64_t address, MonotonicTime time) {
  bool only_earlier = false;
  bool only_maybe = false;
  MethodAnswer method = QueryMethods(address, time.ns, only_earlier, only_maybe);
  answered_ = true;
  if (method.kind == MethodAnswerKind::kMethod && !only_earlier && !only_maybe) return method;

  bool stub_is_certain = false;
  MethodAnswer stub = QueryStubs(address, time.ns, stub_is_certain);
  const MonotonicTime until = std::min(method.until, stub.until);
  MethodAnswer answer = method;
  if (method.kind == MethodAnswerKind::kNone || (only_earlier && stub.kind != MethodAnswerKind::kNone)) {
    answer = stub;
  } else if (only_maybe && stub_is_certain) {
    // The stub was there. It is not known whether the method was already there.
    answer = Unnamed(MethodAnswerKind::kAmbiguous, time.ns, until.ns);
  }
  answer.from = time;
  answer.until = until;
  // Entries with exact times can't reach back behind what is known to be complete; lines without one can.
  if (!options_.claims_earlier && time <= complete_until_) {
    answer.until = std::min(answer.until, MonotonicTime{complete_until_.ns + 1});
  } else {
    answered_open_ = true;
  }
  return answer;
}

}  // namespace clrsampler
