// The questions of a reader of names to the memory of a real process: files of tests/testdata/memory, made by
// record_memory.cc.
//
// {u32 length of what follows unpacked}, then packed by zlib: a line of the runtime's place, lines of an address and
// its name, an empty line, and pieces of {u64 address, u32 length, bytes}. A name is the text of the runtime's perf
// map, or "[r2r] " and that of crossgen's list.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_RECORDED_MEMORY_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_RECORDED_MEMORY_H_

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "clr/memory/runtime_memory.h"
#include "formats/byte_reader.h"
#include "unit/clr/memory/fake_memory.h"

namespace clrsampler {

class RecordedMemory : public MemoryReader {
 public:
  static constexpr size_t kMostBytes = 256 << 10;

  explicit RecordedMemory(const std::string& file) {
    uint32_t bytes = 0;
    if (file.size() < sizeof bytes) return;
    std::memcpy(&bytes, file.data(), sizeof bytes);
    std::string text(bytes, '\0');
    uLongf unpacked = bytes;
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(text.data()), &unpacked,
                         reinterpret_cast<const Bytef*>(file.data()) + sizeof bytes, file.size() - sizeof bytes),
              Z_OK);
    EXPECT_EQ(unpacked, bytes);
    const size_t end = text.find("\n\n");
    EXPECT_NE(end, std::string::npos);
    ReadLines(absl::string_view(text).substr(0, end));
    for (size_t at = end + 2; at + 12 <= text.size();) {
      const uint64_t address = *LoadAt<uint64_t>(AsBytes(text), at);
      const uint32_t length = *LoadAt<uint32_t>(AsBytes(text), at + 8);
      memory_.SetBytes(address, *SliceAt(AsBytes(text), at + 12, length));
      at += 12 + size_t{length};
    }
  }

  bool Read(uint64_t address, std::span<std::byte> into) override {
    return into.size() <= kMostBytes && memory_.Read(address, into);
  }
  const RuntimePlace& place() const { return place_; }
  const std::vector<std::pair<uint64_t, std::string>>& names() const { return names_; }

 private:
  void ReadLines(absl::string_view text) {
    std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
    const std::vector<absl::string_view> place = absl::StrSplit(lines[0], ' ');
    ASSERT_EQ(place.size(), 6u);
    EXPECT_TRUE(absl::SimpleAtoi(place[0], &place_.major));
    place_.machine = place[1] == "arm64" ? ElfMachine::kArm64 : ElfMachine::kX64;
    EXPECT_TRUE(absl::SimpleHexAtoi(place[2], &place_.image.begin) && absl::SimpleHexAtoi(place[3], &place_.image.end));
    EXPECT_TRUE(absl::SimpleHexAtoi(place[4], &place_.dac_table) && absl::SimpleHexAtoi(place[5], &place_.descriptor));
    for (size_t i = 1; i < lines.size(); ++i) {
      const std::pair<absl::string_view, absl::string_view> row = absl::StrSplit(lines[i], absl::MaxSplits(' ', 1));
      uint64_t address = 0;
      EXPECT_TRUE(absl::SimpleHexAtoi(row.first, &address));
      names_.emplace_back(address, std::string(row.second));
    }
  }

  RuntimePlace place_;
  FakeMemory memory_;
  std::vector<std::pair<uint64_t, std::string>> names_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_RECORDED_MEMORY_H_
