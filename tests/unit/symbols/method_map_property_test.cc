// MethodMap against a list that is searched from end to end, and against the truth: programs that place code at random
// while a profiler reads their map now and then. Seeds are fixed; a failure prints its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "symbols/method_map.h"
#include "unit/rounds.h"

namespace clrsampler {
namespace {

constexpr uint64_t kUnit = 1024;  // windows are kept in these, so that the list need not round
constexpr uint64_t kForever = UINT64_MAX;

struct Item {
  uint64_t start, size, after, by, ended_after, ended_by;
  uint32_t name;
  bool stub;
  bool Covers(uint64_t a) const { return a >= start && a - start < size; }
};

enum class Claim { kCertain, kMaybe, kEarlier, kOver };

class NaiveMap {
 public:
  explicit NaiveMap(bool claims_earlier) : claims_earlier_(claims_earlier) {}

  void Add(Item item) {
    item.ended_after = item.ended_by = kForever;
    for (Item& old : items_) {
      if (old.ended_by != kForever || old.stub != item.stub) continue;
      const bool same_range = old.start == item.start && old.size == item.size;
      if (same_range && old.name == item.name) return;
    }
    for (Item& old : items_) {
      if (old.ended_by != kForever || (old.stub && !item.stub)) continue;
      const bool same_range = old.start == item.start && old.size == item.size;
      const bool overlaps = old.start < item.start + item.size && item.start < old.start + old.size;
      if (old.stub ? same_range : overlaps) {
        old.ended_after = item.after;
        old.ended_by = item.by;
      }
    }
    items_.push_back(item);
  }

  // The name, 0 for none, -1 for ambiguous.
  int Ask(uint64_t address, uint64_t time) const {
    const int method = Winner(address, time, false, Claim::kCertain);
    if (method != 0) return method;
    const int maybe = Winner(address, time, false, Claim::kMaybe);
    const int certain_stub = Winner(address, time, true, Claim::kCertain);
    if (maybe != 0) return certain_stub != 0 ? -1 : maybe;
    const int stub = StubAnswer(address, time);
    if (stub != 0) return stub;
    return claims_earlier_ ? Winner(address, time, false, Claim::kEarlier) : 0;
  }

 private:
  static Claim ClaimOf(const Item& item, uint64_t time) {
    if (item.by <= time && time <= item.ended_after) return Claim::kCertain;
    if (time >= item.ended_by) return Claim::kOver;
    return item.after != 0 && time <= item.after ? Claim::kEarlier : Claim::kMaybe;
  }

  std::vector<Item> Claimants(uint64_t address, uint64_t time, bool stub, Claim claim) const {
    std::vector<Item> found;
    for (const Item& item : items_) {
      if (item.stub == stub && item.Covers(address) && ClaimOf(item, time) == claim) found.push_back(item);
    }
    uint64_t smallest = kForever;
    for (const Item& item : found) smallest = std::min(smallest, item.size);
    if (stub) std::erase_if(found, [&](const Item& item) { return item.size != smallest; });
    return found;
  }

  int Winner(uint64_t address, uint64_t time, bool stub, Claim claim) const {
    const std::vector<Item> found = Claimants(address, time, stub, claim);
    if (found.empty()) return 0;
    for (const Item& item : found) {
      if (item.name != found.back().name) return -1;
    }
    // The newest of them may be over already.
    if (claim == Claim::kMaybe && time > found.back().ended_after) return -1;
    return static_cast<int>(found.back().name);
  }

  int StubAnswer(uint64_t address, uint64_t time) const {
    const std::vector<Item> certain = Claimants(address, time, true, Claim::kCertain);
    const std::vector<Item> maybe = Claimants(address, time, true, Claim::kMaybe);
    if (!certain.empty() && (maybe.empty() || maybe[0].size > certain[0].size)) {
      return Winner(address, time, true, Claim::kCertain);
    }
    if (!maybe.empty()) {
      const int winner = Winner(address, time, true, Claim::kMaybe);
      return certain.empty() || winner == Winner(address, time, true, Claim::kCertain) ? winner : -1;
    }
    return claims_earlier_ ? Winner(address, time, true, Claim::kEarlier) : 0;
  }

