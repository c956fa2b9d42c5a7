// Finds the method that was at an address at a time: the index over one file of method records (a jitdump or a perf
// map) of one process.
//
// Addresses of compiled code are reused: a method is collected or moved, another one is put there. So every method has
// a lifetime. It begins inside the window in which it was added and ends when a newer method overlaps it: the memory
// was taken over, so all of the older one is gone. Where the windows leave open which of two methods it was, the answer
// is kAmbiguous; a wrong name is never an answer.
//
// Runtime stubs stand apart. They are announced one by one or in blocks of up to 64 KiB that cover later, exact
// entries. A method beats the stubs that were there before it, and the smallest stub wins. A stub ends the methods that
// it is announced over, and an older stub of the same range.
//
// Names are not kept here. An entry holds a reference: the offset of the name in its file, so 40 bytes per method in
// all, and none of the 125 bytes of an average .NET name. It also has 24 bits of hash. They are enough to see whether
// two names are the same and whether the bytes that are read at the reference later are still the name.
//
// Cost: a lookup is one search in sorted blocks. It is bounded for hostile input too: live methods never overlap, the
// past is capped, and the walk over overlapping stubs has a limit. Threads: one thread owns a map. Nothing here fails:
// what can't be taken is counted.
#ifndef CLRSAMPLER_SYMBOLS_METHOD_MAP_H_
#define CLRSAMPLER_SYMBOLS_METHOD_MAP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "os/clock.h"
#include "symbols/sorted_blocks.h"

namespace clrsampler {

// An entry was added at some time in (after, by]. A perf map line: `after` is when the file was last read to its end
// without the line (Min for the first read), `by` when it was found. A jitdump record: exactly its time stamp.
struct AddedWindow {
  MonotonicTime after;
  MonotonicTime by;
  static AddedWindow Exactly(MonotonicTime time) { return {{time.ns == 0 ? 0 : time.ns - 1}, time}; }
};

// 24 bits of a hash of the name: the same for equal names within one run of the program. The seed differs from run to
// run (an address, which the loader randomises), so that a target can't prepare two names with one hash.
uint32_t MethodNameHash(absl::string_view name);

struct MethodNameRef {
  static constexpr uint64_t kMaxOffset = (uint64_t{1} << 40) - 1;
  uint64_t offset = 0;  // what the owner of the map takes it for; at most kMaxOffset
  uint32_t hash = 0;    // MethodNameHash of the name
};

enum class MethodAnswerKind : uint8_t {
  kNone,       // nothing known there at that time
  kAmbiguous,  // code was replaced in a time window that holds the question
  kMethod,
  kStub,
};

struct MethodAnswer {
  MethodAnswerKind kind = MethodAnswerKind::kNone;
  // The start of the entry, for kMethod and kStub.
  uint64_t start = 0;
  uint32_t size = 0;
  MethodNameRef name;
  // The answer holds for every time in [from, until), as long as the generation stays the same.
  MonotonicTime from = MonotonicTime::Min();
  MonotonicTime until = MonotonicTime::Max();
};

struct MethodMapCounters {
  uint64_t methods = 0;        // taken
  uint64_t stubs = 0;          // taken
  uint64_t duplicates = 0;     // sent again with the same range and name: no news
  uint64_t superseded = 0;     // methods whose memory was taken over
  uint64_t empty = 0;          // of size 0: nothing can be sampled there
  uint64_t bad_ranges = 0;     // above 4 GiB or beyond the end of the address space
  uint64_t unknown_moves = 0;  // a move of a method that is not there
  uint64_t evicted = 0;        // stubs and superseded methods dropped because of the memory limit
  uint64_t refused = 0;        // new entries not taken because of the memory limit
};

class MethodMap {
 public:
  struct Options {
    // Whether an entry counts before its window where nothing else claims the address: a perf map does not say since
    // when its methods exist, a jitdump does.
    bool claims_earlier = false;
    // For entries, by the estimate of bytes(); about 1.6 million methods.
    size_t max_bytes = 64 << 20;
  };

  explicit MethodMap(Options options) : options_(options) {}

  // In the order of the file, which is the order of creation. Times may step back a little (threads race for the
  // writer's lock); then the entry counts from its own time where nothing disputes it, and for certain from the latest
  // time before it.
  void Add(uint64_t start, uint64_t size, MethodNameRef name, bool is_stub, AddedWindow window);

  // The method that begins at `old_start` is at `new_start` from then on.
  void Move(uint64_t old_start, uint64_t new_start, MonotonicTime time);

