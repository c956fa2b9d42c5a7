#include "clr/memory/stub_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

constexpr uint64_t kStubBegin = 0x7f00'0000'1000;
constexpr size_t kBefore = 0x300;  // of other memory

using Bytes = std::vector<uint8_t>;

Bytes Joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Bytes WithHeader(const Bytes& code, uint32_t flags, uint32_t references = 1) {
  Bytes all(kStubHeaderBytes, 0);
  const uint32_t size = (code.size() + 7) / 8 * 8 | flags;
  std::memcpy(all.data(), &references, sizeof references);
  std::memcpy(all.data() + 4, &size, sizeof size);
  all.insert(all.end(), code.begin(), code.end());
  return all;
}

Bytes Int32(int32_t value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// As .NET writes it for pages of that size.
Bytes CallCounting(int32_t page) {
  return Joined({{0x48, 0x8b, 0x05},
                 Int32(page - 7),
                 {0x66, 0xff, 0x08, 0x74, 0x06, 0xff, 0x25},
                 Int32(page + 8 - 18),
                 {0xff, 0x25},
                 Int32(page + 16 - 24)});
}

// Read in processes of .NET 8.0.30, 9.0.19 and 10.0.14.
const Bytes kShuffle8 = {0x48, 0x8b, 0xc4, 0x49, 0x89, 0xfb, 0x48, 0x89, 0xf7, 0x4d,
                         0x8b, 0x53, 0x20, 0x49, 0x83, 0xc3, 0x20, 0x49, 0xff, 0xe2};
const Bytes kShuffle10 = {0x48, 0x8b, 0xc4, 0x49, 0x89, 0xfb, 0x48, 0x89, 0xf7, 0x48, 0x89,
                          0xd6, 0x48, 0x89, 0xca, 0x4c, 0x89, 0xc1, 0x4d, 0x89, 0xc8, 0x4d,
                          0x8b, 0x53, 0x20, 0x49, 0x83, 0xc3, 0x20, 0x41, 0xff, 0xe2};
const Bytes kInstantiating = {0x48, 0xbe, 0x40, 0x20, 0x98, 0x69, 0xd1, 0x7f, 0x00, 0x00, 0x48,
                              0xb8, 0xa0, 0x14, 0x96, 0x69, 0xd1, 0x7f, 0x00, 0x00, 0xff, 0xe0};
const Bytes kInstantiatingMoves = {0x49, 0x89, 0xc8, 0x48, 0x89, 0xd1, 0x48, 0x89, 0xf2, 0x48, 0xbe,
                                   0x40, 0xb7, 0x9a, 0x69, 0xd1, 0x7f, 0x00, 0x00, 0x48, 0xb8, 0xa0,
                                   0x9d, 0x96, 0x69, 0xd1, 0x7f, 0x00, 0x00, 0xff, 0xe0};
const Bytes kUnboxing = {0x48, 0x8b, 0x37, 0x48, 0x83, 0xc7, 0x08, 0x48, 0xb8, 0xc8,
                         0x22, 0x70, 0x69, 0xd1, 0x7f, 0x00, 0x00, 0xff, 0xe0};
const Bytes kPlainUnboxing = {0x48, 0x83, 0xc7, 0x08, 0x48, 0xb8, 0xc8, 0x22,
                              0x70, 0x69, 0xd1, 0x7f, 0x00, 0x00, 0xff, 0xe0};

struct Case {
  const char* kind;
  Bytes bytes;
  size_t header;
};

std::vector<Case> Cases() {
  return {{"CallCountingStub", CallCounting(0x1000), 0},
          {"CallCountingStub", CallCounting(0x4000), 0},
          {"DelegateShuffleThunk", WithHeader(kShuffle8, 0x24000000, 8), kStubHeaderBytes},
          {"DelegateShuffleThunk", WithHeader(kShuffle10, 0x50000000, 2), kStubHeaderBytes},
          {"InstantiatingStub", WithHeader(kInstantiating, 0x60000000), kStubHeaderBytes},
          {"InstantiatingStub", WithHeader(kInstantiatingMoves, 0x30000000), kStubHeaderBytes},
          {"UnboxingStub", WithHeader(kUnboxing, 0x60000000), kStubHeaderBytes},
          {"UnboxingStub", WithHeader(kPlainUnboxing, 0x30000000), kStubHeaderBytes}};
}

std::vector<std::byte> Among(const Bytes& bytes, size_t before = kBefore, size_t after = 300) {
  Bytes all(before, 0xcc);
  all.insert(all.end(), bytes.begin(), bytes.end());
  all.insert(all.end(), after, 0xcc);
  const auto as_bytes = std::as_bytes(std::span(all));
  return {as_bytes.begin(), as_bytes.end()};
}

std::string KindAt(const std::vector<std::byte>& memory, size_t at) {
  const auto found = StubCodeAround(ElfMachine::kX64, kStubBegin + at, memory, kStubBegin);
  return found.has_value() ? std::string(found->kind) : "";
}

TEST(StubCode, IsKnownFromEachOfItsBytesAndFromNoOther) {
  for (const Case& c : Cases()) {
    const std::vector<std::byte> memory = Among(c.bytes);
    for (size_t i = 0; i < memory.size(); ++i) {
      const bool inside = i >= kBefore + c.header && i < kBefore + c.bytes.size();
      ASSERT_EQ(KindAt(memory, i), inside ? c.kind : "") << c.kind << " at " << i;
    }
    const auto found = StubCodeAround(ElfMachine::kX64, kStubBegin + kBefore + c.header, memory, kStubBegin);
    EXPECT_EQ(found->range.begin, kStubBegin + kBefore + c.header);
    EXPECT_EQ(found->range.end, kStubBegin + kBefore + c.bytes.size());
  }
}

TEST(StubCode, NeighboursAreApart) {
  Bytes page;
  for (int i = 0; i < 40; ++i) page = Joined({page, CallCounting(0x4000)});
  const std::vector<std::byte> memory = Among(page);
  for (size_t i = 0; i < page.size(); ++i) {
    const auto found = StubCodeAround(ElfMachine::kX64, kStubBegin + kBefore + i, memory, kStubBegin);
    ASSERT_TRUE(found.has_value()) << i;
    EXPECT_EQ(found->range.begin, kStubBegin + kBefore + i / 24 * 24);
  }
}

// Each byte of a counting stub is fixed by the others. In the rest, all but the constants and the choice of registers
// is.
TEST(StubCode, AnotherInstructionMakesItNone) {
  for (const Case& c : Cases()) {
    const size_t last = c.bytes.size() - 1, first = c.header;
    for (const size_t at : {first + 1, last - 1, last}) {
      Bytes changed = c.bytes;
      changed[at] ^= 0x10;
      EXPECT_EQ(KindAt(Among(changed), kBefore + first + 1), "") << c.kind << " without its byte " << at - first;
    }
  }
  const Bytes counting = CallCounting(0x4000);
  for (size_t at = 0; at < counting.size(); ++at) {
    Bytes changed = counting;
    changed[at] ^= 1;
    EXPECT_EQ(KindAt(Among(changed), kBefore + 1), "") << at;
  }
}

TEST(StubCode, ItsHeaderAndItsPlaceCountToo) {
  const Bytes unboxing = WithHeader(kUnboxing, 0);
  EXPECT_EQ(KindAt(Among(unboxing), kBefore + 20), "UnboxingStub");
  EXPECT_EQ(KindAt(Among(unboxing, kBefore + 8), kBefore + 8 + 20), "") << "not on 16 bytes";
  EXPECT_EQ(KindAt(Among(WithHeader(kUnboxing, 0, 0)), kBefore + 20), "") << "nobody refers to it";
  Bytes short_one = unboxing;
  short_one[4] = 0x10;
  EXPECT_EQ(KindAt(Among(short_one), kBefore + 20), "") << "shorter than its code";
  EXPECT_EQ(KindAt(Among(CallCounting(0x4000), kBefore + 4), kBefore + 4), "") << "not on 8 bytes";
  EXPECT_EQ(KindAt(Among(CallCounting(0x3000)), kBefore), "") << "no page has that size";
}

TEST(StubCode, WhatIsCutIsNone) {
  for (const Case& c : Cases()) {
    const std::vector<std::byte> memory = Among(c.bytes);
    const size_t first = kBefore + c.header, end = kBefore + c.bytes.size();
    for (size_t size = first + 1; size < end; ++size) {
      EXPECT_FALSE(
          StubCodeAround(ElfMachine::kX64, kStubBegin + first, std::span(memory).first(size), kStubBegin).has_value());
    }
    EXPECT_FALSE(StubCodeAround(ElfMachine::kX64, kStubBegin + end - 1, std::span(memory).subspan(first + 1),
                                kStubBegin + first + 1)
                     .has_value());
    EXPECT_FALSE(StubCodeAround(ElfMachine::kX64, kStubBegin - 1, memory, kStubBegin).has_value());
    EXPECT_FALSE(StubCodeAround(ElfMachine::kX64, kStubBegin + memory.size(), memory, kStubBegin).has_value());
  }
}

// Read in a process of .NET 11.0.0, with the eight bytes before it.
TEST(StubCode, OfARangeOfAssembledStubsNoHeaderIsAsked) {
  const Bytes moves = {0x40, 0xf1, 0xcf, 0xfe, 0xfb, 0x7e, 0x00, 0x00, 0x4c, 0x89, 0xc1, 0x48,
                       0x89, 0xf2, 0x48, 0xbe, 0x38, 0x45, 0x9b, 0xff, 0xfb, 0x7e, 0x00, 0x00,
                       0x48, 0xb8, 0x98, 0x25, 0xce, 0xfe, 0xfb, 0x7e, 0x00, 0x00, 0xff, 0xe0};
  const auto kind_at = [](const Bytes& bytes, size_t offset) {
    const auto found = LinkedStubAround(ElfMachine::kX64, kStubBegin + kBefore + offset, Among(bytes), kStubBegin);
    return found.has_value() ? std::string(found->kind) : "";
  };
  for (size_t i = 8; i < moves.size(); ++i) EXPECT_EQ(kind_at(moves, i), "InstantiatingStub") << i;
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(kind_at(moves, i), "") << i;
  for (size_t i = 0; i < kUnboxing.size(); ++i) EXPECT_EQ(kind_at(kUnboxing, i), "UnboxingStub") << i;
  EXPECT_EQ(kind_at(kShuffle8, 0), "DelegateShuffleThunk");
  EXPECT_EQ(kind_at(CallCounting(0x4000), 0), "") << "no linker writes it";
  EXPECT_EQ(KindAt(Among(moves), kBefore + 8), "") << "elsewhere it needs a header";
}

// Read in a process of .NET 10.0.15 on arm64.
Bytes Words(std::initializer_list<uint32_t> words) {
  Bytes bytes(4 * words.size());
  std::memcpy(bytes.data(), std::data(words), bytes.size());
  return bytes;
}

struct Arm64Case {
  const char* kind;
  Bytes code;
  bool has_header;
};

std::vector<Arm64Case> Arm64Cases() {
  return {
      {"CallCountingStub",
       Words({0x58020009, 0x7940012a, 0x7100054a, 0x7900012a, 0x54000060, 0x5801ffa9, 0xd61f0120, 0x5801ffaa,
              0xd61f0140}),
       false},
      {"DelegateShuffleThunk", Words({0xf9401010, 0x9100800b, 0xaa0103e0, 0xaa0203e1, 0xd61f0200}), true},
      {"DelegateShuffleThunk", Words({0xf9401010, 0x9100800b, 0xd61f0200}), true},
      {"InstantiatingStub",
       Words({0xaa0103e2, 0xd29da301, 0xf2a959e1, 0xf2dfffe1, 0x58000050, 0xd61f0200, 0x4acd17d0, 0x0000ffff}), true},
      {"InstantiatingStub",
       Words({0xaa0303e4, 0xaa0203e3, 0xaa0103e2, 0xd29af601, 0xf2a96521, 0xf2dfffe1, 0x58000050, 0xd61f0200,
              0x4acdadc0, 0x0000ffff}),
       true},
      {"UnboxingStub", Words({0xf9400001, 0x91002000, 0x58000050, 0xd61f0200, 0x4b4e1c20, 0x0000ffff}), true},
  };
}

std::string Arm64KindAt(const std::vector<std::byte>& memory, size_t offset) {
  const auto found = StubCodeAround(ElfMachine::kArm64, kStubBegin + offset, memory, kStubBegin);
  return found.has_value() ? std::string(found->kind) : "";
}

TEST(StubCode, OnArm64IsKnownFromEachOfItsInstructions) {
  for (const Arm64Case& c : Arm64Cases()) {
    const Bytes bytes = c.has_header ? WithHeader(c.code, 0x60000000) : c.code;
    const size_t first = kBefore + bytes.size() - c.code.size(), end = kBefore + bytes.size();
    const std::vector<std::byte> memory = Among(bytes);
    for (size_t i = 0; i < memory.size(); i += 4) {
      ASSERT_EQ(Arm64KindAt(memory, i), i >= first && i < end ? c.kind : "") << c.kind << " at " << i;
    }
    EXPECT_FALSE(StubCodeAround(ElfMachine::kX64, kStubBegin + first, memory, kStubBegin).has_value());
    for (size_t at = 0; at + 8 < c.code.size(); at += 4) {
      Bytes changed = bytes;
      changed[changed.size() - c.code.size() + at + 3] ^= 0x20;
      EXPECT_EQ(Arm64KindAt(Among(changed), first), "") << c.kind << " with another instruction at " << at;
    }
    for (size_t size = first + 1; size < end; ++size) {
      EXPECT_FALSE(StubCodeAround(ElfMachine::kArm64, kStubBegin + first, std::span(memory).first(size), kStubBegin)
                       .has_value());
    }
    const auto linked = LinkedStubAround(ElfMachine::kArm64, kStubBegin + kBefore, Among(c.code), kStubBegin);
    EXPECT_EQ(linked.has_value(), c.has_header) << c.kind;
  }
  for (const size_t at : {0, 20, 28}) {  // cells that do not follow each other
    Bytes changed = Arm64Cases()[0].code;
    changed[at] ^= 0x40;
    EXPECT_EQ(Arm64KindAt(Among(changed), kBefore), "") << at;
  }
}

// As emitBackToBackJump writes it (src/coreclr/vm/amd64/cgencpu.h and arm64/cgencpu.h), one behind the other.
TEST(StubCode, AJumpIsKnownFromEachOfItsBytes) {
  const Bytes jump = {0x48, 0xb8, 0xa0, 0x14, 0x96, 0x69, 0xd1, 0x7f, 0x00, 0x00, 0xff, 0xe0};
  const Bytes on_arm64 = {0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6,
                          0xa0, 0x14, 0x96, 0x69, 0xd1, 0x7f, 0x00, 0x00};
  const auto around = [](ElfMachine machine, const Bytes& code, size_t inside) {
    return JumpStubAround(machine, kStubBegin + inside, std::as_bytes(std::span(code)), kStubBegin);
  };
  for (size_t inside = 0; inside < 2 * jump.size(); ++inside) {
    const auto found = around(ElfMachine::kX64, Joined({jump, jump}), inside);
    ASSERT_TRUE(found.has_value()) << inside;
    EXPECT_EQ(found->range.begin, kStubBegin + inside / jump.size() * jump.size());
  }
  for (size_t inside = 0; inside < on_arm64.size(); inside += 4) {
    EXPECT_TRUE(around(ElfMachine::kArm64, on_arm64, inside).has_value()) << inside;
  }
  EXPECT_FALSE(around(ElfMachine::kX64, Joined({jump, {0xcc, 0xcc}}), jump.size()).has_value());
  EXPECT_FALSE(around(ElfMachine::kX64, on_arm64, 0).has_value());
  EXPECT_FALSE(around(ElfMachine::kX64, Joined({{0x90}, Bytes(jump.begin(), jump.end() - 1)}), 3).has_value());
}

}  // namespace
}  // namespace clrsampler