  bool claims_earlier_;
  std::vector<Item> items_;
};

int AskMap(MethodMap& map, uint64_t address, uint64_t time) {
  const MethodAnswer answer = map.Query(address, {time});
  EXPECT_LE(answer.from.ns, time);
  EXPECT_GT(answer.until.ns, time);
  if (answer.kind == MethodAnswerKind::kNone) return 0;
  if (answer.kind == MethodAnswerKind::kAmbiguous) return -1;
  EXPECT_TRUE(address >= answer.start && address - answer.start < answer.size);
  return static_cast<int>(answer.name.offset);
}

TEST(MethodMapPropertyTest, AnswersAsTheListDoes) {
  for (int seed = 1; seed <= Rounds(300); ++seed) {
    std::mt19937 random(seed);
    const bool exact = seed % 3 == 0;
    MethodMap map({.claims_earlier = !exact});
    NaiveMap naive(!exact);
    uint64_t read_to_end = 0;
    uint64_t now = 10;
    for (int step = 0; step < 60; ++step) {
      now += random() % 4 + (exact ? 1 : 0);
      Item item{};
      item.stub = random() % 4 == 0;
      item.start = random() % 200;
      item.size = item.stub && random() % 3 == 0 ? 64 : 1 + random() % 30;
      item.name = 1 + random() % 6;
      item.by = now * kUnit;
      item.after = exact ? item.by - 1 : read_to_end * kUnit;
      if (!exact && random() % 3 == 0 && read_to_end < now) read_to_end = now;
      if (item.after >= item.by) continue;
      map.Add(item.start, item.size, {item.name, item.name}, item.stub, {{item.after}, {item.by}});
      naive.Add(item);
      for (int query = 0; query < 20; ++query) {
        const uint64_t address = random() % 240;
        const uint64_t time = (random() % (now + 4)) * kUnit + random() % 3;
        ASSERT_EQ(AskMap(map, address, time), naive.Ask(address, time))
            << "seed " << seed << " step " << step << " address " << address << " time " << time;
      }
    }
  }
}

// An answer holds for all of [from, until) while the generation stands.
TEST(MethodMapPropertyTest, CachedAnswersStayTrue) {
  struct Cached {
    uint64_t address;
    uint64_t generation;
    int name;
    MonotonicTime from, until;
  };
  for (int seed = 1; seed <= Rounds(200); ++seed) {
    std::mt19937 random(seed);
    const bool exact = seed % 2 == 0;
    MethodMap map({.claims_earlier = !exact});
    std::vector<Cached> cache;
    uint64_t now = 10, read_to_end = 0;
    for (int step = 0; step < 80; ++step) {
      now += 1 + random() % 3;
      if (random() % 8 == 0) {
        map.Move(random() % 100, random() % 100, {now * kUnit});
      } else if (random() % 8 == 0) {
        map.RetireSupersededBefore({(now - 5) * kUnit});
        cache.clear();  // what is forgotten is not asked for again
      } else {
        const uint64_t after = exact ? now * kUnit - 1 : read_to_end * kUnit;
        map.Add(random() % 100, 1 + random() % 20, {1 + random() % 4, static_cast<uint32_t>(random() % 4)},
                random() % 4 == 0, {{after}, {now * kUnit}});
        if (random() % 3 == 0) read_to_end = now;
      }
      if (exact && random() % 3 == 0) map.NoteCompleteUntil({now * kUnit});
      for (const Cached& entry : cache) {
        if (entry.generation != map.generation()) continue;
        const uint64_t last = std::min(entry.until.ns - 1, (now + 2) * kUnit);
        for (const uint64_t time : {entry.from.ns, last, entry.from.ns + (last - entry.from.ns) / 2}) {
          MethodMap copy = map;  // asking must not change what is tested
          ASSERT_EQ(AskMap(copy, entry.address, time), entry.name) << "seed " << seed << " step " << step;
        }
      }
      for (int query = 0; query < 4; ++query) {
        const uint64_t address = random() % 120;
        const uint64_t time = (random() % (now + 2)) * kUnit + random() % 3;
        const MethodAnswer answer = map.Query(address, {time});
        if (answer.from.ns > (now + 2) * kUnit) continue;
        cache.push_back({address, map.generation(), AskMap(map, address, time), answer.from, answer.until});
      }
    }
  }
}

// Code is placed at known times; the profiler reads the map at other times. Whatever it is asked afterwards: a name is
// the name of the code that was really there.
TEST(MethodMapPropertyTest, NeverAWrongName) {
  uint64_t named = 0, asked = 0;
  for (int seed = 1; seed <= Rounds(300); ++seed) {
    std::mt19937 random(seed);
    const bool exact = seed % 2 == 0;
    MethodMap map({.claims_earlier = !exact});
    std::vector<Item> truth;  // after/by: placed at `by`; ended_by: gone
    uint64_t read_to_end = 0;
    size_t read_items = 0;
    uint64_t now = 1;
    for (int step = 0; step < 120; ++step) {
      now += 1 + random() % 5;
      if (random() % 3 != 0) {
        Item item{.start = random() % 300, .size = 1 + random() % 40, .by = now * kUnit, .ended_by = kForever};
        item.name = static_cast<uint32_t>(truth.size() + 1);
        for (Item& old : truth) {
          if (old.ended_by == kForever && old.start < item.start + item.size && item.start < old.start + old.size) {
            old.ended_by = item.by;
          }
        }
        truth.push_back(item);
        continue;
      }
      for (; read_items < truth.size(); ++read_items) {
        const Item& item = truth[read_items];
        const AddedWindow window = exact ? AddedWindow::Exactly({item.by}) : AddedWindow{{read_to_end}, {now * kUnit}};
        map.Add(item.start, item.size, {item.name, item.name}, false, window);
      }
      read_to_end = now * kUnit;
      for (int query = 0; query < 30; ++query) {
        const uint64_t address = random() % 340;
        const uint64_t time = random() % (now * kUnit);
        int real = 0;
        for (const Item& item : truth) {
          if (item.Covers(address) && item.by <= time && time < item.ended_by) real = static_cast<int>(item.name);
        }
        if (real == 0) continue;  // nothing ran there, so nothing is sampled there
        const int answer = AskMap(map, address, time);
        ++asked;
        named += answer == real;
        if (exact) {
          ASSERT_EQ(answer, real) << "seed " << seed;
        } else {
          ASSERT_TRUE(answer == real || answer == -1) << "seed " << seed << " " << answer << " for " << real;
        }
      }
    }
  }
  EXPECT_GT(named, asked * 8 / 10);
}

}  // namespace
}  // namespace clrsampler