  // The file was begun anew: all that was known is void.
  void Clear();

  // All entries added up to this time are in. Only widens the times for which answers hold.
  void NoteCompleteUntil(MonotonicTime time) { complete_until_ = std::max(complete_until_, time); }

  // May not be const: it remembers that answers were given, so that Add knows when to raise the generation.
  MethodAnswer Query(uint64_t address, MonotonicTime time);

  // Grows whenever an answer that was given may be another one now.
  uint64_t generation() const { return generation_; }

  // No question about a time before this will come: forgets methods that were superseded before it. Without this a
  // process that compiles and frees for ever would keep kMaxPast of them.
  void RetireSupersededBefore(MonotonicTime time);

  size_t methods() const { return live_.size(); }
  size_t stubs() const { return stub_count_; }
  size_t past() const { return past_.size() + past_stubs_.size(); }
  size_t bytes() const { return (live_.size() + past()) * kEntryBytes + stub_count_ * kEntryBytes; }
  const MethodMapCounters& counters() const { return counters_; }

  // Superseded methods that are kept. Also the bound of a lookup's worst case: with 16 Ki of them and as many stubs,
  // all of which overlap, one takes 60 to 85 us.
  static constexpr size_t kMaxPast = 16 * 1024;
  // Overlapping stubs of similar size that one lookup looks at; real ones overlap two deep.
  static constexpr int kMaxStubWalk = 64;

 private:
  static constexpr size_t kEntryBytes = 42;  // key, Entry, and the share of half-filled blocks

  struct Entry {
    uint64_t by_ns;  // end of the window in which it was added
    uint64_t name_offset : 40;
    uint64_t name_hash : 24;
    uint32_t size;
    uint32_t window;  // length of that window, see EncodeWindow
  };
  static_assert(sizeof(Entry) == 24);

  // An entry of the past: it ended in the window (after_ns, by_ns].
  struct PastEntry {
    uint64_t start;
    Entry entry;
    uint64_t ended_after_ns;
    uint64_t ended_by_ns;
  };

  struct StubKey {
    uint64_t start;
    uint32_t size;
    friend auto operator<=>(const StubKey&, const StubKey&) = default;
  };

  class Judge;
  using LiveMap = SortedBlocks<Entry>;
  using StubMap = absl::btree_map<StubKey, Entry>;

  static uint32_t EncodeWindow(AddedWindow window);
  static uint64_t AfterNs(const Entry& entry);
  static size_t StubClass(uint32_t size);
  static void DropPastBefore(std::deque<PastEntry>& past, uint64_t time_ns, uint64_t& floor_ns);

  void AddMethod(uint64_t start, const Entry& entry);
  void AddStub(uint64_t start, const Entry& entry);
  void EndMethodsIn(uint64_t start, const Entry& stub);
  LiveMap::Position FirstReaching(uint64_t start) const;
  LiveMap::Position Supersede(LiveMap::Position method, uint64_t after_ns, uint64_t by_ns);
  void PushPast(std::deque<PastEntry>& past, const PastEntry& entry);
  // True when one more entry may be kept.
  bool MakeRoom() {
    const size_t most_entries = live_.size() + stub_count_ + 2 * kMaxPast + 1;
    return most_entries * kEntryBytes <= options_.max_bytes || MakeRoomByEviction();
  }
  bool MakeRoomByEviction();
  void NoteAdded(const Entry& entry);
  MethodAnswer QueryMethods(uint64_t address, uint64_t time_ns, bool& only_earlier, bool& only_maybe) const;
  MethodAnswer QueryStubs(uint64_t address, uint64_t time_ns, bool& certain) const;

  Options options_;
  LiveMap live_;                      // by start; free of overlaps
  std::deque<PastEntry> past_;        // by ended_by_ns
  std::array<StubMap, 5> stubs_;      // by size class; a class spans a factor of 16
  std::deque<PastEntry> past_stubs_;  // by ended_by_ns
  size_t stub_count_ = 0;
  uint64_t latest_by_ns_ = 0;
  uint64_t floor_ns_ = 0;  // of questions before this time some of the past is forgotten
  MonotonicTime complete_until_ = MonotonicTime::Min();
  uint64_t generation_ = 1;
  bool answered_ = false;       // since the generation last grew
  bool answered_open_ = false;  // ... with something that any later entry may change
  MethodMapCounters counters_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_METHOD_MAP_H_
