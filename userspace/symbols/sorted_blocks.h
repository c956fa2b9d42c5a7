// A map from addresses to small values for keys that mostly arrive in ascending order: sorted blocks of up to 64
// entries, and one array with the first key of each.
//
// Appending behind the last key costs a fifth of a B-tree's insertion, and a search touches fewer cache lines: the keys
// of a block stand together. Inserting and erasing elsewhere shifts one block, and when blocks are made or dropped also
// the array of their first keys, so it costs O(n / 64) at the worst: some 10 us among 1.6 million. Neighbours that
// together fill less than three quarters of a block are joined, which bounds the memory at 3 times that of the entries.
#ifndef CLRSAMPLER_SYMBOLS_SORTED_BLOCKS_H_
#define CLRSAMPLER_SYMBOLS_SORTED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace clrsampler {

// Value: trivially copyable. One thread.
template <typename Value>
class SortedBlocks {
 public:
  // The position of an entry, or the end. Any change but the one that returned it makes a position invalid.
  struct Position {
    size_t block = 0;
    size_t index = 0;
    friend bool operator==(const Position&, const Position&) = default;
  };

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Position Begin() const { return {0, 0}; }
  Position End() const { return {blocks_.size(), 0}; }
  uint64_t KeyAt(Position at) const { return blocks_[at.block].keys[at.index]; }
  const Value& ValueAt(Position at) const { return blocks_[at.block].values[at.index]; }

  // Not of Begin().
  Position Before(Position at) const {
    if (at.index > 0) return {at.block, at.index - 1};
    return {at.block - 1, blocks_[at.block - 1].keys.size() - 1};
  }

  // The first entry whose key is above `key`.
  Position UpperBound(uint64_t key) const {
    const size_t above = CountUpTo(first_keys_, key);
    if (above == 0) return Begin();
    return Normal({above - 1, CountUpTo(blocks_[above - 1].keys, key)});
  }

  // Before `at`; the caller sees to it that the order stands and that no key is there twice.
  void Insert(Position at, uint64_t key, const Value& value) {
    ++size_;
    if (at == End()) return Append(key, value);
    if (blocks_[at.block].keys.size() == kBlockEntries) at = Split(at);
    Block& block = blocks_[at.block];
    block.keys.insert(block.keys.begin() + Offset(at.index), key);
    block.values.insert(block.values.begin() + Offset(at.index), value);
    first_keys_[at.block] = block.keys.front();
  }

  // Returns where the next entry is then.
  Position Erase(Position at) {
    --size_;
    Block& block = blocks_[at.block];
    block.keys.erase(block.keys.begin() + Offset(at.index));
    block.values.erase(block.values.begin() + Offset(at.index));
    if (block.keys.empty()) {
      DropBlock(at.block);
      return Normal(at);
    }
    first_keys_[at.block] = block.keys.front();
    if (at.block + 1 < blocks_.size()) JoinIfThin(at.block);
    if (at.block > 0) {
      const size_t before = blocks_[at.block - 1].keys.size();
      if (JoinIfThin(at.block - 1)) at = {at.block - 1, at.index + before};
    }
    return Normal(at);
  }

  void Clear() {
    first_keys_.clear();
    blocks_.clear();
    size_ = 0;
  }

 private:
  static constexpr size_t kBlockEntries = 64;
  struct Block {
    std::vector<uint64_t> keys;
    std::vector<Value> values;
  };

  static std::ptrdiff_t Offset(size_t index) { return static_cast<std::ptrdiff_t>(index); }

  Position Normal(Position at) const {
    if (at.block < blocks_.size() && at.index == blocks_[at.block].keys.size()) return {at.block + 1, 0};
    return at;
  }

  // How many of the sorted keys are at most `key`. Without branches that depend on the keys: of those of a binary
  // search every second one is guessed wrong, which costs more than all the rest (std::upper_bound: twice as slow).
  static size_t CountUpTo(const std::vector<uint64_t>& keys, uint64_t key) {
    const uint64_t* from = keys.data();
    size_t left = keys.size();
    while (left > 1) {
      const size_t half = left / 2;
      from += from[half] <= key ? half : 0;
      left -= half;
    }
    return static_cast<size_t>(from - keys.data()) + (left == 1 && *from <= key ? 1 : 0);
  }

  static Block NewBlock() {
    Block block;
    block.keys.reserve(kBlockEntries);
    block.values.reserve(kBlockEntries);
    return block;
  }

  void Append(uint64_t key, const Value& value) {
    if (blocks_.empty() || blocks_.back().keys.size() == kBlockEntries) {
      blocks_.push_back(NewBlock());
      first_keys_.push_back(key);
    }
    blocks_.back().keys.push_back(key);
    blocks_.back().values.push_back(value);
  }

  // Moves the upper half of a full block to a new one behind it; returns where `at` is then.
  Position Split(Position at) {
    constexpr size_t kHalf = kBlockEntries / 2;
    Block upper = NewBlock();
    Block& lower = blocks_[at.block];
    upper.keys.assign(lower.keys.begin() + Offset(kHalf), lower.keys.end());
    upper.values.assign(lower.values.begin() + Offset(kHalf), lower.values.end());
    lower.keys.resize(kHalf);
    lower.values.resize(kHalf);
    first_keys_.insert(first_keys_.begin() + Offset(at.block + 1), upper.keys.front());
    blocks_.insert(blocks_.begin() + Offset(at.block + 1), std::move(upper));
    return at.index <= kHalf ? at : Position{at.block + 1, at.index - kHalf};
  }

  bool JoinIfThin(size_t lower) {
    Block& to = blocks_[lower];
    const Block& from = blocks_[lower + 1];
    if (to.keys.size() + from.keys.size() > kBlockEntries * 3 / 4) return false;
    to.keys.insert(to.keys.end(), from.keys.begin(), from.keys.end());
    to.values.insert(to.values.end(), from.values.begin(), from.values.end());
    DropBlock(lower + 1);
    return true;
  }

  void DropBlock(size_t block) {
    first_keys_.erase(first_keys_.begin() + Offset(block));
    blocks_.erase(blocks_.begin() + Offset(block));
  }

  std::vector<uint64_t> first_keys_;  // of blocks_, none of which is empty
  std::vector<Block> blocks_;
  size_t size_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_SORTED_BLOCKS_H_
