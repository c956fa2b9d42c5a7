#include "formats/unwind/unwind_bytes.h"

#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/unwind/frame_steps.h"
#include "unit/formats/unwind/arm64_records.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;

// sub rsp,18h, chained to what stands at RVA 64: push rbp, push rbx.
constexpr char kPart[] = "2104010004220000", kChain[] = "555555556666666640000000", kParent[] = "0102020002300150";

std::string Bytes(const std::string& hex) { return absl::HexStringToBytes(hex); }

TEST(UnwindBytesTest, WhatAPartIsChainedToFollows) {
  const std::string image = Bytes(kPart) + Bytes(kChain) + std::string(44, '\x77') + Bytes(kParent) + "behind";
  const auto read = [&](uint32_t rva) { return AsBytes(image).subspan(rva); };
  const auto bytes = UnwindBytes(read, 0);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, Bytes(kPart) + Bytes(kChain) + Bytes(kParent));
  const auto steps = FrameStepsOfX64(AsBytes(*bytes));
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_EQ(*steps, *FrameStepsOf(*UnwindInfo::ParseWithChain(read, 0)));
  EXPECT_EQ(*UnwindBytes(read, 64), Bytes(kParent));
}

TEST(UnwindBytesTest, WhatIsCutIsAnError) {
  const std::string image = Bytes(kPart) + Bytes(kChain) + std::string(44, '\x77') + Bytes(kParent);
  for (size_t size = 0; size < image.size(); ++size) {
    const auto read = [&](uint32_t rva) { return AsBytes(image).first(size).subspan(std::min<size_t>(rva, size)); };
    EXPECT_EQ(UnwindBytes(read, 0).status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST(UnwindBytesTest, AChainIsAsLongAsItMayBe) {
  // Parts of 528 bytes, each chained to the next one.
  const auto image_of = [](uint32_t parts) {
    std::string image;
    for (uint32_t i = 1; i <= parts; ++i) {
      image += Bytes(i < parts ? "2100ff00" : "0100ff00");
      for (int code = 0; code < 256; ++code) image += Bytes("0002");  // sub rsp,8
      image += std::string(8, '\0');
      const uint32_t next = i * 528;
      image.append(reinterpret_cast<const char*>(&next), sizeof next);
    }
    return image;
  };
  const auto bytes_of = [](const std::string& image) {
    return UnwindBytes([&](uint32_t rva) { return AsBytes(image).subspan(rva); }, 0);
  };
  const std::string most = image_of(7);
  EXPECT_EQ(*bytes_of(most), most.substr(0, most.size() - 12));  // the last one is chained to nothing
  EXPECT_EQ(bytes_of(image_of(8)).status().code(), absl::StatusCode::kDataLoss);
  // To itself.
  EXPECT_FALSE(UnwindBytes([&](uint32_t) { return AsBytes(most); }, 0).ok());
}

class ReadUnwindInfoBytesTest : public ::testing::Test {
 protected:
  // Memory that ends behind its content.
  size_t SizeRead(const std::string& memory, uint64_t address = kAddress) {
    const auto read = [&](uint64_t from, std::span<std::byte> into) {
      asked.push_back(into.size());
      if (from < kAddress || from - kAddress > memory.size()) return false;
      const std::string there = memory.substr(from - kAddress, into.size());
      std::memcpy(into.data(), there.data(), there.size());
      return there.size() == into.size();
    };
    return ReadUnwindInfoBytes(read, address, bytes).size();
  }
  static constexpr uint64_t kAddress = 0x7F0000001000;
  UnwindInfoBytes bytes;
  std::vector<size_t> asked;
};

TEST_F(ReadUnwindInfoBytesTest, NoByteBehindItIsRead) {
  EXPECT_EQ(SizeRead(Bytes("0100000011")), 4u);
  EXPECT_THAT(asked, ElementsAre(4));
  EXPECT_EQ(SizeRead(Bytes(kParent)), 8u);
  EXPECT_EQ(SizeRead(Bytes(kPart) + Bytes(kChain)), 20u);
  EXPECT_EQ(std::memcmp(bytes.data(), (Bytes(kPart) + Bytes(kChain)).data(), 20), 0);
  EXPECT_EQ(SizeRead(Bytes("2100ff00") + std::string(524, '\0')), UnwindInfo::kMaxBytes);
}

TEST_F(ReadUnwindInfoBytesTest, WhatCannotBeReadIsEmpty) {
  EXPECT_EQ(SizeRead(Bytes("010000")), 0u);
  EXPECT_EQ(SizeRead(Bytes("01020200023001")), 0u);
  EXPECT_EQ(SizeRead(Bytes(kParent), kAddress - 1), 0u);
}

// As far as `size`, in a memory that ends there.
absl::StatusOr<std::string> Arm64BytesOf(absl::string_view image, uint64_t address) {
  return Arm64UnwindBytes(
      [&](uint64_t at, std::span<std::byte> into) {
        if (at > image.size() || into.size() > image.size() - at) return false;
        std::memcpy(into.data(), image.data() + at, into.size());
        return true;
      },
      address);
}

TEST(Arm64UnwindBytesTest, ARecordIsReadToItsEndAndNoFurther) {
  const std::string plain = Bytes(kArm64Plain.unwind);
  // 3 epilogues, 1 word of codes, a handler, counted in a second word.
  const std::string large = Bytes("0a0010000300010011111111222222223333333302e4e3e344444444");
  for (const std::string& record : {plain, large}) {
    EXPECT_EQ(*Arm64BytesOf("before" + record + "behind", 6), record);
    EXPECT_EQ(*Arm64BytesOf("before" + record, 6), record);
    for (size_t size = 0; size < record.size(); ++size) {
      EXPECT_EQ(Arm64BytesOf(record.substr(0, size), 0).status().code(), absl::StatusCode::kDataLoss) << size;
    }
  }
  EXPECT_EQ(*Arm64BytesOf(Bytes("0a000008e4e4e4e4"), 0), Bytes("0a000008e4e4e4e4"));  // the smallest one
}

TEST(Arm64UnwindBytesTest, ARecordIsAsLongAsItMayBe) {
  const auto record_of = [](uint16_t epilogues) {
    std::string record = Bytes("0a0000000000010002e4e3e3");
    std::memcpy(record.data() + 4, &epilogues, sizeof epilogues);
    return record.insert(8, std::string(size_t{4} * epilogues, '\x11'));
  };
  const std::string most = record_of((kMaxUnwindPartBytes - 12) / 4);
  EXPECT_EQ(*Arm64BytesOf(most, 0), most);
  EXPECT_FALSE(Arm64BytesOf(record_of((kMaxUnwindPartBytes - 12) / 4 + 1), 0).ok());
  EXPECT_FALSE(Arm64BytesOf(record_of(0xFFFF), 0).ok());
}

TEST(Arm64UnwindBytesTest, ARecordThatIsReplacedWhileItIsReadIsAnError) {
  int reads = 0;
  const auto read = [&](uint64_t, std::span<std::byte> into) {
    // Its code goes on behind what the first read said.
    const std::string record = Bytes(++reads == 1 ? "0a000008e4e4e4e4" : "0a00001002e3e3e3e4e4e4e4");
    std::memcpy(into.data(), record.data(), std::min(into.size(), record.size()));
    return true;
  };
  EXPECT_EQ(Arm64UnwindBytes(read, 0).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(reads, 2);
}

}  // namespace
}  // namespace clrsampler
